//===- Safetensors.h - an index of a checkpoint's tensors -----------------===//
//
// Opens single (model.safetensors) and sharded checkpoints and checks every
// header before anything is read: a checkpoint is hostile input. After open()
// each tensor's range lies inside its file, has the size its shape and type
// ask for, and overlaps no other.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_MODEL_SAFETENSORS_H
#define K2C_MODEL_SAFETENSORS_H

#include "base/Error.h"
#include "k2c/Support/DType.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace k2c {

struct Descriptor;

/// One tensor of a checkpoint.
struct TensorInfo {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  size_t fileIndex = 0; ///< into Checkpoint::files()
  uint64_t begin = 0;   ///< byte offset in that file
  uint64_t end = 0;

  uint64_t bytes() const { return end - begin; }
};

/// How a header spells an element type: "BF16".
std::string safetensorsName(DType type);

/// Reads the header of an open safetensors file of `fileBytes` bytes. Offsets
/// in the result count from the start of the file; fileIndex is 0.
Expected<std::vector<TensorInfo>> readSafetensorsHeader(int fd, uint64_t fileBytes, const std::string &path);

/// An open checkpoint. Copies share the open files.
class Checkpoint {
public:
  /// Opens a folder (index file, model.safetensors, or every *.safetensors) or
  /// one .safetensors file. Symbolic links are followed to regular files.
  static Expected<Checkpoint> open(const std::string &path);

  /// Whether the folder holds weights at all; without, it is shape-only.
  static bool hasWeights(const std::string &path);

  /// Sorted by name.
  const std::vector<TensorInfo> &tensors() const { return tensors_; }
  /// The tensor of that name, or null.
  const TensorInfo *find(const std::string &name) const;
  /// Paths of the files, by fileIndex.
  const std::vector<std::string> &files() const { return files_; }
  /// What the file had when it was opened, and its header was checked against.
  int64_t fileBytes(size_t fileIndex) const { return fileBytes_[fileIndex]; }

  /// Reads `bytes` bytes of a tensor from byte `offset` of it into `out`.
  /// Callable from any thread.
  Status read(const TensorInfo &tensor, uint64_t offset, void *out, uint64_t bytes) const;

private:
  Status addFile(const std::string &path);
  Status addIndexed(const std::string &folder, const std::string &indexPath);
  Status finish();

  std::vector<std::string> files_;
  std::vector<int64_t> fileBytes_;
  std::vector<std::shared_ptr<Descriptor>> open_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, size_t> byName_;
};

} // namespace k2c

#endif // K2C_MODEL_SAFETENSORS_H
