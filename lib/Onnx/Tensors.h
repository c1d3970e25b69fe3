//===- Tensors.h - the tensors of a decoder, as a checkpoint would store them ---------===//
#ifndef K2C_LIB_ONNX_TENSORS_H
#define K2C_LIB_ONNX_TENSORS_H

#include "Match.h"
#include "k2c/Weights/TensorSource.h"
#include <memory>
#include <unordered_map>

namespace k2c::onnx {

/// Parts of constants by name, row-major whatever the order they are stored in. Of quantised weights they are what
/// these stand for, as f32. Nothing is held in memory but what the graph has there.
class OnnxTensors : public TensorSource {
public:
  explicit OnnxTensors(std::shared_ptr<const Files> files) : graphFiles(std::move(files)) {}

  /// Adds a part of `constant`. Error: a type that is not read; the part is not inside of it.
  Status add(const std::string &name, const Tensor &constant, const View &view);
  void remove(const std::string &name) { entries.erase(name); }

  /// The constant that a tensor that `find` knows is a part of, and whether its rows are columns there.
  const Tensor &constantOf(const std::string &name) const { return entries.at(name).constant; }
  bool isTransposed(const std::string &name) const;
  /// How the weights that the tensor is a part of are stored; null: as they are.
  const Quantised *quantisedOf(const std::string &name) const { return entries.at(name).quantised.get(); }
  /// The formats of quantised weights of `file`, in alphabetical order.
  std::vector<WidenedWeights> widened(const std::string &file) const;

  Expected<StoredTensor> find(const std::string &name) const override;
  Status read(const std::string &name, int64_t offset, char *out, int64_t count) const override;
  TensorPlace place(const std::string &name) const override;
  std::vector<PieceFile> files() const override;

private:
  struct Entry {
    Tensor constant;
    DType type = DType::F32;
    int64_t offset = 0;
    std::vector<int64_t> shape, strides;
    bool isVector = false;                      ///< kept as a row
    std::shared_ptr<const Quantised> quantised; ///< null: the constant's elements are the tensor's
  };
  Status readBytes(const Entry &entry, int64_t element, void *out, int64_t elements) const;
  Status readRows(const Entry &entry, int64_t first, int64_t count, char *out) const;
  Status readPart(const Entry &entry, int64_t row, int64_t column, int64_t count, char *out) const;

  std::shared_ptr<const Files> graphFiles;
  std::unordered_map<std::string, Entry> entries;
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_TENSORS_H
