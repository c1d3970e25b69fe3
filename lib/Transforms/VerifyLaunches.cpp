//===- VerifyLaunches.cpp - What launches touch at the same time ----------===//
//
// VerifyGroups.cpp proves of the calls of the scheduled form that no barrier is needed between those of a group. The
// same rules (CallEffects.h) hold for launches, from what the program itself says: an address has the bytes of its
// value, and a kernel what it does to each argument.
//
//   rt.launch nowait @route_plan grid(%one) args(%c, .., %routes)   %routes = rt.arena 18432 bytes 640
//   rt.launch @pack grid(%g) args(%x, %w, %routes, %m)              refused: another worker may still write them
//
//===----------------------------------------------------------------------===//
#include "VerifyLaunches.h"
#include "CallEffects.h"
#include "EqualValues.h"
#include "dialects/Rt/Rt.h"
#include "k2c/Kernels/TouchAttr.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace k2c {

namespace {

using Touched = CallEffects::Touched;

/// A launch and what it touches.
struct Member {
  rt::LaunchOp launch;
  SmallVector<Touched> touched;
};

class Launches {
public:
  Launches(ModuleOp module, StringRef who) : module(module), who(who), symbols(module) {}

  LogicalResult verify();

private:
  LogicalResult verifyAddress(rt::ArenaOp address, rt::ProgramOp program);
  LogicalResult verifyBlock(Block &block);
  LogicalResult verifyPair(const Member &first, const Member &second);
  FailureOr<Member> memberOf(rt::LaunchOp launch);
  Value placeOf(Value address);

  ModuleOp module;
  StringRef who;
  SymbolTable symbols;
  llvm::DenseMap<std::pair<int64_t, int64_t>, Value> places; ///< the first address of a value, by offset and bytes
  Value logits;                                              ///< the first address of them
};

std::string text(Value place) {
  if (auto arena = place.getDefiningOp<rt::ArenaOp>())
    return "bytes [" + std::to_string(arena.getOffset()) + ", " + std::to_string(arena.getOffset() + arena.getBytes()) +
           ") of the arena";
  return place.getDefiningOp<rt::LogitsOp>() ? "the step's logits" : "an address that may be one of the arena";
}

Overlap overlap(Value a, Value b) {
  auto first = a.getDefiningOp<rt::ArenaOp>(), second = b.getDefiningOp<rt::ArenaOp>();
  if (first && second)
    return overlapOf(first, second);
  if (!isa_and_nonnull<rt::ArenaOp, rt::LogitsOp>(a.getDefiningOp()) ||
      !isa_and_nonnull<rt::ArenaOp, rt::LogitsOp>(b.getDefiningOp()))
    return Overlap::Partial;
  return a == b ? Overlap::Same : Overlap::None;
}

/// One value for all addresses of what lies at one place.
Value Launches::placeOf(Value address) {
  if (auto arena = address.getDefiningOp<rt::ArenaOp>())
    return places.try_emplace({arena.getOffset(), arena.getBytes()}, address).first->second;
  if (address.getDefiningOp<rt::LogitsOp>())
    return logits = logits ? logits : address;
  return address;
}

FailureOr<Member> Launches::memberOf(rt::LaunchOp launch) {
  Member member{launch, {}};
  auto kernel = symbols.lookup<rt::KernelOp>(launch.getKernel());
  if (!kernel.getTouches())
    return launch.emitError() << who << ": @" << kernel.getSymName()
                              << " does not say what it touches, and workers do not meet before or behind it; let them "
                                 "meet, or lower the kernel again";
  for (auto [argument, touch] : llvm::zip_equal(launch.getArgs(), *kernel.getTouches())) {
    const Effect effect = effectOf(touch);
    Operation *source = argument.getDefiningOp();
    if (auto plane = dyn_cast_or_null<rt::PlaneOp>(source))
      member.touched.push_back({CachePlanes{symbols.lookup<rt::PlaneTableOp>(plane.getPlane()).getGroup()}, effect});
    else if (isa<rt::StepType>(argument.getType()))
      for (Capture capture : effect.captured())
        member.touched.push_back({capture, capturing(effect)});
    else if (isa<rt::PtrType>(argument.getType()) && !isa_and_nonnull<rt::WeightOp, rt::PlacementOp>(source))
      member.touched.push_back({placeOf(argument), effect});
  }
  return member;
}

/// Item i of both is of row i, if it is of both.
bool haveSameItems(rt::LaunchOp first, rt::LaunchOp second) {
  return areSame(first.getGrid(), second.getGrid()) && first.getArrivedAttr() == second.getArrivedAttr() &&
         first.getGathered() == second.getGathered();
}

LogicalResult Launches::verifyPair(const Member &first, const Member &second) {
  Shared shared;
  const bool haveSame = haveSameItems(first.launch, second.launch);
  if (!needsBarrier(orderOf(first.touched, second.touched, haveSame, overlap, &shared), isOnGpu(module)))
    return success();
  const std::string what = shared.first ? text(shared.second) + " while others have " + text(shared.first)
                                        : std::string("the cache or a capture that others have");
  rt::LaunchOp launch = second.launch, other = first.launch;
  return launch.emitError() << who << ": touches " << what << " in a nowait launch of @" << other.getKernel()
                            << "; workers must meet between the two, as group-launches leaves it";
}

LogicalResult Launches::verifyBlock(Block &block) {
  SmallVector<Member> group; // nowait launches since the last barrier
  for (auto launch : block.getOps<rt::LaunchOp>()) {
    if (!launch.getNowait() && group.empty())
      continue;
    FailureOr<Member> member = memberOf(launch);
    if (failed(member))
      return failure();
    for (const Member &other : group)
      if (failed(verifyPair(other, *member)))
        return failure();
    if (launch.getNowait())
      group.push_back(std::move(*member));
    else
      group.clear();
  }
  return success();
}

/// Each half of a step has an arena of its own.
LogicalResult Launches::verifyAddress(rt::ArenaOp address, rt::ProgramOp program) {
  const int64_t bytes = program.getSecond().value_or(program.getArenaBytes());
  if (address.getOffset() <= bytes && address.getBytes() <= bytes - address.getOffset())
    return success();
  return address.emitError() << who << ": " << text(address) << " are not in an arena of " << bytes
                             << " bytes; use one of assign-memory's size";
}

LogicalResult Launches::verify() {
  for (auto program : module.getOps<rt::ProgramOp>())
    for (auto function : module.getOps<func::FuncOp>()) {
      auto isInside = [&](rt::ArenaOp address) { return WalkResult(verifyAddress(address, program)); };
      if (function.walk(isInside).wasInterrupted())
        return failure();
    }
  for (auto function : module.getOps<func::FuncOp>())
    if (function.walk([&](Block *block) { return WalkResult(verifyBlock(*block)); }).wasInterrupted())
      return failure();
  return success();
}

} // namespace

LogicalResult verifyLaunches(ModuleOp module, StringRef who) { return Launches(module, who).verify(); }

} // namespace k2c
