//===- Describe.cpp - From a kernel's region to its description -----------===//
#include "Builder.h"
#include "dialects/Nn/Nn.h"
#include "k2c/Kernels/Verify.h"

using namespace mlir;

namespace k2c {

/// The description of the anchor `ops`, not verified yet.
static MaybeDescribed describeOps(kern::FuncOp kernel, ArrayRef<Operation *> ops) {
  if (ops.size() == 1) {
    if (MaybeDescribed described = describeAttention(kernel, ops.front()))
      return described;
    if (MaybeDescribed described = describeOther(kernel, ops.front()))
      return described;
  }
  return describeLinear(kernel, ops);
}

FailureOr<DescribedKernel> describe(kern::FuncOp kernel) {
  SmallVector<Operation *> ops;
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (!isa<nn::SplitOp, nn::ReshapeOp>(op))
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
  if (Status sound = verify((*described)->desc); !sound)
    return kernel.emitError() << "kernel '" << kernel.getSymName() << "': " << sound.error().message;
  return *described;
}

} // namespace k2c
