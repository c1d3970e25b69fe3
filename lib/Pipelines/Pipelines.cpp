//===- Pipelines.cpp - The order of passes --------------------------------===//
//
// Read aloud: numerics first, from shapes alone; then the plan; then data movement; then kernels, tiles and memory;
// then pointers. A verifier ends each form. Nothing else in k2c knows which pass follows which.
//
//===----------------------------------------------------------------------===//
#include "k2c/Pipelines/Pipelines.h"
#include "k2c/Conversion/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace k2c {

namespace {

void buildModelForm(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createSetNumerics(options.numerics));
  // From here on no pass may change an order of accumulation.
}

void buildPlannedForm(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createAttachPlan(options.plan));
  pm.addPass(createAbsorbMla());
  pm.addPass(createSampleOnDevice());
  pm.addPass(createCanonicalizerPass());
  // From here on decisions are read from the module, not taken.
}

void buildDistributedForm(OpPassManager &pm, const PipelineOptions &) {
  pm.addPass(createShardAttention());
  pm.addPass(createShardExperts());
  pm.addPass(createPartitionStages());
  pm.addPass(createShardVocabulary());
  pm.addPass(createBoundDispersion());
  // From here on every movement of rows is an op.
}

void buildScheduledForm(OpPassManager &pm, const PipelineOptions &) {
  pm.addPass(createFormKernels());
  pm.addPass(createChooseTiles());
  pm.addPass(createGroupLaunches());
  pm.addPass(createAssignMemory());
  pm.addPass(createAssignSlots());
  pm.addPass(createCertifyMemory());
  // From here on the peak of the arena is a number.
}

void buildRuntimeForm(OpPassManager &pm, const PipelineOptions &) {
  pm.addPass(createEmitKernels());
  pm.addPass(createLowerToRt());
  pm.addPass(createPrefetchWeights());
  pm.addPass(createOverlapCommunication());
}

void buildLlvmForm(OpPassManager &pm, const PipelineOptions &) { pm.addPass(createRtToLlvm()); }

} // namespace

void buildForm(Form form, OpPassManager &pm, const PipelineOptions &options) {
  switch (form) {
#define K2C_FORM(Name, name, summary)                                                                                  \
  case Form::Name:                                                                                                     \
    build##Name##Form(pm, options);                                                                                    \
    break;
#include "k2c/Transforms/Forms.def"
  case Form::Program:
    return;
  }
  if (form < Form::Llvm)
    pm.addPass(createVerifyForm({std::string(nameOf(form))}));
}

/// What a pipeline is for, and its passes.
static std::string described(Form form, const std::string &summary) {
  OpPassManager pm(ModuleOp::getOperationName());
  buildForm(form, pm, {});
  return summary + ": " + llvm::join(llvm::map_range(pm, [](Pass &pass) { return pass.getArgument(); }), ", ");
}

void registerPassesAndPipelines() {
  registerK2CTransformsPasses();
  registerK2CConversionPasses();
  registerTransformsPasses();
#define K2C_FORM(Name, name, summary)                                                                                  \
  PassPipelineRegistration<>(name "-form", described(Form::Name, summary),                                             \
                             [](OpPassManager &pm) { buildForm(Form::Name, pm, {}); });
#include "k2c/Transforms/Forms.def"
}

} // namespace k2c
