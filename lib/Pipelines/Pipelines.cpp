//===- Pipelines.cpp - The order of passes --------------------------------===//
//
// Read aloud: numerics first, from shapes alone; then the plan; then data movement; then kernels, tiles and memory; then
// pointers. A wall ends each form. Nothing else in k2c knows which pass follows which.
//
//===----------------------------------------------------------------------===//
#include "k2c/Pipelines/Pipelines.h"
#include "k2c/Conversion/Passes.h"
#include "k2c/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace k2c {

static void addWall(OpPassManager &pm, const char *form) { pm.addPass(createVerifyForm({form})); }

void buildModelForm(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createSetNumerics({options.compute, options.mla}));
  addWall(pm, "model");
  // From here on no pass may change an order of accumulation.
}

void buildPlannedForm(OpPassManager &pm, const PipelineOptions &options) {
  AttachPlanOptions plan;
  plan.topology = options.topology;
  plan.expandedFrom = options.expandedFrom;
  plan.weightBytes = options.weightBytes;
  plan.cacheBytes = options.cacheBytes;
  plan.prefillSeconds = options.prefillSeconds;
  plan.decodeSeconds = options.decodeSeconds;
  pm.addPass(createAttachPlan(plan));
  pm.addPass(createAbsorbMla());
  pm.addPass(createCanonicalizerPass());
  addWall(pm, "planned");
  // From here on decisions are read from dist.plan, not taken.
}

void buildDistributedForm(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createShardExperts());
  addWall(pm, "distributed");
  // From here on every movement of rows is an op.
}

void buildScheduledForm(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createFormKernels({options.fusion}));
  pm.addPass(createChooseTiles({options.cpu, options.tileChoice}));
  pm.addPass(createAssignMemory({options.bufferReuse}));
  addWall(pm, "scheduled");
  // From here on the peak of the arena is a number.
}

void buildRuntimeForm(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createLowerToRt({options.cpu}));
  addWall(pm, "runtime");
}

void buildLlvmForm(OpPassManager &pm, const PipelineOptions &options) { pm.addPass(createRtToLlvm()); }

namespace {

/// `--planned-form="mla=absorbed"` in k2c-opt.
struct FormOptions : PassPipelineOptions<FormOptions> {
  Option<std::string> compute{*this, "compute", llvm::cl::init("f32")};
  Option<std::string> mla{*this, "mla", llvm::cl::init("phased")};
  Option<std::string> cpu{*this, "cpu", llvm::cl::init("x86-64-v3")};
  Option<int64_t> expandedFrom{*this, "expanded-from", llvm::cl::init(-1)};
  Option<bool> fusion{*this, "fusion", llvm::cl::init(true)};
  Option<bool> bufferReuse{*this, "buffer-reuse", llvm::cl::init(true)};

  PipelineOptions get() const {
    PipelineOptions options;
    options.compute = compute;
    options.mla = mla;
    options.cpu = cpu;
    options.expandedFrom = expandedFrom;
    options.fusion = fusion;
    options.bufferReuse = bufferReuse;
    return options;
  }
};

void registerForm(const char *flag, const char *summary, void (*build)(OpPassManager &, const PipelineOptions &)) {
  PassPipelineRegistration<FormOptions>(
      flag, summary, [build](OpPassManager &pm, const FormOptions &options) { build(pm, options.get()); });
}

} // namespace

void registerPassesAndPipelines() {
  registerK2CTransformsPasses();
  registerK2CConversionPasses();
  registerTransformsPasses();
  registerForm("model-form", "Frontend output to the model form", buildModelForm);
  registerForm("planned-form", "Model form to planned form", buildPlannedForm);
  registerForm("distributed-form", "Planned form to distributed form", buildDistributedForm);
  registerForm("scheduled-form", "Distributed form to scheduled form", buildScheduledForm);
  registerForm("runtime-form", "Scheduled form to runtime form", buildRuntimeForm);
  registerForm("llvm-form", "Runtime form to LLVM", buildLlvmForm);
}

} // namespace k2c
