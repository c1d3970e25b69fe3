//===- GpuTest.cpp - A GPU is measured over a driver that tests play --------===//
#include "GpuMeasurement.h"
#include "base/Driver.h"
#include "fake/FakeCuda.h"
#include "k2c/Calibrate/Calibrate.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::calibration;
using runtime::FakeCuda;
using runtime::fakeDriver;
using runtime::givesBack;

namespace {

NvidiaTarget hopper() { return *NvidiaTarget::forArch("sm_90a"); }

/// As code that the driver takes. Its kernels do nothing, so the first wrong sum is the end.
class Gpu : public testing::Test {
protected:
  Gpu() {
    for (const auto &[kernel, entry] : {std::pair(&kernels.near, "k0"), std::pair(&kernels.streamed, "k1")}) {
      kernel->entry = entry;
      kernel->ptx = kernel->cubin = std::string("fake ") + entry;
    }
  }
  std::string measure() {
    cuda.set("idle", 1);
    cuda.set("threads", 128);
    cuda.set("arguments", 3);
    Expected<std::unique_ptr<Driver>> driver = Driver::open(fakeDriver);
    Expected<GpuFacts> gpu = readGpu(**driver, 0);
    if (!gpu)
      return gpu.error().text();
    Expected<GpuTimings> timings = measureGpu(
        **driver, *gpu, kernels, {Seconds(0), deadline, [&](int64_t percent) { percents.push_back(percent); }});
    wasAbandoned = (*driver)->abandoned();
    return timings ? "measured" : timings.error().text();
  }

  FakeCuda cuda;
  GpuKernels kernels = gpuKernels(hopper(), 3, mebibytes(1));
  std::optional<Seconds> deadline;
  std::vector<int64_t> percents;
  bool wasAbandoned = false;
  const std::string wrongSum =
      "calibration: a kernel left 0 where the sum is 0.1348; report it with the GPU's name"; // of 1,024 products
};

GpuTiming taking(double seconds) { return {{seconds, seconds * 1.25, seconds * 1.5}}; }

/// A launch takes 2 us, and graphs 10 us beside; the linears 100, 5 and 50 us a launch.
GpuTimings steady() {
  GpuTimings timings;
  timings.one = taking(12e-6);
  timings.many = taking(10e-6 + 1001 * 2e-6);
  timings.streamed = taking(10e-6 + 102e-6);
  timings.near = taking(10e-6 + 64 * 7e-6);
  timings.rows = taking(10e-6 + 4 * 52e-6);
  timings.copy = taking(1e-3);
  timings.copied = Bytes(50'000'000);
  return timings;
}

} // namespace

// A third of 60 MiB holds panels of 1,024 rows for 264 CTAs, 17.3 MB; eight times of it is 503 MB.
TEST(GpuKernels, AreAsLargeAsL2Asks) {
  const GpuKernels kernels = gpuKernels(hopper(), 264, mebibytes(60));
  EXPECT_EQ(kernels.near.linear().w.k, 1024);
  EXPECT_EQ(kernels.near.bytesOfWeights(), 264 * 32 * 1024 * 2);
  EXPECT_EQ(kernels.streamed.linear().w.k, 4096);
  EXPECT_EQ(kernels.streamed.bytesOfWeights(), 8 * 264 * 32 * 4096 * 2);
  EXPECT_TRUE(kernels.nearFits);
}

// Panels of 128 rows for 264 CTAs are 2,162,688 bytes, which is a third of 6,488,064.
TEST(GpuKernels, SayWhetherAThirdOfL2HoldsTheNarrowest) {
  const GpuKernels fit = gpuKernels(hopper(), 264, Bytes(6'488'064)),
                   beyond = gpuKernels(hopper(), 264, Bytes(6'488'063));
  EXPECT_EQ(fit.near.linear().w.k, 128);
  EXPECT_TRUE(fit.nearFits);
  EXPECT_EQ(beyond.near.linear().w.k, 128);
  EXPECT_FALSE(beyond.nearFits);
  EXPECT_FALSE(gpuKernels(hopper(), 264, kibibytes(1)).nearFits);
}

TEST(GpuRates, AreWorkOverTimeBeyondLaunches) {
  const GpuKernels kernels = gpuKernels(hopper(), 264, mebibytes(60));
  const Expected<GpuRates> rates = ratesOf(steady(), kernels);
  ASSERT_TRUE(rates) << rates.error().text();
  const double near = 264 * 32 * 1024, streamed = 8.0 * 264 * 32 * 4096;
  EXPECT_NEAR(rates->launch.value, 2e-6, 1e-15);
  EXPECT_NEAR(rates->memoryRead.value / (2 * streamed / 100e-6), 1, 1e-9);
  EXPECT_NEAR(rates->l2Read->value / (2 * (near + 1024 + 264 * 32) / 5e-6), 1, 1e-9);
  EXPECT_NEAR(rates->f32.value / (2 * 256 * near / 50e-6), 1, 1e-9);
  EXPECT_NEAR(rates->fromHost.value, 50e9, 1);
  EXPECT_NEAR(rates->spread, 0.25, 1e-9);
}

TEST(GpuRates, HaveNoneOfAnL2ThatWeightsDoNotFit) {
  GpuTimings timings = steady();
  timings.near = {};
  const Expected<GpuRates> rates = ratesOf(timings, gpuKernels(hopper(), 264, mebibytes(6)));
  ASSERT_TRUE(rates) << rates.error().text();
  EXPECT_FALSE(rates->l2Read);
  EXPECT_NEAR(rates->f32.value / (2 * 256 * (264 * 32 * 128) / 50e-6), 1, 1e-9);
  EXPECT_NEAR(rates->spread, 0.25, 1e-9);
}

TEST(GpuRates, AreRefusedWhereLaunchesThatWorkTakeNoLonger) {
  const GpuKernels kernels = gpuKernels(hopper(), 264, mebibytes(60));
  GpuTimings timings = steady();
  timings.near = taking(64 * 2e-6);
  EXPECT_EQ(ratesOf(timings, kernels).error().text(),
            "calibration: 64 launches of a linear took 128 us, and as many "
            "empty ones 138 us; run it again while nothing else uses the GPU");
  EXPECT_EQ(ratesOf(timings, kernels).error().code, K2RT_DEVICE_FAILED);
  timings = steady();
  timings.many = timings.one;
  EXPECT_EQ(ratesOf(timings, kernels).error().text(), "calibration: 1 launch of a linear took 112 us, and as many "
                                                      "empty ones 12 us; run it again while nothing else uses the GPU");
}

TEST_F(Gpu, ComparesWhatKernelsComputed) {
  EXPECT_EQ(measure(), wrongSum);
  EXPECT_EQ(percents, (std::vector<int64_t>{33, 66, 99}));
  EXPECT_EQ(cuda.calls("cuGraphInstantiateWithFlags"), 5);
  EXPECT_EQ(cuda.calls("cuLaunchKernelEx"), 1 + 1001 + 1 + 64 + 4);
  EXPECT_EQ(cuda.calls("cuGraphLaunch"), 3 * 5);
  EXPECT_EQ(cuda.calls("cuLibraryLoadData"), 2);
  EXPECT_EQ(cuda.alive(), 0);
}

TEST_F(Gpu, RunsNothingForTheRateOfAnL2ThatWeightsDoNotFit) {
  kernels.nearFits = false;
  EXPECT_EQ(measure(), wrongSum);
  EXPECT_EQ(cuda.calls("cuLaunchKernelEx"), 1 + 1001 + 1 + 4);
  EXPECT_EQ(cuda.calls("cuGraphLaunch"), 3 * 4);
}

TEST_F(Gpu, TakesPtxWhereTheDriverHasNoUseForACubin) {
  cuda.fail("cuLibraryLoadData", 1, CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(measure(), wrongSum);
  EXPECT_EQ(cuda.calls("cuLibraryLoadData"), 3);
  cuda.reset();
  kernels.streamed.cubin.clear();
  EXPECT_EQ(measure(), wrongSum);
  EXPECT_EQ(cuda.calls("cuLibraryLoadData"), 2);
  cuda.reset();
  kernels.streamed.ptx = "no code";
  EXPECT_EQ(measure(), "cuLibraryLoadData: failed with CUDA_ERROR_INVALID_PTX (218), a PTX JIT compilation failed on "
                       "kernel k1: line 1: no code");
  EXPECT_EQ(cuda.alive(), 0);
}

/// Each call that measuring makes: of many alike the first and the last.
TEST_F(Gpu, NamesTheCallThatFailsAndLeavesNothingBehind) {
  ASSERT_EQ(measure(), wrongSum);
  for (const auto &[name, count] : cuda.allCalls())
    for (int at = 1; at <= count; at += count > 20 && at == 1 ? count - 1 : 1) {
      cuda.reset();
      cuda.fail(name.c_str(), at, 999);
      const std::string said = measure();
      if (givesBack(name) || (name == "cuStreamQuery" && at == count)) // the last is asked before all is given back
        EXPECT_EQ(said, wrongSum) << name << " " << at;
      else
        EXPECT_EQ(said.rfind(name + ": failed with CUDA_ERROR_UNKNOWN (999), unknown error", 0), 0u)
            << name << " " << at << ": " << said;
      EXPECT_EQ(cuda.alive(), 0) << name << " " << at;
    }
}

TEST_F(Gpu, IsAskedUntilWhatRunsHasEnded) {
  cuda.set("hang", 3);
  EXPECT_EQ(measure(), wrongSum);
  EXPECT_GE(cuda.calls("cuStreamQuery"), 2 * (1 + 3 * 6 + 1));
  EXPECT_EQ(cuda.calls("cuEventSynchronize") + cuda.calls("cuStreamSynchronize"), 0) << "which may wait for ever";
  EXPECT_EQ(cuda.alive(), 0);
}

TEST_F(Gpu, NamesWhatFailsWhileItRuns) {
  cuda.fail("cuStreamQuery", 5, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(measure(), "cuStreamQuery: failed with CUDA_ERROR_ILLEGAL_ADDRESS (700), an illegal memory access was "
                       "encountered on a row through weights of L2");
}

TEST_F(Gpu, LeavesTheDriverIfWhatRunsWhenACallFailsDoesNotEnd) {
  deadline = Seconds(0.01);
  cuda.set("endless", 2);
  cuda.fail("cuEventRecord", 2, 999); // behind a launch
  EXPECT_EQ(measure(), "cuEventRecord: failed with CUDA_ERROR_UNKNOWN (999), unknown error");
  EXPECT_TRUE(wasAbandoned);
  EXPECT_EQ(cuda.calls("cuMemFree_v2") + cuda.calls("cuCtxSynchronize"), 0);
}

/// Each wait, by the question at which it hangs: what never ends is named, and no call waits for it.
TEST_F(Gpu, NamesWhatDoesNotEndAndLeavesTheDriver) {
  const std::pair<int, const char *> waits[] = {{1, "the first copy"},
                                                {2, "an empty launch"},
                                                {3, "a graph of empty launches"},
                                                {4, "a row through weights of memory"},
                                                {5, "a row through weights of L2"},
                                                {6, "a graph of 256 rows"},
                                                {7, "a copy from the host"},
                                                {20, "the copy of a sum"}};
  deadline = Seconds(0.01);
  for (const auto &[query, name] : waits) {
    cuda.reset();
    cuda.set("endless", query);
    EXPECT_EQ(measure(), std::string("calibration: ") + name +
                             " has not ended within 0.01 s; run it again while nothing else uses the GPU");
    EXPECT_TRUE(wasAbandoned) << name;
    for (const auto &[call, count] : cuda.allCalls())
      if (givesBack(call) && call != "cuGraphDestroy") { // of graphs that were instantiated
        EXPECT_EQ(count, 0) << name << ": " << call;
      }
    EXPECT_GT(cuda.alive(), 0) << name;
  }
}

TEST_F(Gpu, RefusesADriverThatStatesNoL2) {
  for (const auto attribute : {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
                               CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH})
    cuda.set(("attribute" + std::to_string(attribute)).c_str(), 100);
  Expected<std::unique_ptr<Driver>> driver = Driver::open(fakeDriver);
  const Expected<GpuCalibration> calibrated = calibrateGpu(**driver, 0, {});
  EXPECT_EQ(calibrated.error().text(),
            "device 0: the driver states no bytes of L2 of Fake GPU; install a later driver");
  EXPECT_EQ(calibrated.error().code, K2RT_DEVICE_FAILED);
}
