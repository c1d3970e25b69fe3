//===- DataFile.h - the weights of a graph that is written ------------------------===//
#ifndef K2C_LIB_ONNX_DATAFILE_H
#define K2C_LIB_ONNX_DATAFILE_H

#include "base/File.h"
#include "k2c/Model/ModelSpec.h"
#include "k2c/Weights/TensorSource.h"
#include <functional>

namespace k2c::onnx {

/// A tensor of the data file, of float32, and what it is made of.
struct DataTensor {
  enum class Order {
    AsStored,   ///< the sources, one behind another
    InTurns,    ///< rows of two sources take turns; several such pairs lie one behind another
    Transposed, ///< columns of the one source become rows
    Cosines,    ///< of `rope`, at as many positions as it has rows
    Sines
  };
  Order order = Order::AsStored;
  std::vector<int64_t> shape;
  std::vector<std::string> sources = {};
  RopeSpec rope = {};
  int64_t offset = 0; ///< in the file

  int64_t elements() const;
};

/// Plans a file, then writes it in pieces: of a tensor at most a few MiB are in memory, of one that is transposed some
/// rows, whatever its size.
class DataFile {
public:
  /// Gives the tensor a place behind those before it, which is returned: on a page where it has one or more, so that it
  /// can be mapped.
  int64_t add(DataTensor tensor);
  int64_t bytes() const { return end; }

  /// Writes the file `path`, which is new. Error: a tensor cannot be read, the file cannot be written.
  Status write(const std::string &path, const TensorSource &tensors,
               const std::function<void(int64_t done, int64_t total)> &progress) const;

private:
  std::vector<DataTensor> tensors;
  int64_t end = 0;
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_DATAFILE_H
