//===- CallEffects.h - Which calls may run at the same time ---------------===//
//
// Calls of one group run at the same time: while a worker is still in the first, another may be in the last. Two calls
// that touch the same bytes, one of them writing, need a barrier between them, but for these:
//
//   the same value, row by row   both take row i as item i of equal grids: one worker has it in both, in program order;
//                                not on a GPU, where launches of a group are in no order
//   rows of different forms      one writes the expanded rows, the other the absorbed ones (mla.merge_forms)
//
// Calls touch their values, the planes of caches, what the step captures and the partials of a split-KV attention. What
// they do to each is what `operands(desc)` says of it (Effect.h); no kernel is known by name here. Read twice: by
// group-launches, with values, by the verifier of the scheduled form, with bytes, and by that of the runtime form.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_TRANSFORMS_CALLEFFECTS_H
#define K2C_LIB_TRANSFORMS_CALLEFFECTS_H

#include "dialects/Kern/Kern.h"
#include "dialects/Rt/Rt.h"
#include "k2c/Kernels/Describe.h"
#include "k2c/Kernels/TileConfig.h"
#include "mlir/IR/SymbolTable.h"

namespace k2c {

/// The planes of all pools of a cache group.
struct CachePlanes {
  int64_t group;
  bool operator==(const CachePlanes &other) const { return group == other.group; }
};

/// What workers of a split-KV attention keep for its second launch: one place for all calls of a kernel.
struct Partials {
  mlir::StringAttr kernel;
  bool operator==(const Partials &other) const { return kernel == other.kernel; }
};

/// What a call touches.
struct CallEffects {
  struct Touched {
    std::variant<mlir::Value, CachePlanes, Capture, Partials> memory;
    Effect effect;
    /// Null: it is no value.
    mlir::Value value() const { return std::holds_alternative<mlir::Value>(memory) ? std::get<0>(memory) : nullptr; }
  };
  KernelDesc desc;
  Grid grid;
  llvm::SmallVector<Touched> touched;
};

/// The effects of `call`. Emits an error at a kernel that has no tile or no description.
mlir::FailureOr<CallEffects> effectsOf(kern::CallOp call, mlir::SymbolTable &symbols, KernelDescriptions &descriptions);

/// How the bytes of two values lie: apart, at the same place, or otherwise.
enum class Overlap : uint8_t { None, Same, Partial };

/// How the values lie of which two addresses are.
Overlap overlapOf(rt::ArenaOp first, rt::ArenaOp second);

/// What a kernel does to an array of the step that it captures into, of which `effect` is that on the step.
Effect capturing(const Effect &effect);

/// What must hold between two calls, the first of which is first in the program.
enum class CallOrder : uint8_t {
  Free,       ///< nothing
  SameWorker, ///< each worker runs the first before the second; they may be in one group
  Barrier     ///< all workers end the first before any begins the second
};

/// Whether calls in that order are in different groups. `isOnGpu`: their kernels run there.
inline bool needsBarrier(CallOrder order, bool isOnGpu) {
  return order == CallOrder::Barrier || (isOnGpu && order == CallOrder::SameWorker);
}
/// Whether the kernels of a module run on a GPU.
inline bool isOnGpu(mlir::ModuleOp module) {
  return module->hasAttrOfType<kern::GpuAttr>(kern::KernDialect::targetAttrName);
}

/// What two calls share: a value of each, or none where it is a cache, a capture or partials.
struct Shared {
  mlir::Value first, second;
};

/// The order of two calls. When it is not Free, `shared` says why.
CallOrder orderOf(const CallEffects &first, const CallEffects &second,
                  llvm::function_ref<Overlap(mlir::Value, mlir::Value)> overlap, Shared *shared = nullptr);

/// The same of what two launches touch. `byRow`: item i of both is of row i, if it is of both.
CallOrder orderOf(llvm::ArrayRef<CallEffects::Touched> first, llvm::ArrayRef<CallEffects::Touched> second, bool byRow,
                  llvm::function_ref<Overlap(mlir::Value, mlir::Value)> overlap, Shared *shared = nullptr);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_CALLEFFECTS_H
