//===- LayerBuilder.h - the ops of one layer ------------------------------===//
#ifndef K2C_LIB_FRONTEND_LAYERBUILDER_H
#define K2C_LIB_FRONTEND_LAYERBUILDER_H

#include "dialects/Mla/Mla.h"
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/Nn.h"
#include "k2c/Model/ModelSpec.h"
#include "mlir/IR/Builders.h"

namespace k2c {

/// Types and locations of one module.
class ModuleTypes {
public:
  ModuleTypes(mlir::MLIRContext *context, const ModelSpec &spec, mlir::Type activation, mlir::Type cache)
      : context(context), spec(spec), activation(activation), cache(cache) {}

  /// tensor<?xdims, #nn.rows<kind>> of activations, or of `element`.
  mlir::RankedTensorType rows(llvm::ArrayRef<int64_t> dims, nn::RowKind kind = nn::RowKind::Token,
                              mlir::Type element = {}) const;
  /// The residual stream.
  mlir::RankedTensorType hidden() const { return rows({spec.hidden}); }
  /// The set of `members`, which ascend.
  nn::IndicesAttr indices(const std::vector<int64_t> &members) const;
  mlir::Type cacheElement() const { return cache; }
  /// Where config.json gives a field of the families file.
  mlir::Location place(llvm::StringRef field) const;
  /// A family's tensor names.
  mlir::Location place(const WeightFamily &family) const;

private:
  mlir::MLIRContext *context;
  const ModelSpec &spec;
  mlir::Type activation;
  mlir::Type cache;
};

/// Appends the ops of one layer: x + attention(norm x), then + mlp or moe.
/// Residual additions are written as the published models compute them.
class LayerBuilder {
public:
  /// Ops are added at the end of `b`'s block; `layer` is the layer's index.
  LayerBuilder(mlir::OpBuilder &b, const ModelSpec &spec, const ModuleTypes &types, mlir::Value layer,
               mlir::Value batch)
      : b(b), spec(spec), types(types), layer(layer), batch(batch) {}

  /// The whole layer; returns the new residual stream.
  mlir::Value build(LayerKind kind, mlir::Value x);

  /// y = W x, with the family's bias if the model has one. `dims` are the
  /// result's columns. Also for weights outside of layers (layer is null).
  mlir::Value linear(mlir::Value x, llvm::StringRef id, mlir::RankedTensorType type);
  mlir::Value rmsNorm(mlir::Value x, llvm::StringRef id, double eps);

private:
  mlir::Value attention(const GqaSpec &gqa, mlir::Value h);
  mlir::Value clipped(const GqaSpec &gqa, mlir::Value heads);
  mlir::Value normalized(const GqaSpec &gqa, mlir::Value heads, llvm::StringRef id);
  mlir::Value attention(const MlaSpec &mla, mlir::Value h);
  mlir::Value latentQuery(const MlaSpec &mla, mlir::Value h);
  mlir::Value rotary(mlir::Value x, int64_t first);
  mlir::Value output(mlir::Value heads, int64_t width);
  mlir::Value gatedMlp(mlir::Value n, llvm::StringRef gateUp, llvm::StringRef down, int64_t inter);
  mlir::Value moe(const MoeSpec &moe, mlir::Value n);
  mlir::Value add(mlir::Value x, mlir::Value y);

  mlir::FlatSymbolRefAttr symbol(llvm::StringRef id);
  /// The layer index if the family has one per layer.
  mlir::Value indexOf(const WeightFamily &family);

  mlir::OpBuilder &b;
  const ModelSpec &spec;
  const ModuleTypes &types;
  mlir::Value layer;
  mlir::Value batch;
};

} // namespace k2c

#endif // K2C_LIB_FRONTEND_LAYERBUILDER_H
