//===- Pipelines.h - The order of passes ----------------------------------===//
//
// The only place that knows which pass follows which. A form is what a pipeline leaves behind; its wall is the
// verify-form pass that ends the pipeline.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PIPELINES_PIPELINES_H
#define K2C_PIPELINES_PIPELINES_H

#include "k2c/Kernels/TileConfig.h"
#include "mlir/Pass/PassManager.h"
#include <cstdint>
#include <string>

namespace k2c {

/// The forms of architecture.md, in order.
enum class Form { Model, Planned, Distributed, Scheduled, Runtime, Llvm, Program };

/// Decisions taken before the IR exists; the passes only write them down.
struct PipelineOptions {
  std::string compute = "f32";                  ///< f32 | bf16
  std::string mla = "phased";                   ///< phased | absorbed | expanded
  std::string topology = "host";                ///< its name, for attach-plan
  TargetInfo target;                            ///< what tiles are chosen for
  int64_t cores = 1;                            ///< of the device
  int64_t expandedFrom = -1;                    ///< tokens; see attach-plan
  int64_t weightBytes = 0, cacheBytes = 0;      ///< of the plan
  double prefillSeconds = 0, decodeSeconds = 0; ///< of the plan's two steps
  bool fusion = true;                           ///< form-kernels joins ops
  bool launchGroups = true;                     ///< group-launches runs
  bool bufferReuse = true;                      ///< assign-memory gives dead buffers' bytes away
  bool readAhead = true;                        ///< read-ahead runs
  int64_t tileChoice = 0;                       ///< choose-tiles takes the n-th cheapest tile, from 0
};

/// Each adds the passes that lead from the form before to its own, and the wall behind them. Run in this order.
void buildModelForm(mlir::OpPassManager &pm, const PipelineOptions &options);
void buildPlannedForm(mlir::OpPassManager &pm, const PipelineOptions &options);
void buildDistributedForm(mlir::OpPassManager &pm, const PipelineOptions &options);
void buildScheduledForm(mlir::OpPassManager &pm, const PipelineOptions &options);
void buildRuntimeForm(mlir::OpPassManager &pm, const PipelineOptions &options);
void buildLlvmForm(mlir::OpPassManager &pm, const PipelineOptions &options);

/// Registers every pass, and one pipeline a form, with the pass registry (k2c-opt).
void registerPassesAndPipelines();

} // namespace k2c

#endif // K2C_PIPELINES_PIPELINES_H
