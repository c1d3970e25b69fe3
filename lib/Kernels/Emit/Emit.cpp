//===- Emit.cpp - KernelDesc -> MLIR: the entry -----------------------------------------===//
#include "k2c/Kernels/Emit.h"
#include "Emitters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace k2c {

void loadKernelDialects(MLIRContext &context) {
  context.loadDialect<LLVM::LLVMDialect, scf::SCFDialect, arith::ArithDialect, math::MathDialect,
                      vector::VectorDialect>();
}

namespace {
template <class Body>
constexpr bool isKnown = !std::is_same_v<Body, SelectDesc> && !std::is_same_v<Body, GqaAttentionDesc> &&
                         !std::is_same_v<Body, AbsorbedAttentionDesc> && !std::is_same_v<Body, ExpandedAttentionDesc>;

/// False when the emitter does not know the body.
template <class Body> bool emitKnown(emit::KernelBuilder &builder, const Body &body, const TileConfig &tile) {
  if constexpr (isKnown<Body>)
    emit::emitBody(builder, body, tile);
  return isKnown<Body>;
}
} // namespace

OwningOpRef<ModuleOp> emitKernel(MLIRContext *context, const KernelDesc &desc, const TileConfig &tile,
                                 llvm::StringRef symbol) {
  loadKernelDialects(*context);
  Location loc = NameLoc::get(StringAttr::get(context, desc.name));
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  emit::KernelBuilder builder(*module, symbol, tile.lanes);
  if (!std::visit([&](const auto &body) { return emitKnown(builder, body, tile); }, desc.body)) {
    emitError(loc) << "no emitter for this kind of kernel";
    return {};
  }
  builder.finish();
  if (failed(verify(*module))) {
    emitError(loc) << "the emitted kernel does not verify";
    return {};
  }
  return module;
}

std::vector<std::string> variantNames(const KernelDesc &desc) {
  if (std::holds_alternative<LinearDesc>(desc.body))
    return {"m1", "tail", "full"};
  return {"all"};
}

} // namespace k2c
