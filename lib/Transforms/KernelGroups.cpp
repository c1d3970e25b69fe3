//===- KernelGroups.cpp - Which ops become one kernel ---------------------===//
#include "KernelGroups.h"
#include "dialects/Nn/Nn.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace k2c {

bool isLinear(Operation *op) {
  auto kernelOp = dyn_cast<nn::KernelOp>(op);
  return kernelOp && kernelOp.isLinear();
}

namespace {

/// True for ops that become part of a kernel.
bool isKernelOp(Operation *op) { return isa<nn::KernelOp>(op) && !nn::isView(op); }

/// The only reader of `op`'s only result, or null.
Operation *onlyReader(Operation *op) {
  if (op->getNumResults() != 1 || !op->getResult(0).hasOneUse())
    return nullptr;
  Operation *user = *op->getResult(0).user_begin();
  return user->getBlock() == op->getBlock() ? user : nullptr;
}

/// A norm moves into the linear that alone reads it: rows are normalised on the way in.
bool joinsAsPrologue(Operation *norm, Operation *linear) {
  return isa<nn::RmsNormOp>(norm) && isa<nn::LinearOp>(linear); // rows are a linear's input, of rank two
}

/// Ops on the longest path to each op of `block`, itself included and views not.
llvm::DenseMap<Operation *, int64_t> depthsOf(Block &block) {
  llvm::DenseMap<Operation *, int64_t> depths;
  for (Operation &op : block) {
    int64_t before = 0;
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        before = std::max(before, depths.lookup(producer));
    depths[&op] = before + !nn::isView(&op);
  }
  return depths;
}

/// Gated activation, or addition of a row of equal shape, which is another value because `op` reads the linear's once.
/// A linear does not wait for what takes longer to come than itself: the sum of routed experts for the shared one.
bool joinsAsEpilogue(Operation *op, Operation *linear, const llvm::DenseMap<Operation *, int64_t> &depths) {
  if (!isLinear(linear))
    return false;
  if (auto add = dyn_cast<nn::AddOp>(op)) {
    Operation *other = (add.getLhs().getDefiningOp() == linear ? add.getRhs() : add.getLhs()).getDefiningOp();
    return !other || depths.lookup(other) <= depths.lookup(linear);
  }
  return isa<nn::GatedActOp>(op);
}

} // namespace

SmallVector<KernelGroup> groupKernels(Block &block, bool fuse) {
  SmallVector<KernelGroup> groups;
  llvm::DenseMap<Operation *, size_t> groupOf;
  llvm::DenseMap<Operation *, int64_t> depths = depthsOf(block);
  auto absorb = [&](size_t from, size_t into) {
    for (Operation *op : groups[from])
      groupOf[op] = into;
    KernelGroup merged = groups[from];
    merged.append(groups[into]);
    groups[into] = std::move(merged);
    groups[from].clear();
  };
  for (Operation &op : block) {
    if (!isKernelOp(&op))
      continue;
    size_t mine = groups.size();
    groups.push_back({&op});
    groupOf[&op] = mine;
    if (!fuse)
      continue;
    for (Value operand : op.getOperands()) {
      Operation *producer = operand.getDefiningOp();
      auto found = groupOf.find(producer);
      if (!producer || found == groupOf.end() || onlyReader(producer) != &op)
        continue;
      assert(groups[found->second].back() == producer && "only its reader joins an op to what follows");
      bool prologue = joinsAsPrologue(producer, &op);
      bool epilogue = joinsAsEpilogue(&op, producer, depths);
      if (prologue || epilogue) {
        absorb(found->second, mine);
        break;
      }
    }
  }
  llvm::erase_if(groups, [](const KernelGroup &group) { return group.empty(); });
  return groups;
}

} // namespace k2c
