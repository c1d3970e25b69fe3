//===- PeakBuffers.cpp - What the arena holds when it is fullest -----------===//
#include "PeakBuffers.h"
#include "dialects/Kern/Kern.h"
#include "dialects/Mem/Mem.h"

using namespace mlir;

namespace k2c {

namespace {

class Peak {
public:
  Peak(const PlacedTimelines &timeline, SymbolTable &symbols, bool reuse)
      : timeline(timeline), symbols(symbols), reuse(reuse) {}

  /// Adds what is alive in `function` where it reaches its highest byte, and in the layers that reach it.
  void collect(FunctionOpInterface function);

  SmallVector<PeakBuffer> found;

private:
  bool isAlive(const Buffer &buffer, int64_t at) const {
    return !buffer.values.empty() && (!reuse || (buffer.first <= at && at <= buffer.last));
  }
  int64_t fullestMoment(const Timeline &of, const Buffer &top) const;
  void add(const Buffer &buffer);

  const PlacedTimelines &timeline;
  SymbolTable &symbols;
  bool reuse;
};

/// The moment of `top`'s live range at which most bytes are live.
int64_t Peak::fullestMoment(const Timeline &of, const Buffer &top) const {
  int64_t best = top.first, most = -1;
  for (int64_t at = top.first; at <= top.last; ++at) {
    int64_t bytes = 0;
    for (const Buffer &buffer : of.buffers)
      bytes += isAlive(buffer, at) ? buffer.bytes : 0;
    if (bytes > most)
      best = at, most = bytes;
  }
  return best;
}

/// A layer's argument lies in a buffer of its caller, its result where the argument lay.
void Peak::add(const Buffer &buffer) {
  for (PeakBuffer &known : found)
    if (known.offset == buffer.offset) {
      known.bytes = std::max(known.bytes, buffer.bytes);
      return;
    }
  found.push_back({buffer.values.front(), buffer.bytes, buffer.offset});
}

void Peak::collect(FunctionOpInterface function) {
  const Timeline &own = *timeline.at(function);
  int64_t top = -1, moment = 0;
  for (const Buffer &buffer : own.buffers)
    if (!buffer.values.empty() && buffer.offset + buffer.bytes > top) {
      top = buffer.offset + buffer.bytes;
      moment = fullestMoment(own, buffer);
    }
  SmallVector<nn::LayerOp> inner;
  function.walk([&](nn::LayersOp op) {
    for (FlatSymbolRefAttr callee : op.getCallees()) {
      auto layer = symbols.lookup<nn::LayerOp>(callee.getValue());
      int64_t peak = *mem::peakOf(layer);
      if (!reuse) {
        if (!llvm::is_contained(inner, layer))
          inner.push_back(layer);
      } else if (peak > top) {
        top = peak;
        moment = own.positionOf(op);
        inner = {layer};
      }
    }
  });
  for (const Buffer &buffer : own.buffers)
    if (isAlive(buffer, moment))
      add(buffer);
  for (nn::LayerOp layer : inner)
    collect(layer);
}

} // namespace

SmallVector<PeakBuffer> buffersAtPeak(FunctionOpInterface entry, const PlacedTimelines &timeline, SymbolTable &symbols,
                                      bool reuse) {
  Peak peak(timeline, symbols, reuse);
  peak.collect(entry);
  llvm::stable_sort(peak.found, [](const PeakBuffer &a, const PeakBuffer &b) { return a.bytes > b.bytes; });
  return std::move(peak.found);
}

std::string nameOf(Value value) {
  std::string what, names;
  if (auto call = value.getDefiningOp<kern::CallOp>())
    what = "@" + call.getCallee().str();
  else if (Operation *op = value.getDefiningOp())
    what = op->getName().getStringRef().str();
  else
    what = "argument " + std::to_string(cast<BlockArgument>(value).getArgNumber());
  auto function = value.getParentRegion()->getParentOfType<FunctionOpInterface>();
  value.getLoc()->walk([&](Location loc) {
    if (auto name = dyn_cast<NameLoc>(loc))
      names += (names.empty() ? "" : ", ") + name.getName().str();
    return WalkResult::advance();
  });
  return what + " in '" + function.getName().str() + "'" + (names.empty() ? "" : " (" + names + ")");
}

} // namespace k2c
