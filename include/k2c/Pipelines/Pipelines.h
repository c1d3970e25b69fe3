//===- Pipelines.h - The order of passes ----------------------------------===//
//
// The only place that knows which pass follows which. A form is what a pipeline leaves behind; the verify-form pass
// that ends the pipeline checks it. What the passes of the first two pipelines write down was decided before the IR
// exists; all others read it from the module.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PIPELINES_PIPELINES_H
#define K2C_PIPELINES_PIPELINES_H

#include "k2c/Transforms/Forms.h"
#include "k2c/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

namespace k2c {

/// Decisions taken before the IR exists; set-numerics and attach-plan write them down.
struct PipelineOptions {
  SetNumericsOptions numerics;
  AttachPlanOptions plan;
};

/// Adds the passes that lead from the form before to `form`, and its verifier behind them. Run in the order of the
/// forms; `form` is not Program.
void buildForm(Form form, mlir::OpPassManager &pm, const PipelineOptions &options);

/// Registers every pass, and one pipeline a form with default options, with the pass registry (k2c-opt).
void registerPassesAndPipelines();

} // namespace k2c

#endif // K2C_PIPELINES_PIPELINES_H
