//===- ExternalData.cpp - files that tensors lie in ---------------------------===//
//
// A file is opened once, at the first tensor that names it. Places of tensors are kept until all are known, and sorted,
// so that those which share a part of their bytes are found as neighbours.
//
//===----------------------------------------------------------------------===//
#include "ExternalData.h"
#include "base/Utf8.h"
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace k2c::onnx {

namespace {

/// "/proc/self/fd/7": a link to what a descriptor is of.
std::string descriptorLink(const Descriptor &descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor.number);
}

/// Where a descriptor's file lies, without links; "": the system does not say.
std::string realPath(const Descriptor &descriptor) {
  std::array<char, PATH_MAX> path;
  const ssize_t count = ::readlink(descriptorLink(descriptor).c_str(), path.data(), path.size());
  return count > 0 ? std::string(path.data(), static_cast<size_t>(count)) : "";
}

/// Of real paths, which end in '/' where they are the root alone.
bool liesBelow(const std::string &path, std::string folder) {
  if (folder.empty())
    return false;
  if (folder.back() != '/')
    folder += '/';
  return path.compare(0, folder.size(), folder) == 0;
}

/// models--org--name/blobs, of a folder in models--org--name/snapshots/COMMIT; "" for another one.
std::string blobsOf(const std::string &folder) {
  for (std::filesystem::path at = folder; at.has_relative_path(); at = at.parent_path()) {
    const std::filesystem::path snapshots = at.parent_path(), repository = snapshots.parent_path();
    if (snapshots.filename() == "snapshots" && repository.filename().string().compare(0, 8, "models--") == 0)
      return (repository / "blobs").string();
  }
  return "";
}

/// Decimal digits alone, below 2^63.
std::optional<int64_t> parseCount(const std::string &text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || text[0] == '-')
    return std::nullopt;
  return value;
}

} // namespace

ExternalData::ExternalData(Files::File model) : folder(std::filesystem::path(model.path).parent_path().string()) {
  if (folder.empty())
    folder = ".";
  files->files.push_back(std::move(model));
}

Error ExternalData::refused(const std::string &tensor, std::string message, std::string remedy) const {
  return Error{files->files[0].path, "tensor '" + shortened(tensor) + "': " + std::move(message), std::move(remedy)};
}

Expected<int64_t> ExternalData::fileNumber(const std::string &tensor, const std::string &given) {
  const std::string location = given.compare(0, 2, "./") == 0 ? given.substr(2) : given;
  if (auto known = numbers.find(location); known != numbers.end())
    return known->second;
  const std::string quoted = "external data '" + shortened(location) + "' ";
  if (!isInsidePath(location))
    return refused(tensor, quoted + "is not a path inside the model's folder", damagedModel);
  if (files->files.size() > maxFiles)
    return refused(tensor, "its external data is in one file more than " + std::to_string(maxFiles),
                   "save the model with all external data in one file");
  const Descriptor home(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Descriptor found(::openat(home.number, location.c_str(), O_PATH | O_CLOEXEC));
  if (found.number < 0)
    return refused(tensor, quoted + (errno == ENOENT ? "is missing" : "cannot be opened"),
                   "copy it to where the .onnx file is");
  const std::string place = realPath(found), realHome = realPath(home);
  if (!liesBelow(place, realHome) && !liesBelow(place, blobsOf(realHome)))
    return refused(tensor, quoted + "is a link that leaves the model's folder",
                   "copy the file itself to where the .onnx file is");
  struct stat facts;
  if (::fstat(found.number, &facts) != 0 || !S_ISREG(facts.st_mode))
    return refused(tensor, quoted + "is not a regular file", damagedModel);
  Descriptor data(::open(descriptorLink(found).c_str(), O_RDONLY | O_CLOEXEC));
  if (data.number < 0)
    return systemError(folder + "/" + location, "cannot open", errno);
  const int64_t number = static_cast<int64_t>(files->files.size());
  files->files.push_back({folder + "/" + location, location, facts.st_size, std::move(data)});
  numbers.emplace(location, number);
  return number;
}

Status ExternalData::place(Tensor &tensor, const ExternalEntry &entry) {
  const int64_t bytes = tensor.byteSize();
  const std::optional<int64_t> offset = entry.offset.empty() ? 0 : parseCount(entry.offset);
  const std::optional<int64_t> length = entry.length.empty() ? bytes : parseCount(entry.length);
  if (!offset || !length)
    return refused(tensor.name,
                   "offset '" + shortened(entry.offset, maxOfKey) + "' or length '" +
                       shortened(entry.length, maxOfKey) + "' is not a number of bytes",
                   damagedModel);
  if (*length != bytes)
    return refused(tensor.name,
                   "has " + std::to_string(*length) + " bytes of external data, its shape and type ask for " +
                       std::to_string(bytes),
                   damagedModel);
  Expected<int64_t> file = fileNumber(tensor.name, entry.location);
  if (!file)
    return file.takeError();
  const Files::File &data = files->files[static_cast<size_t>(*file)];
  if (*offset > data.bytes || bytes > data.bytes - *offset)
    return refused(tensor.name,
                   "bytes from " + std::to_string(*offset) + ", " + std::to_string(bytes) +
                       " of them, do not lie in '" + shortened(data.name) + "', which has " +
                       std::to_string(data.bytes),
                   "copy the file again: it is incomplete or of another export");
  tensor.file = *file;
  tensor.offset = *offset;
  if (bytes > 0)
    segments.push_back({*file, *offset, *offset + bytes, tensor.name});
  return {};
}

Status ExternalData::checkOverlaps() {
  std::sort(segments.begin(), segments.end(), [](const Segment &a, const Segment &b) {
    return std::tie(a.file, a.begin, a.end) < std::tie(b.file, b.begin, b.end);
  });
  for (size_t i = 1; i < segments.size(); ++i) {
    const Segment &before = segments[i - 1], &here = segments[i];
    if (here.file != before.file || here.begin >= before.end)
      continue;
    if (here.begin == before.begin && here.end == before.end)
      continue;
    return refused(here.tensor,
                   "begins at byte " + std::to_string(here.begin) + " of its external data, inside tensor '" +
                       shortened(before.tensor, maxQuoted / 3) + "', which ends at " + std::to_string(before.end),
                   damagedModel);
  }
  return {};
}

std::shared_ptr<const Files> ExternalData::take() { return std::move(files); }

} // namespace k2c::onnx
