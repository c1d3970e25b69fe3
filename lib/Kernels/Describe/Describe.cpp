//===- Describe.cpp - From a kernel's region to its description -----------===//
#include "Builder.h"
#include "dialects/Nn/Nn.h"
#include "k2c/Kernels/Verify.h"

using namespace mlir;

namespace k2c {

/// The description of the anchor `ops`, not verified yet.
static MaybeDescribed describeOps(kern::FuncOp kernel, ArrayRef<Operation *> ops) {
  if (MaybeDescribed described = describeElementwise(kernel, ops))
    return described;
  if (ops.size() == 1) {
    if (MaybeDescribed described = describeAttention(kernel, ops.front()))
      return described;
    if (MaybeDescribed described = describeExchange(kernel, ops.front()))
      return described;
    if (MaybeDescribed described = describeOther(kernel, ops.front()))
      return described;
  }
  return describeLinear(kernel, ops);
}

/// Scaled blocks are read as matrices only: a kernel would take rows of them for plain elements.
static LogicalResult checkStorage(kern::FuncOp kernel, const DescribedKernel &described) {
  for (auto [operand, source] : llvm::zip_equal(operands(described.desc), described.sources)) {
    if (source.kind != ArgumentSource::Argument || operand.matrix.isScaled())
      continue;
    auto type = dyn_cast<RankedTensorType>(kernel.getArgumentTypes()[source.index]);
    if (type && isa_and_nonnull<nn::BlocksAttr>(type.getEncoding()))
      return kernel.emitError() << "kernel '" << kernel.getSymName() << "' reads " << type
                                << " row by row; only matrices of linears are read in scaled blocks";
  }
  return success();
}

FailureOr<DescribedKernel> describe(kern::FuncOp kernel) {
  SmallVector<Operation *> ops;
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (!nn::isView(&op))
      ops.push_back(&op);
  if (ops.empty())
    return kernel.emitError() << "kernel '" << kernel.getSymName() << "' computes nothing";
  MaybeDescribed described = describeOps(kernel, ops);
  if (!described)
    return kernel.emitError() << "kernel '" << kernel.getSymName() << "': no kernel of this build computes '"
                              << ops.front()->getName() << "' with " << ops.size() - 1
                              << " further ops; form-kernels should have cut it";
  if (failed(*described))
    return failure();
  if (failed(checkStorage(kernel, **described)))
    return failure();
  if (Status sound = verify((*described)->desc); !sound)
    return kernel.emitError() << "kernel '" << kernel.getSymName() << "': " << sound.error().message;
  return *described;
}

const DescribedKernel *KernelDescriptions::find(kern::FuncOp kernel) {
  auto [entry, isNew] = known.try_emplace(kernel, failure());
  if (isNew)
    entry->second = describe(kernel);
  return succeeded(entry->second) ? &*entry->second : nullptr;
}

} // namespace k2c
