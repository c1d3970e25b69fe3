//===- Predict.h - The step time of a bundle ------------------------------===//
//
// The bundle's model is compiled again, as far as its kernels, with the options that its manifest states; kernels that
// differ from the manifest's are an error, so what is timed is the program that lies there.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PIPELINES_PREDICT_H
#define K2C_PIPELINES_PREDICT_H

#include "k2c/Planner/KernelTime.h"

namespace k2c {

struct PredictOptions {
  std::string bundle;
  std::string checkpoint; ///< the .onnx file that it was compiled from; "": it has its config.json
  std::string topology;   ///< a file that `k2c calibrate` wrote
  int64_t workers = 0;    ///< 0: the largest team that was measured
  StepShape shape;        ///< within the bundle's limits
  double expertsHit = 0;  ///< as in StepOptions; at least top-k, at most all experts
};

/// Seconds of one step, by kernel. Errors: no bundle; one of an ONNX file without that; a topology without measured
/// rates, or without those of so many workers; a shape beyond the limits.
Expected<StepTime> predictStep(const PredictOptions &options);

} // namespace k2c

#endif // K2C_PIPELINES_PREDICT_H
