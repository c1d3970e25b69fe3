//===- BufferLives.cpp - Which values need memory, and for how long -------===//
#include "BufferLives.h"
#include "dialects/Kern/Kern.h"
#include "dialects/Mla/Mla.h"
#include "dialects/Moe/Moe.h"

using namespace mlir;

namespace k2c {

/// Most rows of `rows` in one step. The runtime cuts prompts so that wanted rows are no more than this.
static int64_t boundRows(nn::RowsAttr rows, nn::LimitsAttr limits) {
  switch (rows.getKind()) {
  case nn::RowKind::Token:
    return limits.getToken();
  case nn::RowKind::Want:
    return limits.getWanted();
  case nn::RowKind::Seq:
    return limits.getSeq();
  case nn::RowKind::Slot:
    return limits.getToken() * rows.getPerToken();
  case nn::RowKind::Recv:
  case nn::RowKind::Subtree:
    return rows.getMax();
  }
  llvm_unreachable("a row space of a known kind");
}

int64_t boundBytes(Type type, nn::LimitsAttr limits) {
  if (auto plan = dyn_cast<moe::PlanType>(type))
    return 4 * (plan.getExperts() + 1 + 2 * limits.getToken() * plan.getTop());
  nn::RowsAttr rows = nn::rowsOf(type);
  if (!rows)
    return 0;
  auto tensor = cast<RankedTensorType>(type);
  int64_t bytes = boundRows(rows, limits) * tensor.getElementTypeBitWidth() / 8;
  for (int64_t dim : tensor.getShape().drop_front())
    bytes *= dim;
  return bytes;
}

/// The step owns the logits that are sampled.
static bool livesInStep(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) { return isa<nn::SampleOp>(user); });
}

void BufferLives::define(Value value, int64_t at, nn::LimitsAttr limits) {
  int64_t bytes = livesInStep(value) ? 0 : boundBytes(value.getType(), limits);
  if (bytes == 0)
    return;
  index[value] = buffers.size();
  buffers.push_back({{value}, bytes, at, at, -1});
}

void BufferLives::join(Value value, Value with) {
  int64_t target = bufferOf(with), mine = bufferOf(value);
  if (target < 0 || mine == target)
    return;
  if (mine >= 0) {
    // One buffer from the earlier definition on. Both were read last by the op that joins them.
    Buffer &from = buffers[mine], &into = buffers[target];
    into.first = std::min(into.first, from.first);
    for (Value moved : from.values) {
      into.values.push_back(moved);
      index[moved] = target;
    }
    from.values.clear();
    from.bytes = 0;
    return;
  }
  index[value] = target;
  buffers[target].values.push_back(value);
}

int64_t BufferLives::bufferOf(Value value) const {
  auto found = index.find(value);
  return found == index.end() ? -1 : found->second;
}

BufferLives::BufferLives(func::FuncOp function, nn::LimitsAttr limits) {
  for (BlockArgument argument : function.getArguments())
    define(argument, -1, limits);
  int64_t at = 0;
  bool inGroup = false; // calls of a group run at the same time
  for (Operation &op : function.front()) {
    position[&op] = at;
    for (Value operand : op.getOperands())
      if (int64_t buffer = bufferOf(operand); buffer >= 0)
        buffers[buffer].last = std::max(buffers[buffer].last, at);
    if (auto merge = dyn_cast<mla::MergeFormsOp>(op)) {
      join(merge.getExpanded(), merge.getAbsorbed());
      join(merge.getResult(), merge.getAbsorbed());
    } else if (auto layers = dyn_cast<nn::LayersOp>(op)) {
      join(layers.getResult(), layers.getInput());
    } else {
      for (Value result : op.getResults())
        define(result, at, limits);
    }
    if (!isa<mla::MergeFormsOp>(op))
      inGroup = isa<kern::CallOp>(op) && cast<kern::CallOp>(op).getOpen();
    if (!inGroup)
      ++at;
  }
}

} // namespace k2c
