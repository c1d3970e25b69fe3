//===- Cpu.cpp - KernelDesc -> MLIR for processors: the entry --------------===//
#include "k2c/Kernels/Cpu.h"
#include "Emitters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace k2c {

void loadKernelDialects(MLIRContext &context) {
  context
      .loadDialect<LLVM::LLVMDialect, scf::SCFDialect, arith::ArithDialect, math::MathDialect, vector::VectorDialect>();
}

namespace {

template <class Body> std::string beyondEmitter(const Body &) { return ""; }

/// Scores are one chain, and a bf16 pair does not straddle two pieces of a key.
std::string beyondScores(int64_t keyDim, int64_t firstPiece, const Rows &q, const AttentionShape &shape) {
  if (leafCount(keyDim) > 1)
    return "keys of " + std::to_string(keyDim) + " elements; emitted scores are one chain, of at most 1023";
  if (q.type == DType::BF16 && shape.cache == DType::BF16 && firstPiece < keyDim && firstPiece % 2 != 0)
    return "bf16 keys whose first part has " + std::to_string(firstPiece) +
           " elements; emitted pairs need an even number";
  return "";
}
std::string beyondEmitter(const GqaAttentionDesc &d) { return beyondScores(d.keyDim, d.keyDim, d.q, d.shape); }
std::string beyondEmitter(const AbsorbedAttentionDesc &d) {
  return beyondScores(d.latent + d.rope, d.latent, d.qLatent, d.shape);
}
std::string beyondEmitter(const ExpandedAttentionDesc &d) {
  return beyondScores(d.nope + d.rope, d.nope, d.q, d.shape);
}

} // namespace

OwningOpRef<ModuleOp> emitKernel(MLIRContext *context, const KernelDesc &desc, const TileConfig &tile,
                                 llvm::StringRef symbol) {
  loadKernelDialects(*context);
  Location loc = NameLoc::get(StringAttr::get(context, desc.name));
  std::string beyond = std::visit([](const auto &body) { return beyondEmitter(body); }, desc.body);
  if (!beyond.empty()) {
    emitError(loc) << beyond;
    return {};
  }
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  emit::KernelBuilder builder(*module, symbol, tile.lanes);
  std::visit([&](const auto &body) { emit::emitBody(builder, body, tile); }, desc.body);
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
