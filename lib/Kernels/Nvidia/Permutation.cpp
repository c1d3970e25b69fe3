//===- Permutation.cpp - Routes sorted by expert, by warps ----------------------===//
//
// The stable counting sort of ../Cpu/Permutation.cpp, whose loops go from route to route. Here a lane has a route, and
// an item is a part of the routes:
//
//   counts[e] = routes of expert e before the part, and behind where it begins          all routes, by every item
//   offsets = sums of both over the experts before; next[e] = offsets[e] + those before the part
//   for each 32 routes of the part:
//     slot = next[e] + how many lanes below have e too
//     next[e] += how many lanes have it                                                by the first of them
//
// Every item counts all routes, which is quick, as the order does not matter and several loads are under way at once.
// So no warp waits for another, and results do not depend on how many there are. Counts are in shared memory; those of
// more experts than it holds, in scratch.
//
//===----------------------------------------------------------------------===//
#include "Permutation.h"
#include "../Cpu/Emitters.h"
#include "Lanes.h"
#include "Memory.h"

using namespace mlir;

namespace k2c::warp {

namespace {

using emit::Compare, emit::KernelBuilder, emit::Values;

constexpr int64_t countedTogether = 8, placedTogether = 4; // vectors of routes that are loaded before one is used

class PermutationEmitter {
public:
  PermutationEmitter(KernelBuilder &b, const PermutationDesc &d, int64_t parts, Value counts)
      : b(b), d(d), parts(parts), warp(b.builder(), b.builder().getUnknownLoc()), counts(counts),
        experts(b.argument(0)), permutation(emit::Permutation::of(b, b.argument(1), d.experts, d.topK)),
        routes(b.mul(b.rowCount(RowSpace::Token, 1), d.topK)), lane(b.extend(warp.id())), below(warp.below()) {}

  void emitItem(Value item) {
    part = item;
    begin = b.div(b.mul(item, routes), parts);
    end = b.div(b.mul(b.add(item, 1), routes), parts);
    b.loop(0, 2 * d.experts, lanes, [&](Value first) {
      Value at = b.add(first, lane);
      b.when(b.compare(Compare::Lt, at, 2 * d.experts), [&] { b.storeI32(number(0), counts, at); });
    });
    warp.sync();
    count();
    warp.sync();
    addUp();
    warp.sync();
    inVectors(begin, end, placedTogether, {},
              [&](Value first, ValueRange, int64_t vectors, Value last) { return place(first, vectors, last); });
    warp.sync();
  }

private:
  /// A route of this lane. `isIn` is null where all lanes have one.
  struct Route {
    Value number, isIn, expert, isPresent;
  };
  using Vectors = llvm::function_ref<Values(Value first, ValueRange state, int64_t vectors, Value last)>;

  Value number(int64_t value) { return b.constant(b.i32(), value); }

  /// body() of [first, last): `most` vectors at once, then one by one, with `last`, as some lanes may be beyond it.
  Values inVectors(Value first, Value last, int64_t most, ValueRange init, Vectors body) {
    const int64_t step = most * lanes;
    Value whole = b.add(first, b.mul(b.div(b.sub(last, first), step), step));
    Values state = b.loop(first, whole, b.constant(step), init,
                          [&](Value at, ValueRange carried) { return body(at, carried, most, Value()); });
    return b.loop(whole, last, b.constant(lanes), state,
                  [&](Value at, ValueRange carried) { return body(at, carried, 1, last); });
  }

  SmallVector<Route> load(Value first, int64_t vectors, Value last) {
    SmallVector<Route> loaded;
    for (int64_t i = 0; i < vectors; ++i) {
      Route route{b.add(b.add(first, lane), i * lanes), {}, {}, {}};
      auto read = [&] { return b.loadI32(experts, route.number); };
      if (last) {
        route.isIn = b.compare(Compare::Lt, route.number, last);
        route.expert =
            b.choose(route.isIn, b.i32(), [&] { return Values{read()}; }, [&] { return Values{number(-1)}; })[0];
      } else {
        route.expert = read();
      }
      loaded.push_back(route);
    }
    for (Route &route : loaded)
      route.isPresent =
          b.bitAnd(b.compare(Compare::Ge, route.expert, 0), b.compare(Compare::Lt, route.expert, d.experts));
    return loaded;
  }

  void count() {
    Values largest = inVectors(b.constant(0), routes, countedTogether, number(-1),
                               [&](Value first, ValueRange state, int64_t vectors, Value last) {
                                 Value most = state[0];
                                 for (const Route &route : load(first, vectors, last)) {
                                   most = b.max(most, route.expert);
                                   b.when(route.isPresent, [&] { countOne(route); });
                                 }
                                 return Values{most};
                               });
    b.fail(b.compare(Compare::Ge, warp.reduce(largest[0], /*isMax=*/true), d.experts), K2RT_STATUS_OUT_OF_RANGE);
  }

  void countOne(const Route &route) {
    Value isBefore = b.compare(Compare::Lt, route.number, begin);
    Value at = b.add(b.extend(route.expert), b.select(isBefore, b.constant(0), b.constant(d.experts)));
    LLVM::AtomicRMWOp::create(b.builder(), b.builder().getUnknownLoc(), LLVM::AtomicBinOp::add,
                              b.at(counts, at, DType::I32), number(1), LLVM::AtomicOrdering::monotonic, "block");
  }

  /// Offsets of all experts; where the part's first route of each goes.
  void addUp() {
    Value isFirst = b.compare(Compare::Eq, part, 0);
    Value all = b.loop(0, d.experts, lanes, number(0), [&](Value first, ValueRange sum) {
      Value expert = b.add(first, lane), isIn = b.compare(Compare::Lt, expert, d.experts);
      Values counted = b.choose(
          isIn, {b.i32(), b.i32()},
          [&] { return Values{b.loadI32(counts, expert), b.loadI32(counts, b.add(expert, d.experts))}; },
          [&] { return Values{number(0), number(0)}; });
      Value both = b.add(counted[0], counted[1]), upTo = warp.sumUpTo(both);
      Value offset = b.sub(b.add(sum[0], upTo), both);
      b.when(isIn, [&] { b.storeI32(b.add(offset, counted[0]), counts, expert); });
      b.when(b.bitAnd(isIn, isFirst), [&] { b.storeI32(offset, permutation.offsets, expert); });
      return Values{b.add(sum[0], warp.valueOf(upTo, number(lanes - 1)))};
    })[0];
    b.when(b.bitAnd(isFirst, b.compare(Compare::Eq, lane, 0)),
           [&] { b.storeI32(all, permutation.offsets, b.constant(d.experts)); });
  }

  Values place(Value first, int64_t vectors, Value last) {
    SmallVector<Route> loaded = load(first, vectors, last);
    Values peers;
    for (const Route &route : loaded)
      peers.push_back(warp.peers(b.select(route.isPresent, route.expert, number(-1))));
    for (auto [route, same] : llvm::zip(loaded, peers)) {
      Value expert = b.extend(route.expert), before = b.ones(b.bitAnd(same, below));
      Value next = b.choose(
          route.isPresent, b.i32(), [&] { return Values{b.loadI32(counts, expert)}; },
          [&] { return Values{number(0)}; })[0];
      warp.sync();
      b.when(b.bitAnd(route.isPresent, b.compare(Compare::Eq, before, 0)),
             [&] { b.storeI32(b.add(next, b.ones(same)), counts, expert); });
      warp.sync();
      Value slot = b.select(route.isPresent, b.add(next, before), number(-1));
      auto store = [&] { b.storeI32(slot, permutation.slotOfRoute, route.number); };
      if (route.isIn)
        b.when(route.isIn, store);
      else
        store();
      b.when(route.isPresent, [&] { b.storeI32(b.truncate(route.number), permutation.routeOfSlot, b.extend(slot)); });
    }
    return {};
  }

  KernelBuilder &b;
  const PermutationDesc &d;
  int64_t parts;
  Lanes warp;
  Value counts; ///< of each expert: before the part, and later where its next route goes; then behind the part's begin
  Value experts;
  emit::Permutation permutation;
  Value routes, lane, below;
  Value part, begin, end; ///< of the item
};

} // namespace

LogicalResult addPermutation(ModuleOp module, const PermutationDesc &desc, int64_t parts, llvm::StringRef symbol,
                             int64_t warps) {
  KernelBuilder b(module, symbol, lanes);
  const int64_t bytes = 2 * desc.experts * byteWidth(DType::I32);
  Value counts;
  if (bytes * warps <= maxSharedBytes) {
    FailureOr<SharedMemory> shared =
        sharedMemory(module, *module.getOps<LLVM::LLVMFuncOp>().begin(), /*ofCta=*/0, bytes, warps);
    if (failed(shared))
      return failure();
    counts = shared->ofWarp;
  } else {
    counts = b.scratch(0);
  }
  PermutationEmitter emitter(b, desc, parts, counts);
  b.items([&](Value item) { emitter.emitItem(item); });
  b.finish();
  return success();
}

} // namespace k2c::warp
