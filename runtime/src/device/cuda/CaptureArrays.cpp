// The largest attention logits go both ways: they are those of all steps.
#include "device/cuda/CaptureArrays.h"
#include <algorithm>

namespace k2c::runtime {

std::vector<CaptureArrays::Array> CaptureArrays::arraysOf(const Manifest &manifest, const StepCaptures &captures) {
  using Step = k2rt_ir_step;
  const CaptureChoice &choice = captures.choice;
  const int64_t rows = captureRows(manifest, choice), choices = choicesPerRow(manifest) * 4;
  std::vector<Array> arrays;
  const auto add = [&](void *Step::*field, int64_t rowBytes, int64_t fixed, bool isRead, bool isWritten) {
    arrays.push_back({field, rowBytes, fixed, rows, isRead, isWritten, {}});
  };
  if (choice.routes || captures.counts)
    add(&Step::capture_experts, choices, 0, false, true);
  if (captures.counts)
    arrays.back().rows = manifest.limits.step_tokens;
  if (choice.routes)
    add(&Step::capture_weights, choices, 0, false, true);
  if (choice.forced) {
    add(&Step::forced_experts, choices, 0, true, false);
    add(&Step::forced_weights, choices, 0, true, false);
  }
  if (choice.hidden) {
    add(&Step::capture_hidden, hiddenPerRow(manifest) * 4, 0, false, true);
    add(&Step::capture_max_logit, 0, manifest.layers * manifest.heads * 4, true, true);
  }
  return arrays;
}

int64_t CaptureArrays::bytesOf(const Manifest &manifest, const StepCaptures &captures) {
  int64_t bytes = 0;
  for (const Array &array : arraysOf(manifest, captures))
    bytes += array.bytes(array.rows);
  return bytes;
}

Expected<CaptureArrays> CaptureArrays::allocate(const Driver &driver, const Manifest &manifest,
                                                const StepCaptures &captures) {
  CaptureArrays made;
  made.driver = &driver;
  made.arrays = arraysOf(manifest, captures);
  for (Array &array : made.arrays) {
    Expected<DeviceBytes> memory = allocateOnDevice(driver, array.bytes(array.rows), "captures");
    if (!memory)
      return memory.takeError();
    array.memory = std::move(*memory);
  }
  return made;
}

void CaptureArrays::setAddresses(k2rt_ir_step &step) const {
  for (const Array &array : arrays)
    step.*array.field = reinterpret_cast<void *>(array.memory.get());
}

/// An array may be announced and have no bytes: routes of a model without experts.
Status CaptureArrays::checkKnown(const k2rt_ir_step &step) const {
  using Step = k2rt_ir_step;
  const std::pair<void *Step::*, const char *> fields[] = {
      {&Step::forced_experts, "forced_experts"},   {&Step::forced_weights, "forced_weights"},
      {&Step::capture_experts, "capture_experts"}, {&Step::capture_weights, "capture_weights"},
      {&Step::capture_hidden, "capture_hidden"},   {&Step::capture_max_logit, "capture_max_logit"}};
  for (const auto &[field, name] : fields)
    if (step.*field && std::none_of(arrays.begin(), arrays.end(),
                                    [wanted = field](const Array &array) { return array.field == wanted; }))
      return Error{"step", std::string("has ") + name + ", for which the device has no memory",
                   "say what is captured when the device is created"};
  return {};
}

Status CaptureArrays::copyToDevice(const k2rt_ir_step &step, CUstream stream) const {
  Status done;
  for (const Array &array : arrays)
    if (const int64_t bytes = array.bytes(step.layer_rows); done && array.isRead && step.*array.field && bytes > 0)
      done = driver->call<&Cuda::cuMemcpyHtoDAsync_v2>(array.memory.get(), static_cast<const void *>(step.*array.field),
                                                       static_cast<size_t>(bytes), stream);
  return done;
}

bool CaptureArrays::areWritten(const k2rt_ir_step &step) const {
  return std::any_of(arrays.begin(), arrays.end(),
                     [&](const Array &array) { return array.isWritten && step.*array.field; });
}

Status CaptureArrays::copyBack(const k2rt_ir_step &step, CUstream stream) const {
  Status done;
  for (const Array &array : arrays)
    if (const int64_t bytes = array.bytes(step.layer_rows); done && array.isWritten && step.*array.field && bytes > 0)
      done = driver->call<&Cuda::cuMemcpyDtoHAsync_v2>(step.*array.field, array.memory.get(),
                                                       static_cast<size_t>(bytes), stream);
  return done;
}

} // namespace k2c::runtime
