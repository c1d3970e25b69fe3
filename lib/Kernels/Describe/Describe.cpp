//===- Describe.cpp - From a kernel's region to its description -----------===//
#include "Builder.h"
#include "dialects/Nn/Nn.h"

using namespace mlir;

namespace k2c {

FailureOr<DescribedKernel> describe(kern::FuncOp kernel) {
  SmallVector<Operation *> ops;
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (!isa<nn::SplitOp, nn::ReshapeOp>(op))
      ops.push_back(&op);
  if (ops.empty())
    return kernel.emitError() << "kernel '" << kernel.getSymName() << "' computes nothing";
  if (ops.size() == 1) {
    if (MaybeDescribed described = describeAttention(kernel, ops.front()))
      return *described;
    if (MaybeDescribed described = describeOther(kernel, ops.front()))
      return *described;
  }
  if (MaybeDescribed described = describeLinear(kernel, ops))
    return *described;
  return kernel.emitError() << "kernel '" << kernel.getSymName() << "': no kernel of this build computes '"
                            << ops.front()->getName() << "' with " << ops.size() - 1
                            << " further ops; form-kernels should have cut it";
}

} // namespace k2c
