//===- Builder.h - Filling a KernelDesc and its argument sources ----------===//
#ifndef K2C_LIB_KERNELS_DESCRIBE_BUILDER_H
#define K2C_LIB_KERNELS_DESCRIBE_BUILDER_H

#include "Views.h"
#include "k2c/Kernels/Describe.h"

namespace k2c {

/// Collects what `describe` finds in one kernel. The `add...` functions append argument sources in the order of
/// `operands(desc)`; each returns false after an error, which stops the description.
class DescBuilder {
public:
  explicit DescBuilder(kern::FuncOp kernel) : kernel(kernel) {}

  /// Rows read through views; `rows` receives width and stride.
  bool addRows(mlir::Value value, Rows &rows);
  /// As addRows for part `part` of the `parts` of equal width that a row has.
  bool addPart(mlir::Value value, int64_t part, int64_t parts, Rows &rows);
  /// As addRows for [rows][heads][dims]; `headStride` receives the elements from head to head.
  bool addHeads(mlir::Value value, Rows &rows, int64_t &headStride);
  /// An argument passed as it is: a weight, the step, a permutation.
  bool addArgument(mlir::Value value);
  /// Plane `plane` of a cache view, or of the pool an append writes.
  bool addPlane(mlir::Value view, unsigned plane);
  /// Layer index `value` + `offset`, or the number `offset` without one.
  bool addLayer(mlir::Value value, int64_t offset);
  /// The layer whose function calls the kernel, for kernels whose ops do not name it.
  bool addOwnLayer();
  /// The ordinal of layer `value` in `among`.
  bool addOrdinal(mlir::Value value, nn::IndicesAttr among);
  /// Parts of the placement that an op names by layer, among, count and slots: where this rank's tokens may go; the
  /// experts in the slots of all ranks; what `holder` has, experts and subtrees.
  template <class Op> bool addPlaces(Op op) { return addPlacement(op, dist::Holder::Rank); }
  template <class Op> bool addAllHeld(Op op) { return addPlacement(op, dist::Holder::World); }
  template <class Op> bool addHeld(Op op, dist::Holder holder, dist::Holder subtreesOf) {
    return addPlacement(op, holder) && addPlacement(op, subtreesOf);
  }
  /// The kernel result that `value` is yielded as.
  bool addResult(mlir::Value value, Rows &rows);
  bool addResult(mlir::Value value);

  /// Fails where `ok` is false: an error was reported.
  mlir::FailureOr<DescribedKernel> finish(bool ok, KernelBody body);

private:
  template <class Op> bool addPlacement(Op op, dist::Holder holder) {
    if (!addOrdinal(op.getLayer(), op.getAmong()))
      return false;
    sources.back().experts = op.getCount(), sources.back().slots = op.getSlots();
    sources.back().holder = holder;
    return true;
  }
  bool argumentIndex(mlir::Value value, unsigned &index);
  bool resultIndex(mlir::Value value, unsigned &index);

  kern::FuncOp kernel;
  llvm::SmallVector<ArgumentSource> sources;
};

/// Description of a linear with prologue and epilogue (Linear.cpp), element-wise ops (Elementwise.cpp), attention
/// (Attention.cpp), experts on several ranks (Exchange.cpp), all others (Others.cpp). `ops` are the kernel's ops
/// without views. Null when the anchor is not theirs.
using MaybeDescribed = std::optional<mlir::FailureOr<DescribedKernel>>;
MaybeDescribed describeLinear(kern::FuncOp kernel, llvm::ArrayRef<mlir::Operation *> ops);
MaybeDescribed describeElementwise(kern::FuncOp kernel, llvm::ArrayRef<mlir::Operation *> ops);
MaybeDescribed describeAttention(kern::FuncOp kernel, mlir::Operation *op);
MaybeDescribed describeOther(kern::FuncOp kernel, mlir::Operation *op);
MaybeDescribed describeExchange(kern::FuncOp kernel, mlir::Operation *op);

/// What a list makes of values: an element, or one of each part of their rows.
using ElementTerms = llvm::SmallVector<ElementTerm, 2>;
using KnownTerms = llvm::DenseMap<mlir::Value, ElementTerms>;

/// Appends the steps of `op` to `list`. `makeInput` gives the terms of a value that is not known yet and that `op`
/// takes in `parts`; none where the kernel has no place for it. Fails after an error.
llvm::LogicalResult
appendSteps(nn::ElementwiseOp op, Elementwise &list, KnownTerms &known,
            llvm::function_ref<mlir::FailureOr<ElementTerms>(mlir::Value value, int64_t parts)> makeInput);

/// Elements of a row, and the type of a tensor's elements, which a kernel reads.
int64_t rowElements(mlir::Value value);
DType elementOf(mlir::Value value);

/// Completes a matrix whose sizes are set by how the elements of `weight` are stored: f16 is widened when it is packed,
/// scaled blocks stay as they are. Fails, silently, for element types that kernels do not read.
mlir::LogicalResult setStorage(Matrix &matrix, mlir::Value weight);

} // namespace k2c

#endif // K2C_LIB_KERNELS_DESCRIBE_BUILDER_H
