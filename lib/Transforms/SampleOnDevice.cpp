//===- SampleOnDevice.cpp - A GPU takes greedy samples itself -------------===//
//
// Logits of a GPU that only the host can sample cross the bus each step: 655 kB a row of Kimi K2's. The greedy choice
// needs no draw, so the device makes it, a block of a row a worker, and an id crosses:
//
//   nn.sample %l, %b    ->    %best = nn.block_argmax %l block 512
//                             nn.greedy_sample %best of %l, %b
//                             nn.sample %l, %b
//
// nn.sample stays: it is what hands the logits to the step, where the host draws for rows whose temperature is above 0.
// Processors keep their sampler, which has the logits in its caches and one row for each worker.
//
//===----------------------------------------------------------------------===//
#include "dialects/Kern/Kern.h"
#include "dialects/Nn/Nn.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/Remark.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

namespace k2c {
#define GEN_PASS_DEF_SAMPLEONDEVICE
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// Columns of a block: 16 vectors of a warp, so one row of Kimi K2's 163,840 logits is for 320 of an H200's 1,056
/// warps, and the last choice of a row is among ten vectors of ids.
constexpr int64_t blockColumns = 512;

/// Whether rows of these logits are sampled on the device already.
bool isTaken(Value logits) {
  return llvm::any_of(logits.getUsers(), [](Operation *user) { return isa<nn::GreedySampleOp>(user); });
}

void takeGreedily(nn::SampleOp sample) {
  auto logits = cast<RankedTensorType>(sample.getLogits().getType());
  const int64_t blocks = llvm::divideCeil(logits.getDimSize(1), blockColumns);
  OpBuilder b(sample);
  auto type = RankedTensorType::get({logits.getDimSize(0), blocks}, b.getI32Type(), logits.getEncoding());
  auto best = nn::BlockArgmaxOp::create(b, sample.getLoc(), type, sample.getLogits(), blockColumns);
  nn::GreedySampleOp::create(b, sample.getLoc(), best.getResult(), sample.getLogits(), sample.getBatch());
  remark(sample.getLoc(), "sample-on-device", "greedy",
         "the device takes greedy samples of " + std::to_string(logits.getDimSize(1)) + " logits in " +
             std::to_string(blocks) + " blocks",
         {{"blocks", blocks}});
}

struct SampleOnDevice : impl::SampleOnDeviceBase<SampleOnDevice> {
  using SampleOnDeviceBase::SampleOnDeviceBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(expectForm(module, getArgument(), Form::Planned, Form::Distributed)))
      return signalPassFailure();
    if (!module->hasAttrOfType<kern::GpuAttr>(kern::KernDialect::targetAttrName))
      return;
    module.walk([](nn::SampleOp sample) {
      if (!isTaken(sample.getLogits()))
        takeGreedily(sample);
    });
  }
};

} // namespace
} // namespace k2c
