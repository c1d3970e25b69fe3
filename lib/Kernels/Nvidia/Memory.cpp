//===- Memory.cpp - What memory the lanes of a warp share -------------------------===//
//
// Memory is a worker's, and the worker is a warp: what one lane writes another may read. So
//
//   load a; store b; load c      becomes      load a; sync; store b; sync; load c
//
// where the first wait is for lanes that still have to read, and the second lets them see what was written. Between two
// stores one wait is enough. The structs that the entry makes are a lane's own, and so is stack space without vectors
// and at fixed places, as all lanes write the same there: they become registers. Other stack space moves to shared
// memory: lists, which would otherwise be in local memory, and that is as far away as the device's.
//
// That a wait is met by all lanes needs control flow that is the same for all: conditions are no vectors.
//
//===----------------------------------------------------------------------===//
#include "Memory.h"
#include "Lanes.h"
#include "k2c/Kernels/Cta.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace k2c::warp {

namespace {

constexpr unsigned sharedSpace = 3;
constexpr int64_t slotAlignment = 128; ///< a word of each lane

int64_t paddedSlot(int64_t bytes) { return (bytes + slotAlignment - 1) / slotAlignment * slotAlignment; }

Value rootOf(Value pointer) {
  while (auto at = pointer.getDefiningOp<LLVM::GEPOp>())
    pointer = at.getBase();
  return pointer;
}

/// Whether all that is done with the pointer are loads and stores of what all lanes have; `isFixed`: at known places.
bool isUniform(Value pointer, bool isFixed) {
  return llvm::all_of(pointer.getUses(), [&](OpOperand &use) {
    Operation *op = use.getOwner();
    auto isKnown = [&](Value index) { return !isFixed || matchPattern(index, m_Constant()); };
    if (auto at = dyn_cast<LLVM::GEPOp>(op))
      return use.getOperandNumber() == 0 && llvm::all_of(at.getDynamicIndices(), isKnown) && isUniform(at, isFixed);
    return addressOf(op) == pointer && !isSpread(op) && !(isStore(op) && op->getOperand(0) == pointer);
  });
}

/// Whether the warps of a CTA share it.
bool isOfCta(LLVM::AllocaOp space) { return space->hasAttr(ctaAttribute); }

/// Whether the memory is each lane's: the entry's structs (arguments of the function), stack space that stayed.
bool isOwn(Value address) {
  Value root = rootOf(address);
  return isa<BlockArgument>(root) ? cast<BlockArgument>(root).getOwner()->isEntryBlock() &&
                                        isa<LLVM::LLVMFuncOp>(cast<BlockArgument>(root).getOwner()->getParentOp())
                                  : bool(root.getDefiningOp<LLVM::AllocaOp>());
}

/// A list is read before it is written, and what is read so is not used: it begins with zeros.
void clear(OpBuilder &ops, Location loc, Value list, int64_t bytes) {
  Value lane = Lanes(ops, loc).id(), zero = arith::ConstantOp::create(ops, loc, ops.getI32IntegerAttr(0));
  for (int64_t at = 0; at < bytes; at += slotAlignment) {
    Value to =
        LLVM::GEPOp::create(ops, loc, list.getType(), ops.getI8Type(), list, ArrayRef<LLVM::GEPArg>{int32_t(at)});
    LLVM::StoreOp::create(ops, loc, zero, LLVM::GEPOp::create(ops, loc, list.getType(), ops.getI32Type(), to, lane), 4);
  }
}

/// Waits around the stores of a block and of those within it.
void addSyncs(Block &block) {
  bool isSynced = false;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        addSyncs(inner);
    Value address = addressOf(&op);
    if (address && isOwn(address))
      continue;
    if (op.getNumRegions() > 0 || (address && !isStore(&op)))
      isSynced = false;
    if (!address || !isStore(&op))
      continue;
    OpBuilder ops(&op);
    if (!isSynced)
      Lanes(ops, op.getLoc()).sync();
    ops.setInsertionPointAfter(&op);
    Lanes(ops, op.getLoc()).sync();
    isSynced = true;
  }
}

} // namespace

Value addressOf(Operation *op) {
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return load.getAddr();
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return store.getAddr();
  if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op))
    return load.getData();
  if (auto store = dyn_cast<LLVM::MaskedStoreOp>(op))
    return store.getData();
  return {};
}

bool isStore(Operation *op) { return isa<LLVM::StoreOp, LLVM::MaskedStoreOp>(op); }

bool isOverLanes(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getNumElements() % lanes == 0;
}

bool isSpread(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), isOverLanes) || llvm::any_of(op->getResultTypes(), isOverLanes);
}

FailureOr<SharedMemory> sharedMemory(ModuleOp module, LLVM::LLVMFuncOp function, int64_t ofCta, int64_t ofWarp,
                                     int64_t warps) {
  ofCta = paddedSlot(ofCta), ofWarp = paddedSlot(ofWarp);
  if (ofCta + ofWarp * warps > maxSharedBytes)
    return emitError(module.getLoc()) << "needs " << ofWarp << " bytes of shared memory for each of " << warps
                                      << " warps, and " << ofCta << " for all; a CTA has " << maxSharedBytes;
  OpBuilder ops(module.getBodyRegion());
  Location loc = module.getLoc();
  auto array = LLVM::LLVMArrayType::get(ops.getI8Type(), uint64_t(ofCta + ofWarp * warps));
  auto memory = LLVM::GlobalOp::create(ops, loc, array, /*isConstant=*/false, LLVM::Linkage::Internal,
                                       function.getName().str() + ".shared", Attribute(), slotAlignment, sharedSpace);
  Block *undefined = ops.createBlock(&memory.getInitializerRegion());
  ops.setInsertionPointToEnd(undefined);
  LLVM::ReturnOp::create(ops, loc, LLVM::UndefOp::create(ops, loc, array).getResult());
  ops.setInsertionPointToStart(&function.getBody().front());
  Type pointer = LLVM::LLVMPointerType::get(ops.getContext());
  Value base = LLVM::AddressOfOp::create(ops, loc, memory);
  base = LLVM::AddrSpaceCastOp::create(ops, loc, pointer, base);
  auto thread = LLVM::CallIntrinsicOp::create(ops, loc, ops.getI32Type(),
                                              ops.getStringAttr("llvm.nvvm.read.ptx.sreg.tid.x"), ValueRange());
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(ops, loc, ops.getI32IntegerAttr(int32_t(value)));
  };
  Value warp = arith::DivUIOp::create(ops, loc, thread.getResults(), constant(lanes));
  Value own = arith::MulIOp::create(ops, loc, warp, constant(ofWarp));
  own = arith::AddIOp::create(ops, loc, own, constant(ofCta)); // behind what is the CTA's
  own = LLVM::GEPOp::create(ops, loc, pointer, ops.getI8Type(), base, ValueRange(own));
  return SharedMemory{base, own};
}

LogicalResult shareMemory(ModuleOp module, LLVM::LLVMFuncOp function, int64_t warps) {
  struct Slot {
    LLVM::AllocaOp space;
    int64_t offset, bytes;
  };
  SmallVector<Slot> slots;
  int64_t ofWarp = 0, ofCta = 0;
  for (auto space : function.getBody().front().getOps<LLVM::AllocaOp>())
    if (APInt size; matchPattern(space.getArraySize(), m_ConstantInt(&size)) && !isUniform(space, /*isFixed=*/true)) {
      int64_t &bytes = isOfCta(space) ? ofCta : ofWarp;
      slots.push_back({space, bytes, paddedSlot(size.getSExtValue())});
      bytes += slots.back().bytes;
    }
  if (!slots.empty()) {
    FailureOr<SharedMemory> memory = sharedMemory(module, function, ofCta, ofWarp, warps);
    if (failed(memory))
      return failure();
    OpBuilder ops(module.getContext());
    ops.setInsertionPointAfterValue(memory->ofWarp);
    for (auto [space, offset, size] : slots) {
      Value base = isOfCta(space) ? memory->ofCta : memory->ofWarp;
      Value at = LLVM::GEPOp::create(ops, module.getLoc(), base.getType(), ops.getI8Type(), base,
                                     ArrayRef<LLVM::GEPArg>{int32_t(offset)});
      if (isUniform(space, /*isFixed=*/false))
        clear(ops, module.getLoc(), at, size);
      space.replaceAllUsesWith(at);
      space.erase();
    }
  }
  addSyncs(function.getBody().front());
  return success();
}

} // namespace k2c::warp
