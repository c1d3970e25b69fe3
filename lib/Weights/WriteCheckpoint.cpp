//===- WriteCheckpoint.cpp - Tensors as a safetensors checkpoint -----------===//
//
//   model.safetensors                 length of the header | {"embed": {dtype, shape, data_offsets}, ..} | bytes
//   model-00002-of-00003.safetensors  the same, of as many tensors as it has room for
//   model.safetensors.index.json      in which file each of these is
//
// Tensors go to files in order. In a file those of wider elements come first, as the reference writer has them, so that
// each begins at a multiple of its width: readers map the files.
//
//===----------------------------------------------------------------------===//
#include "k2c/Weights/WriteCheckpoint.h"
#include "StoredElements.h"
#include "base/JsonText.h"
#include "k2c/Model/Safetensors.h"
#include "k2c/Support/WriteFile.h"
#include "k2c/Weights/Finite.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;
using nlohmann::json;

namespace k2c {

using namespace weights;

namespace {

/// The tensors of one file, in the order in which they lie there.
using FileTensors = std::vector<const WrittenTensor *>;

std::vector<FileTensors> divided(const std::vector<WrittenTensor> &tensors, int64_t maxFileBytes) {
  std::vector<FileTensors> files(1);
  int64_t bytes = 0;
  for (const WrittenTensor &tensor : tensors) {
    if (!files.back().empty() && bytes + bytesOf(tensor.stored) > maxFileBytes) {
      files.emplace_back();
      bytes = 0;
    }
    files.back().push_back(&tensor);
    bytes += bytesOf(tensor.stored);
  }
  for (FileTensors &file : files)
    std::stable_sort(file.begin(), file.end(), [](const WrittenTensor *a, const WrittenTensor *b) {
      return byteWidth(a->stored.type) > byteWidth(b->stored.type);
    });
  return files;
}

std::string fileName(size_t number, size_t count) {
  char text[64];
  std::snprintf(text, sizeof text, "model-%05zu-of-%05zu.safetensors", number + 1, count);
  return count == 1 ? "model.safetensors" : text;
}

/// The length of the header, and the header, which blanks fill to whole words.
std::string headerOf(const FileTensors &file) {
  json header = {{"__metadata__", {{"format", "pt"}}}};
  int64_t at = 0;
  for (const WrittenTensor *tensor : file) {
    const int64_t end = at + bytesOf(tensor->stored);
    header[tensor->name] = {
        {"dtype", safetensorsName(tensor->stored.type)}, {"shape", tensor->stored.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = jsonText(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string out;
  for (int byte = 0; byte < 8; byte++)
    out += char(uint64_t(text.size()) >> (8 * byte));
  return out + text;
}

class Writer {
public:
  Writer(const std::string &folder, const TensorSource &source, const WriteCheckpointOptions &options)
      : folder(folder), source(source), options(options) {}

  Status write(const std::vector<WrittenTensor> &tensors) {
    for (const WrittenTensor &tensor : tensors) {
      if (Status status = check(tensor); !status)
        return status;
      total += bytesOf(tensor.stored);
    }
    if (Status status = checkSpace(folder, "the checkpoint", total); !status)
      return status;
    const std::vector<FileTensors> files = divided(tensors, options.maxFileBytes);
    json places;
    for (size_t i = 0; i < files.size(); i++) {
      const std::string name = fileName(i, files.size());
      if (Status status = writeTensors(name, files[i]); !status)
        return status;
      for (const WrittenTensor *tensor : files[i])
        places[tensor->name] = name;
    }
    if (files.size() == 1)
      return {};
    const json index = {{"metadata", {{"total_size", total}}}, {"weight_map", places}};
    return writeFile((fs::path(folder) / "model.safetensors.index.json").string(), jsonText(index, 2) + "\n");
  }

private:
  Status check(const WrittenTensor &tensor) const {
    const Expected<StoredTensor> found = source.find(tensor.source);
    if (!found)
      return found.error();
    if (found->type == tensor.stored.type && found->shape == tensor.stored.shape)
      return {};
    return Error{"tensor '" + tensor.source + "'",
                 "is " + std::string(name(found->type)) + " of shape " + json(found->shape).dump() + ", and " +
                     tensor.name + " of " + std::string(name(tensor.stored.type)) + " and shape " +
                     json(tensor.stored.shape).dump(),
                 "take model and weights from one file"};
  }

  Status writeTensors(const std::string &name, const FileTensors &tensors) {
    const std::string path = (fs::path(folder) / name).string();
    errno = 0;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    const std::string header = headerOf(tensors);
    file.write(header.data(), std::streamsize(header.size()));
    for (const WrittenTensor *tensor : tensors)
      if (Status status = copy(*tensor, file); !status)
        return status;
    file.close();
    if (file)
      return {};
    return Error{path, std::string("cannot be written: ") + std::strerror(errno), "check space and permissions"};
  }

  Status copy(const WrittenTensor &tensor, std::ofstream &file) {
    const int64_t bytes = bytesOf(tensor.stored), width = byteWidth(tensor.stored.type);
    for (int64_t at = 0; at < bytes && file; at += int64_t(piece.size())) {
      piece.resize(size_t(std::min(pieceBytes, bytes - at)));
      const int64_t count = int64_t(piece.size()) / width;
      if (Status status = readFinite(source, tensor.source, tensor.stored.type, at / width, count, piece.data());
          !status)
        return status;
      file.write(piece.data(), std::streamsize(piece.size()));
      done += int64_t(piece.size());
      if (options.progress)
        options.progress(done, total);
    }
    return {};
  }

  const std::string &folder;
  const TensorSource &source;
  const WriteCheckpointOptions &options;
  std::string piece;
  int64_t done = 0, total = 0;
};

/// Appends the tensors that a family has in a layer.
void append(std::vector<WrittenTensor> &out, const WeightFamily &to, const WeightFamily &from, int64_t layer) {
  for (int64_t expert = 0; expert < std::max<int64_t>(1, to.experts); expert++)
    for (size_t i = 0; i < std::max<size_t>(1, to.alternatives.size()); i++)
      out.push_back({to.tensorName(layer, expert, i), from.tensorName(layer, expert, i), {to.dtype, to.shape}});
}

} // namespace

std::vector<WrittenTensor> writtenTensors(const ModelSpec &published, const ModelSpec &found) {
  std::vector<WrittenTensor> out, behind; // of the whole model, before and behind its layers
  const auto isOfLayers = [](const WeightFamily &weight) { return !weight.layers.empty(); };
  const auto first = std::find_if(published.weights.begin(), published.weights.end(), isOfLayers);
  for (auto weight = published.weights.begin(); weight != published.weights.end(); ++weight)
    if (!isOfLayers(*weight))
      append(weight < first ? out : behind, *weight, *found.find(weight->id), 0);
  for (int64_t layer = 0; layer < published.layerCount(); layer++)
    for (const WeightFamily &weight : published.weights)
      if (weight.hasLayer(layer))
        append(out, weight, *found.find(weight.id), layer);
  out.insert(out.end(), behind.begin(), behind.end());
  return out;
}

Status writeCheckpoint(const std::string &folder, const std::vector<WrittenTensor> &tensors, const TensorSource &source,
                       const WriteCheckpointOptions &options) {
  return Writer(folder, source, options).write(tensors);
}

} // namespace k2c
