//===- CheckpointTensors.cpp - A safetensors checkpoint for the packer ------===//
#include "k2c/Weights/CheckpointTensors.h"
#include "base/Utf8.h"
#include <filesystem>

namespace k2c {

Expected<StoredTensor> CheckpointTensors::find(const std::string &name) const {
  if (const TensorInfo *tensor = checkpoint.find(name))
    return StoredTensor{tensor->dtype, tensor->shape};
  return Error{"tensor '" + shortened(name) + "'",
               "is in none of the checkpoint's " + std::to_string(checkpoint.files().size()) + " files",
               "use the checkpoint whose config.json was compiled"};
}

Status CheckpointTensors::read(const std::string &name, int64_t offset, char *out, int64_t count) const {
  const TensorInfo *tensor = checkpoint.find(name);
  if (!tensor || offset < 0 || count < 0 || uint64_t(offset) + uint64_t(count) > tensor->bytes())
    return Error{"tensor '" + shortened(name) + "'",
                 "bytes " + std::to_string(offset) + " to " + std::to_string(offset + count) + " are outside it", ""};
  return checkpoint.read(*tensor, uint64_t(offset), out, uint64_t(count));
}

TensorPlace CheckpointTensors::place(const std::string &name) const {
  const TensorInfo &tensor = *checkpoint.find(name);
  return {int64_t(tensor.fileIndex), int64_t(tensor.begin)};
}

std::vector<PieceFile> CheckpointTensors::files() const {
  std::vector<PieceFile> files;
  for (size_t i = 0; i < checkpoint.files().size(); ++i)
    files.push_back({std::filesystem::path(checkpoint.files()[i]).filename().string(), checkpoint.fileBytes(i)});
  return files;
}

} // namespace k2c
