//===- Describe.h - From a kernel's region to its description -------------===//
//
// A kern.func says in ops what a kernel computes; a KernelDesc says it in numbers, for the oracle, the cost model and
// the emitter. This is the only bridge between the two: views (nn.split, nn.reshape) become strides and offsets,
// weights become packed layouts, and every argument of the KernelDesc is traced to an argument or result of the
// kern.func.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_DESCRIBE_H
#define K2C_KERNELS_DESCRIBE_H

#include "dialects/Dist/Dist.h"
#include "dialects/Kern/Kern.h"
#include "dialects/Nn/NnSupport.h"
#include "k2c/Kernels/KernelDesc.h"
#include "llvm/ADT/SmallVector.h"

namespace k2c {

/// Where one argument of a KernelDesc comes from.
struct ArgumentSource {
  enum Kind : uint8_t {
    Argument, ///< argument `index` of the kern.func; pointer + `offset` elements, or a layer's number
    Result,   ///< result `index`; pointer + `offset` elements
    Constant, ///< the number `offset`
    OwnLayer  ///< the index of the layer whose function calls the kernel
  };
  Kind kind = Argument;
  unsigned index = 0;
  int64_t offset = 0;
  unsigned plane = 0;    ///< Role::Plane: which plane of the view, in the pool's order
  nn::IndicesAttr among; ///< Role::Layer: the number is the layer's ordinal in this set; null: its index + `offset`
  /// Places, Held, Subtrees of layer `among`: of so many experts in so many slots, and whose.
  int64_t experts = 0, slots = 0;
  dist::Holder holder = dist::Holder::World;
};

/// A kernel's description and the source of each of `operands(desc)`.
struct DescribedKernel {
  KernelDesc desc;
  llvm::SmallVector<ArgumentSource> sources;
};

/// Describes `kernel`. Emits an error at the op that no KernelDesc can express.
mlir::FailureOr<DescribedKernel> describe(kern::FuncOp kernel);

/// The descriptions of a module's kernels, each made once: an analysis that passes preserve as long as the bodies of
/// kernels stay what they are.
class KernelDescriptions {
public:
  explicit KernelDescriptions(mlir::Operation * /*module*/) {}

  /// Null when `kernel` has none; the error was reported at the kernel.
  const DescribedKernel *find(kern::FuncOp kernel);

private:
  llvm::DenseMap<mlir::Operation *, mlir::FailureOr<DescribedKernel>> known;
};

/// The element type of `type` as a DType; fails for types no kernel reads.
mlir::FailureOr<DType> dtypeOf(mlir::Type type);

} // namespace k2c

#endif // K2C_KERNELS_DESCRIBE_H
