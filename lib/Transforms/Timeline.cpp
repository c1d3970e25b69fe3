//===- Timeline.cpp - Which values need memory, and when ------------------===//
//
// Two walks: the first numbers ops, the second reads them in the same order. A value lives from the op that defines it
// to the last that takes it, and through every loop in between; what a loop carries lives through all of it:
//
//   0   %a = kern.call @f                    %a      0 .. 5, as every iteration reads it
//   1   %r = scf.for .. iter_args(%i = %x)   %x, %i, %c and %r are one buffer, at least 1 .. 5
//   2     %b = kern.call @g(%i, %a)          %b      2 .. 3
//   3     %c = kern.call @h(%b)
//   4     scf.yield %c
//   5   (its end)
//
// Asynchronous work goes on from its start to the first op that takes the token in the region of the token. A loop or
// a branch that takes it forwards it; a token that nobody takes there is not awaited. Values that the work touches live
// as long as it goes on.
//
//===----------------------------------------------------------------------===//
#include "Timeline.h"
#include "dialects/Kern/Kern.h"
#include "dialects/Moe/Moe.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace k2c {

bool livesInStep(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) { return isa<nn::SampleOp>(user); });
}

bool isJoin(Operation *op) { return isa<nn::SharedPlaceOp>(op) && isMemoryEffectFree(op); }

/// What is in `op` may run several times. Of regions that say nothing, it is assumed.
static bool repeats(Operation *op) {
  auto branch = dyn_cast<RegionBranchOpInterface>(op);
  return branch ? branch.hasLoop() : op->getNumRegions() > 0;
}

void Timeline::number(Region &region) {
  bool inGroup = false; // calls of a group run at the same time
  for (Operation &op : region.getOps()) {
    const int64_t begin = now;
    if (op.getNumRegions() > 0)
      ++now;
    for (Region &inner : op.getRegions())
      number(inner);
    points[&op] = {begin, now};
    if (!isJoin(&op))
      inGroup = isa<kern::CallOp>(op) && cast<kern::CallOp>(op).getNowait();
    if (!inGroup)
      ++now;
  }
}

void Timeline::define(Value value, int64_t at) {
  int64_t bytes = livesInStep(value) ? 0 : boundBytes(value.getType(), limits);
  if (bytes == 0)
    return;
  index[value] = buffers.size();
  buffers.push_back({{value}, bytes, at, at, -1});
}

void Timeline::join(Value value, Value with) {
  int64_t target = bufferOf(with), mine = bufferOf(value);
  if (target < 0 || mine == target)
    return;
  if (mine >= 0) {
    // One buffer from the earlier definition to the later end.
    Buffer &from = buffers[mine], &into = buffers[target];
    into.first = std::min(into.first, from.first);
    into.last = std::max(into.last, from.last);
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

int64_t Timeline::bufferOf(Value value) const {
  auto found = index.find(value);
  return found == index.end() ? -1 : found->second;
}

int64_t Timeline::definitionOf(Value value) const {
  if (Operation *op = value.getDefiningOp())
    return endOf(op);
  Operation *owner = value.getParentBlock()->getParentOp();
  return isa<FunctionOpInterface>(owner) ? -1 : positionOf(owner);
}

int64_t Timeline::useOf(Value value, Operation *user) const {
  int64_t at = positionOf(user);
  for (Operation *in = user; in->getParentRegion() != value.getParentRegion();) {
    in = in->getParentOp();
    if (repeats(in))
      at = std::max(at, endOf(in));
  }
  return at;
}

/// What is in the regions of `op`, and what it forwards.
void Timeline::enter(Operation *op) {
  auto branch = dyn_cast<RegionBranchOpInterface>(op);
  SmallVector<std::pair<OpOperand *, Value>> forwards;
  if (branch)
    forwards = nn::forwardsOf(branch);
  auto forward = [&](bool fromInside) {
    for (auto [operand, input] : forwards)
      if ((operand->getOwner() != op) == fromInside)
        bufferOf(input) >= 0 ? join(operand->get(), input) : join(input, operand->get());
  };
  forward(false);
  for (Region &region : op->getRegions()) {
    for (Value argument : region.getArguments())
      if (bufferOf(argument) < 0)
        define(argument, positionOf(op));
    live(region);
  }
  forward(true);
}

void Timeline::live(Region &region) {
  for (Operation &op : region.getOps()) {
    for (Value operand : op.getOperands())
      if (int64_t buffer = bufferOf(operand); buffer >= 0)
        buffers[buffer].last = std::max(buffers[buffer].last, useOf(operand, &op));
    if (op.getNumRegions() > 0)
      enter(&op);
    if (auto shared = dyn_cast<nn::SharedPlaceOp>(op))
      for (auto [value, with] : shared.getSharedPlaces())
        join(value, with);
    for (Value result : op.getResults())
      if (bufferOf(result) < 0)
        define(result, endOf(&op));
  }
}

/// Adds the span of one name of the flight's token; `forwarded` receives its further names.
void Timeline::addSpan(Flight &flight, Value token, SmallVectorImpl<Value> &forwarded) {
  int64_t from = definitionOf(token), to = now;
  for (OpOperand &use : token.getUses()) {
    Operation *user = use.getOwner();
    if (user->getParentRegion() != token.getParentRegion())
      continue; // it may wait, or not
    bool isEnd = user->hasTrait<OpTrait::IsTerminator>();
    auto branch = dyn_cast<RegionBranchOpInterface>(isEnd ? user->getParentOp() : user);
    if (isEnd && !branch)
      continue; // it returns from the function, and nobody has waited
    to = std::min(to, positionOf(user));
    if (branch)
      for (auto [operand, input] : nn::forwardsOf(branch))
        if (operand == &use)
          forwarded.push_back(input);
  }
  flight.isAwaited &= to < now;
  flight.spans.push_back({from, to});
}

void Timeline::fly(nn::AsyncStart start) {
  Flight &flight = flights.emplace_back();
  flight.start = start;
  llvm::SetVector<Value> tokens;
  tokens.insert(start.getToken());
  for (size_t next = 0; next < tokens.size(); ++next) {
    SmallVector<Value> forwarded;
    addSpan(flight, tokens[next], forwarded);
    tokens.insert_range(forwarded);
  }
  SmallVector<Value> held = start.getReadValues();
  held.append(start.getWrittenValues());
  for (Value value : held)
    if (int64_t buffer = bufferOf(value); buffer >= 0)
      for (auto [from, to] : flight.spans) {
        buffers[buffer].first = std::min(buffers[buffer].first, from);
        buffers[buffer].last = std::max(buffers[buffer].last, to);
      }
}

Timeline::Timeline(FunctionOpInterface function, nn::LimitsAttr limits) : limits(limits) {
  number(function.getFunctionBody());
  for (BlockArgument argument : function.getArguments())
    define(argument, -1);
  live(function.getFunctionBody());
  function.walk([&](nn::AsyncStart start) { fly(start); });
}

} // namespace k2c
