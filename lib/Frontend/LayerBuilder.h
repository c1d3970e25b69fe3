//===- LayerBuilder.h - The ops of one layer in the model form ------------===//
#ifndef K2C_LIB_FRONTEND_LAYERBUILDER_H
#define K2C_LIB_FRONTEND_LAYERBUILDER_H

#include "dialects/Mla/Mla.h"
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/Nn.h"
#include "k2c/Model/Layers.h"
#include "mlir/IR/Builders.h"

namespace k2c {

/// The symbol of a cache group's pool.
std::string cachePoolName(int64_t group);

/// Types and locations of one module.
class ModuleTypes {
public:
  ModuleTypes(mlir::MLIRContext *context, const ModelSpec &spec, mlir::Type activation, mlir::Type cache)
      : context(context), spec(spec), activation(activation), cache(cache) {}

  /// The type of rows of activations, or of `element`: tensor<?xdims, #nn.rows<kind>>.
  mlir::RankedTensorType rows(llvm::ArrayRef<int64_t> dims, nn::RowKind kind = nn::RowKind::Token,
                              mlir::Type element = {}) const;
  /// The residual stream.
  mlir::RankedTensorType hidden() const { return rows({spec.hidden}); }
  /// The layers with that feed-forward part.
  nn::IndicesAttr indices(FeedForward feedForward) const;
  /// The layers that have a tensor of the family.
  nn::IndicesAttr indices(const WeightFamily &family) const;
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

/// Appends the ops of Layers.h, one or two of the dialects for each.
class LayerBuilder {
public:
  /// Ops are added at the end of `b`'s block; `layer` is the layer's index.
  LayerBuilder(mlir::OpBuilder &b, const ModelSpec &spec, const ModuleTypes &types, mlir::Value layer,
               mlir::Value batch)
      : b(b), spec(spec), types(types), layer(layer), batch(batch) {}

  /// The whole layer; returns the new residual stream.
  mlir::Value build(const LayerKind &ofKind, mlir::Value x);

  /// The product W x, plus the family's bias if the model has one. `type` is the result's. Also for weights outside of
  /// layers (layer is null).
  mlir::Value linear(mlir::Value x, llvm::StringRef id, mlir::RankedTensorType type);
  mlir::Value rmsNorm(mlir::Value x, llvm::StringRef id, double eps);

private:
  mlir::ValueRange append(const LayerOp &op, llvm::ArrayRef<mlir::Value> inputs);
  mlir::ValueRange rotary(const LayerOp &op, mlir::Value x);
  mlir::ValueRange appendKeys(mlir::Value key, mlir::Value value);
  mlir::ValueRange appendLatent(mlir::Value latent, mlir::Value key);
  mlir::ValueRange attention(mlir::Value query, mlir::Value view);
  mlir::ValueRange latentAttention(const LayerOp &op, mlir::Value query, mlir::Value view);
  mlir::ValueRange routing(const LayerOp &op, mlir::Value logits);
  mlir::ValueRange experts(const LayerOp &op, llvm::ArrayRef<mlir::Value> inputs);

  mlir::FlatSymbolRefAttr symbol(llvm::StringRef id);
  /// The layer index if the family has one per layer.
  mlir::Value indexOf(const WeightFamily &family);

  mlir::OpBuilder &b;
  const ModelSpec &spec;
  const ModuleTypes &types;
  mlir::Value layer;
  mlir::Value batch;
  LayerKind kind; ///< of the layer that is built
};

} // namespace k2c

#endif // K2C_LIB_FRONTEND_LAYERBUILDER_H
