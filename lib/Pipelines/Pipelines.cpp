//===- Pipelines.cpp - The order of passes --------------------------------===//
//
// Read aloud: numerics first, from shapes alone; then the plan; then data movement; then kernels, tiles and memory;
// then pointers. A wall ends each form. Nothing else in k2c knows which pass follows which.
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
  ChooseTilesOptions tiles;
  tiles.lanes = options.target.lanes;
  tiles.registers = options.target.vectorRegisters;
  tiles.avx512 = options.target.hasAvx512;
  tiles.avx512Bf16 = options.target.hasAvx512Bf16;
  tiles.l1Bytes = options.target.l1Bytes;
  tiles.l2Bytes = options.target.l2Bytes;
  tiles.cores = options.cores;
  tiles.choice = options.tileChoice;
  pm.addPass(createChooseTiles(tiles));
  if (options.launchGroups)
    pm.addPass(createGroupLaunches());
  pm.addPass(createAssignMemory({options.bufferReuse}));
  addWall(pm, "scheduled");
  // From here on the peak of the arena is a number.
}

void buildRuntimeForm(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createLowerToRt());
  if (options.readAhead)
    pm.addPass(createReadAhead({options.target.l2Bytes / 4}));
  addWall(pm, "runtime");
}

void buildLlvmForm(OpPassManager &pm, const PipelineOptions &options) { pm.addPass(createRtToLlvm()); }

namespace {

/// `--planned-form="mla=absorbed"` in k2c-opt.
struct FormOptions : PassPipelineOptions<FormOptions> {
  Option<std::string> compute{*this, "compute", llvm::cl::init("f32")};
  Option<std::string> mla{*this, "mla", llvm::cl::init("phased")};
  Option<bool> avx512{*this, "avx512", llvm::cl::init(false)};
  Option<int64_t> expandedFrom{*this, "expanded-from", llvm::cl::init(-1)};
  Option<bool> fusion{*this, "fusion", llvm::cl::init(true)};
  Option<bool> launchGroups{*this, "launch-groups", llvm::cl::init(true)};
  Option<bool> bufferReuse{*this, "buffer-reuse", llvm::cl::init(true)};
  Option<bool> readAhead{*this, "read-ahead", llvm::cl::init(true)};

  PipelineOptions get() const {
    PipelineOptions options;
    options.compute = compute;
    options.mla = mla;
    if (avx512) {
      options.target.lanes = 16;
      options.target.vectorRegisters = 32;
      options.target.hasAvx512 = true;
    }
    options.expandedFrom = expandedFrom;
    options.fusion = fusion;
    options.launchGroups = launchGroups;
    options.bufferReuse = bufferReuse;
    options.readAhead = readAhead;
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
