//===- Cta.cpp - Code of a worker that is a CTA of a GPU -------------------------------===//
#include "Cta.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace k2c::emit {

static Operation *intrinsic(KernelBuilder &b, TypeRange results, StringRef name, ValueRange operands) {
  OpBuilder &ops = b.builder();
  return LLVM::CallIntrinsicOp::create(ops, ops.getUnknownLoc(), results, ops.getStringAttr(name), operands,
                                       LLVM::FastmathFlagsAttr());
}

void runByCta(KernelBuilder &b) {
  OpBuilder &ops = b.builder();
  auto function = cast<LLVM::LLVMFuncOp>(ops.getInsertionBlock()->getParentOp());
  function.setPassthroughAttr(ops.getStrArrayAttr({ctaAttribute}));
}

/// The first lane says it for all, so that what depends on it is known to be the same for all.
Value warpOfCta(KernelBuilder &b) {
  OpBuilder &ops = b.builder();
  auto i32 = [&](int64_t value) { return b.constant(b.i32(), value); };
  Value thread = intrinsic(b, b.i32(), "llvm.nvvm.read.ptx.sreg.tid.x", {})->getResult(0);
  Value first =
      intrinsic(b, b.i32(), "llvm.nvvm.shfl.sync.idx.i32", {i32(-1), b.shr(thread, 5), i32(0), i32(31)})->getResult(0);
  return arith::ExtUIOp::create(ops, ops.getUnknownLoc(), b.i64(), first);
}

void meetInCta(KernelBuilder &b) { intrinsic(b, {}, "llvm.nvvm.barrier.cta.sync.aligned.all", b.constant(b.i32(), 0)); }

Value stackOfCta(KernelBuilder &b, int64_t bytes) {
  Value space = b.stack(bytes);
  space.getDefiningOp()->setAttr(ctaAttribute, b.builder().getUnitAttr());
  return space;
}

Value keptHere(KernelBuilder &b, Value number) {
  OpBuilder &ops = b.builder();
  Location loc = ops.getUnknownLoc();
  Value copy = LLVM::InlineAsmOp::create(ops, loc, b.i32(), ValueRange{b.truncate(number)}, "mov.b32 $0, $1;", "=r,r",
                                         /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                         LLVM::AsmDialectAttr(), ArrayAttr())
                   .getResult(0);
  return b.extend(copy);
}

/// By way of a number, as LLVM drops casts that lead back to where they begin.
Value globalPointer(KernelBuilder &b, Value pointer) {
  constexpr unsigned space = 1;
  OpBuilder &ops = b.builder();
  Location loc = ops.getUnknownLoc();
  Type inSpace = LLVM::LLVMPointerType::get(ops.getContext(), space);
  Value global = LLVM::IntToPtrOp::create(ops, loc, inSpace, b.integerOf(pointer));
  return LLVM::AddrSpaceCastOp::create(ops, loc, b.ptr(), global);
}

} // namespace k2c::emit
