//===- Checkpoint.cpp - the files of a checkpoint -------------------------===//
//
// A checkpoint is one safetensors file, a folder with an index and its shards, a folder with model.safetensors, or
// else all safetensors files of a folder. A folder with both an index and a single file is refused: nothing says which
// is meant.
//
// An index is a second description of what the headers of the shards say, and partial downloads make the two differ.
// So they are compared in both directions, each tensor of a shard against weight_map and each entry of weight_map
// against the shards, and no tensor may occur in two files. A shard is named by a plain file name, which may be a
// link, as caches of model hubs have them. Files are opened once, non-blocking in case of a FIFO, must be regular, and
// stay open: bytes are read from the descriptor whose header was checked.
//
//===----------------------------------------------------------------------===//

#include "base/File.h"
#include "base/Json.h"
#include "base/Utf8.h"
#include "k2c/Model/Safetensors.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>

using namespace k2c;
namespace fs = std::filesystem;

namespace {

constexpr size_t third = maxQuoted / 3; // of what a message quotes

constexpr const char *indexName = "model.safetensors.index.json";
constexpr const char *singleName = "model.safetensors";

/// K2's index is 11 MB; names of a model ten times as large still fit.
constexpr JsonLimits indexLimits{size_t(256) << 20, 4};

std::string join(const std::string &folder, const std::string &file) { return (fs::path(folder) / file).string(); }

bool exists(const std::string &path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0;
}

/// Names of the *.safetensors files in a folder, sorted.
std::vector<std::string> safetensorsIn(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".safetensors")
      names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// A shard is named by its file name alone: an index must not point elsewhere.
bool isPlainName(const std::string &name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

} // namespace

Status Checkpoint::addFile(const std::string &path) {
  // O_NONBLOCK: opening a fifo must not wait for a writer.
  auto file = std::make_shared<Descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file->number < 0)
    return Error{path, std::string("cannot open: ") + std::strerror(errno), ""};
  struct stat info{};
  if (::fstat(file->number, &info) != 0 || !S_ISREG(info.st_mode))
    return Error{path, "not a regular file", "a checkpoint's files are regular files or links to them"};
  Expected<std::vector<TensorInfo>> header =
      readSafetensorsHeader(file->number, static_cast<uint64_t>(info.st_size), path);
  if (!header)
    return header.takeError();
  for (TensorInfo &tensor : *header) {
    tensor.fileIndex = files_.size();
    tensors_.push_back(std::move(tensor));
  }
  files_.push_back(path);
  fileBytes_.push_back(info.st_size);
  open_.push_back(std::move(file));
  return Status::success();
}

Status Checkpoint::finish() {
  std::sort(tensors_.begin(), tensors_.end(), [](const TensorInfo &a, const TensorInfo &b) {
    return std::tie(a.name, a.fileIndex) < std::tie(b.name, b.fileIndex);
  });
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorInfo &tensor = tensors_[i];
    if (auto [at, isNew] = byName_.emplace(tensor.name, i); !isNew)
      return Error{files_[tensor.fileIndex],
                   "tensor '" + shortened(tensor.name) + "' is also in " + files_[tensors_[at->second].fileIndex],
                   "keep one of the two"};
  }
  return Status::success();
}

Status Checkpoint::addIndexed(const std::string &folder, const std::string &indexPath) {
  Expected<JsonDocument> index = readJsonFile(indexPath, indexLimits);
  if (!index)
    return index.takeError();
  const char *damaged = "the checkpoint is incomplete: download it again";
  const nlohmann::json &root = index->root();
  if (!root.is_object() || !root.contains("weight_map") || !root["weight_map"].is_object())
    return Error{index->place(""), "there is no object 'weight_map'", damaged};
  const nlohmann::json &map = root["weight_map"];
  auto entry = [&](const std::string &name) { return index->place("/weight_map/" + escapeJsonPointer(name)); };

  std::vector<std::string> shards;
  for (const auto &[name, shard] : map.items()) {
    if (!shard.is_string() || !isPlainName(shard.get<std::string>()))
      return Error{entry(name), "tensor '" + shortened(name) + "' must name a file of this folder", damaged};
    shards.push_back(shard.get<std::string>());
  }
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  for (const std::string &shard : shards) {
    std::string path = join(folder, shard);
    if (!exists(path))
      return Error{indexPath, "shard '" + shortened(shard) + "' does not exist", damaged};
    if (Status added = addFile(path); !added)
      return added;
  }
  if (Status unique = finish(); !unique)
    return unique;

  for (const TensorInfo &tensor : tensors_) {
    const std::string &shard = shards[tensor.fileIndex];
    auto named = map.find(tensor.name);
    if (named == map.end())
      return Error{indexPath,
                   "tensor '" + shortened(tensor.name) + "' of shard '" + shortened(shard) + "' is not in weight_map",
                   damaged};
    if (*named != shard)
      return Error{entry(tensor.name),
                   "tensor '" + shortened(tensor.name, third) + "' is in shard '" + shortened(shard, third) +
                       "', weight_map says '" + shortened(named->get<std::string>(), third) + "'",
                   damaged};
  }
  for (const auto &[name, shard] : map.items())
    if (!find(name))
      return Error{entry(name),
                   "tensor '" + shortened(name) + "' is not in shard '" + shortened(shard.get<std::string>()) + "'",
                   damaged};
  return Status::success();
}

Expected<Checkpoint> Checkpoint::open(const std::string &path) {
  Checkpoint checkpoint;
  auto done = [&](Status status) -> Expected<Checkpoint> {
    if (!status)
      return status.takeError();
    return std::move(checkpoint);
  };
  auto addAll = [&](const std::vector<std::string> &paths) {
    for (const std::string &file : paths)
      if (Status added = checkpoint.addFile(file); !added)
        return added;
    return checkpoint.finish();
  };

  std::error_code error;
  if (!fs::is_directory(path, error))
    return done(addAll({path}));
  std::string index = join(path, indexName), single = join(path, singleName);
  if (exists(index) && exists(single))
    return Error{path, std::string("both ") + indexName + " and " + singleName + " are here",
                 "remove the one that does not belong to the checkpoint"};
  if (exists(index))
    return done(checkpoint.addIndexed(path, index));
  if (exists(single))
    return done(addAll({single}));
  std::vector<std::string> paths;
  for (const std::string &name : safetensorsIn(path))
    paths.push_back(join(path, name));
  if (paths.empty())
    return Error{path, "there are no *.safetensors files", "download the weights, or compile config.json alone"};
  return done(addAll(paths));
}

bool Checkpoint::hasWeights(const std::string &path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return fs::path(path).extension() == ".safetensors";
  return exists(join(path, indexName)) || !safetensorsIn(path).empty();
}

const TensorInfo *Checkpoint::find(const std::string &name) const {
  auto at = byName_.find(name);
  return at == byName_.end() ? nullptr : &tensors_[at->second];
}

Status Checkpoint::read(const TensorInfo &tensor, uint64_t offset, void *out, uint64_t bytes) const {
  const std::string &path = files_[tensor.fileIndex];
  if (offset > tensor.bytes() || bytes > tensor.bytes() - offset)
    return Error{path,
                 "tensor '" + shortened(tensor.name) + "' has " + std::to_string(tensor.bytes()) + " bytes, not " +
                     std::to_string(bytes) + " from " + std::to_string(offset),
                 ""};
  const BytesRead read =
      readAt(open_[tensor.fileIndex]->number, int64_t(tensor.begin + offset), out, static_cast<int64_t>(bytes));
  if (read.error)
    return Error{path, "tensor '" + shortened(tensor.name) + "': " + std::strerror(read.error), ""};
  if (uint64_t(read.count) < bytes)
    return Error{path,
                 "tensor '" + shortened(tensor.name) + "': the file ended after " + std::to_string(read.count) +
                     " of " + std::to_string(bytes) + " bytes",
                 "the file was changed while it was read"};
  return Status::success();
}
