//===- DeviceRates.cpp - Time of the kernels of a device ----------------------===//

#include "DeviceRates.h"

#include <cstdio>

using namespace k2c;
using namespace k2c::planner;

DeviceRates::DeviceRates(const PlanRequest &request) {
  const Device &device = request.topology.device;
  const ReachedRates &kernels = device.kernels;
  const bool f32 = request.compute == DType::F32;
  const Sourced<FlopRate> &wide = f32 ? device.f32 : device.bf16;
  const bool isPublished = request.weights == WeightFormat::Published && request.spec.quantization;
  const bool fp8 =
      device.fp8 && (request.phase == PlanPhase::Train ? request.compute == DType::F8E4M3 : !f32 && isPublished);
  const Sourced<FlopRate> &fast = fp8 ? *device.fp8 : wide;
  double shareOfMemory = kernels.memory.value, shareOfAttention = kernels.attention.value,
         shareOfBackward = kernels.attentionBackward.value, shareOfWide = kernels.bf16.value,
         shareOfFast = fp8 ? kernels.fp8.value : shareOfWide;
  if (const std::optional<Inefficiency> &given = request.workload.inefficiency) {
    shareOfMemory = 1 / given->memory;
    shareOfAttention = shareOfBackward = 1 / given->attention;
    shareOfWide = shareOfFast = 1 / given->experts;
  }
  isCpu = device.kind == DeviceKind::Cpu;
  memory = device.memoryRead.value.value * shareOfMemory;
  attention = device.whole(wide.value).value * shareOfAttention;
  attentionBackward = device.whole(wide.value).value * shareOfBackward;
  linears = device.whole(fast.value).value * shareOfFast;
  plain = device.whole(wide.value).value * shareOfWide;
  launch = kernels.launch.value.value;
  attentionFill = double(kernels.attentionFill.value);
  tileRows = double(kernels.tileRows.value);
  sendReceive = kernels.sendReceive.value.value;
  besideTransfers = 1 - double(kernels.transferSms.value) / double(device.cores);
  transferRate = kernels.transferRate.value;
  activationBytes = combineBytes = f32 ? 4 : 2;
  fillDepth = double(kernels.fill.value.value) / (fp8 ? 1 : activationBytes);
  dispatchBytes = fp8 ? 1 + 4.0 / 128 : activationBytes;
  // Tensor cores take no scales: values are read in bf16 and written in FP8 before a product reads them, and again
  // along the other dimension for the gradients of weights (DeepSeek-V3 report, section 3.5.2).
  castBytes = fp8 ? 2 + 1 : 0, castBackward = fp8 ? 2 + 1 + 1 : 0, transposeBytes = fp8 ? 1 + 1 : 0;

  notes.push_back("memory " + format(device.memoryRead.value) + " (" + device.memoryRead.source + ")");
  notes.push_back(std::string(f32 ? "f32 " : "bf16 ") + format(Flops(device.whole(wide.value).value)) + "/s (" +
                  wide.source + ")");
  if (fp8)
    notes.push_back("linears in fp8, " + format(Flops(fast.value.value)) + "/s (" + fast.source + ")");
  if (request.workload.inefficiency || !isCpu) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "kernels reach %.3g of memory's rate, of arithmetic's %.3g in attention and %.3g in linears",
                  shareOfMemory, shareOfAttention, shareOfFast);
    const bool isPeak = shareOfMemory == 1 && shareOfAttention == 1 && shareOfFast == 1;
    notes.push_back(text + std::string(request.workload.inefficiency ? " (workload)"
                                       : isPeak ? " (peak: the topology states no kernels, and real ones take longer)"
                                                : " (topology)"));
  }
}
