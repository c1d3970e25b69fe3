//===- TensorSource.h - Named tensors that can be read in pieces ----------===//
//
// What the packer needs of a checkpoint. Reading by offset (not by mapping) keeps memory small and turns a file that
// shrinks under the reader into an error instead of a signal.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_WEIGHTS_TENSORSOURCE_H
#define K2C_WEIGHTS_TENSORSOURCE_H

#include "base/FilePieces.h"
#include "k2c/Support/DType.h"
#include <cstdint>
#include <string>
#include <vector>

namespace k2c {

/// Type and shape of a stored tensor, row-major.
struct StoredTensor {
  DType type = DType::F32;
  std::vector<int64_t> shape;
};

/// Where a tensor's first byte is.
struct TensorPlace {
  int64_t file = 0; ///< number among the files of its source
  int64_t offset = 0;
};

/// Tensors by name. All members may be called from several threads at once.
class TensorSource {
public:
  virtual ~TensorSource() = default;

  /// Error: no tensor of that name.
  virtual Expected<StoredTensor> find(const std::string &name) const = 0;

  /// Reads stored bytes [offset, offset + count) of a tensor that `find` knows, whole elements of it. Error: the file
  /// cannot be read or is shorter than it was.
  virtual Status read(const std::string &name, int64_t offset, char *out, int64_t count) const = 0;

  /// Where a tensor that `find` knows is stored, contiguous, and the files that it may be in.
  virtual TensorPlace place(const std::string &name) const = 0;
  virtual std::vector<PieceFile> files() const = 0;
};

} // namespace k2c

#endif // K2C_WEIGHTS_TENSORSOURCE_H
