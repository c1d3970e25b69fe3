//===- CalibrateGpu.cpp - Measures a GPU with the compiler's own kernels ---===//
//
// The topology `gpu` of the device, in which what was measured takes the place of datasheets and estimates.
//
//===----------------------------------------------------------------------===//
#include "Clock.h"
#include "GpuMeasurement.h"
#include "Measurement.h"
#include "base/Utf8.h"
#include "k2c/Calibrate/Calibrate.h"

namespace k2c {

using namespace calibration;

static bool isEmulated(const GpuFacts &gpu) { return gpu.name.rfind(emulatedGpu, 0) == 0; }

/// Without a GPU the file says that it is of none.
static std::string sourceOf(const GpuFacts &gpu) {
  if (isEmulated(gpu))
    return "emulated on " + today() + ": times of an interpreter, and not of a GPU";
  return std::string(measuredSource) + ", " + today();
}

/// What kernels reach of the memory's rate is in the rate now, and what copies get of the host's link, where it is
/// known that there is one.
static void replaceRates(Topology &topology, const GpuRates &rates, const std::string &source) {
  Device &device = topology.device;
  device.memoryRead = {Bandwidth(rounded(rates.memoryRead.value)), source};
  device.kernels.memory = {1, source};
  if (rates.l2Read)
    device.l2Read = {Bandwidth(rounded(rates.l2Read->value)), source};
  device.f32 = {FlopRate(rounded(rates.f32.value)), source};
  device.kernels.launch = {Seconds(rounded(rates.launch.value)), source};
  if (!topology.host)
    return;
  topology.host->bandwidth = {Bandwidth(rounded(rates.fromHost.value)), source};
  topology.host->efficiency = {1, source};
}

Expected<GpuCalibration> calibrateGpu(const Driver &driver, int32_t device, const CalibrateOptions &options) {
  Expected<GpuFacts> gpu = readGpu(driver, device);
  if (!gpu)
    return gpu.takeError();
  Expected<Topology> topology = gpuTopology(driver, *gpu);
  if (!topology)
    return topology.takeError();
  const Device &known = topology->device;
  if (known.l2.value <= Bytes(0))
    return Error{K2RT_DEVICE_FAILED, "device " + std::to_string(device),
                 "the driver states no bytes of L2 of " + shortened(gpu->name), "install a later driver"};
  Expected<NvidiaTarget> target = NvidiaTarget::forArch(known.arch);
  if (!target)
    return target.takeError();
  GpuKernels kernels = gpuKernels(*target, NvidiaTarget::ctasPerCore * known.cores, known.l2.value);
  if (!kernels.nearFits && options.note)
    options.note("L2 has " + format(known.l2.value) + ", less than three times the narrowest weights of " +
                 format(Bytes(kernels.near.bytesOfWeights())) + ": what it reads in a second is not measured");
  ObjectOptions objects;
  objects.cacheDir = options.cacheFolder;
  objects.note = options.note;
  if (options.progress)
    objects.progress = [&](int64_t done, int64_t total) { options.progress("kernels", done, total); };
  if (Status compiled = compileForGpu(kernels, *gpu, objects); !compiled)
    return compiled.takeError();
  MeasureOptions measure;
  measure.budget = Seconds(1); // a device that was idle is slow at first
  if (!isEmulated(*gpu))       // which takes as long as its kernels are, as in runs
    measure.deadline = Seconds(60);
  if (options.progress)
    measure.progress = [&](int64_t percent) { options.progress("rates", percent, 100); };
  Expected<GpuTimings> timings = measureGpu(driver, *gpu, kernels, measure);
  if (!timings)
    return timings.takeError();
  Expected<GpuRates> rates = ratesOf(*timings, kernels);
  if (!rates)
    return rates.takeError();
  replaceRates(*topology, *rates, sourceOf(*gpu));
  topology->description += ", " + topology->device.memoryRead.source;
  return GpuCalibration{std::move(*topology), rates->fromHost, int64_t(timings->one.runs.size()), rates->spread};
}

} // namespace k2c
