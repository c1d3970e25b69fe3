// Variables of the environment: which values are refused, and calls that are told to fail.
#include "TestDriver.h"

using namespace k2c::emulated;

namespace {

/// What cuInit says in this environment.
std::string refusal(const Environment &environment) {
  const Outcome outcome = runApart(environment, [] {
    Api driver;
    EXPECT_EQ(driver.cuInit(0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
  });
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  return outcome.text;
}

TEST(Settings, BadValuesAreErrorsOfInit) {
  const std::string driver = "k2c: emulated driver: ";
  EXPECT_EQ(refusal({{"K2C_EMULATED_DEVICES", "17"}}),
            driver + "K2C_EMULATED_DEVICES: is '17'; give a number from 1 to 16\n");
  EXPECT_EQ(refusal({{"K2C_EMULATED_STRICT", "yes"}}),
            driver + "K2C_EMULATED_STRICT: is 'yes'; give a number from 0 to 1\n");
  EXPECT_EQ(refusal({{"K2C_EMULATED_MEMORY", "0"}}),
            driver + "K2C_EMULATED_MEMORY: is '0'; give a number from 1 to 1125899906842624\n");
  EXPECT_EQ(refusal({{"K2C_EMULATED_L2", "2147483648"}}),
            driver + "K2C_EMULATED_L2: is '2147483648'; give a number from 1 to 2147483647\n");
  EXPECT_EQ(refusal({{"K2C_EMULATED_MULTIPROCESSORS", "0"}}),
            driver + "K2C_EMULATED_MULTIPROCESSORS: is '0'; give a number from 1 to 1024\n");
  EXPECT_EQ(refusal({{"K2C_EMULATED_ARCH", "gfx90a"}}),
            driver + "K2C_EMULATED_ARCH: is 'gfx90a'; give an architecture of PTX, as sm_90a\n");
  for (const std::string value : {"cuMemAlloc:3", "0", "cuInit", "1:CUDA_SUCCESS", "1:CUDA_ERROR"})
    EXPECT_EQ(refusal({{"K2C_EMULATED_FAIL", value}}),
              driver + "K2C_EMULATED_FAIL: is '" + value +
                  "'; give [NAME:]N[:ERROR]: an entry point, a number from 1 on, an error\n");
}

TEST(Settings, AVariableThatIsMisspelledIsAnError) {
  EXPECT_EQ(refusal({{"K2C_EMULATED_SEEDS", "3"}}),
            "k2c: emulated driver: K2C_EMULATED_SEEDS: there is no such variable; docs/Emulator.md lists those that "
            "there are\n");
}

TEST(Settings, TheNthCallOfAnEntryPointFails) {
  run({{"K2C_EMULATED_FAIL", "cuMemAlloc_v2:2:CUDA_ERROR_OUT_OF_MEMORY"}}, [](TestDriver &driver) {
    CUdeviceptr address = 0;
    driver.allocate(16);
    EXPECT_EQ(driver.cuMemAlloc_v2(&address, 16), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(address, 0u);
    driver.allocate(16);
  });
  run({{"K2C_EMULATED_FAIL", "6"}}, [](TestDriver &driver) { // three calls have been
    driver.allocate(16);
    driver.allocate(16);
    CUstream stream = nullptr;
    EXPECT_EQ(driver.cuStreamCreate(&stream, 0), CUDA_ERROR_UNKNOWN);
    driver.stream();
  });
}

template <class... A> CUresult callWithZeros(CUresult (*function)(A...)) { return function(A()...); }

/// Calls entry point `index` with arguments that are all zero.
CUresult callWithZeros(const Api &driver, size_t index) {
  const std::function<CUresult()> calls[] = {
#define K2C_CUDA(name, parameters) [&] { return callWithZeros(driver.name); },
#include "base/CudaDriver.def"
  };
  return calls[index]();
}

TEST(Settings, EveryEntryPointCanFail) {
  const std::vector<std::string> names = {
#define K2C_CUDA(name, parameters) #name,
#include "base/CudaDriver.def"
  };
  for (size_t i = 0; i < names.size(); ++i) {
    const Outcome outcome = runApart({{"K2C_EMULATED_FAIL", names[i] + ":1:CUDA_ERROR_NOT_FOUND"}}, [&] {
      Api driver;
      EXPECT_EQ(callWithZeros(driver, i), CUDA_ERROR_NOT_FOUND) << names[i];
      EXPECT_NE(callWithZeros(driver, i), CUDA_ERROR_NOT_FOUND) << names[i];
    });
    EXPECT_EQ(outcome.status, 0) << outcome.text;
  }
}

TEST(Settings, ACallThatFailsGivesBackAllTheSame) {
  for (const std::string name :
       {"cuMemFree_v2", "cuMemFreeHost", "cuStreamDestroy_v2", "cuEventDestroy_v2", "cuLibraryUnload", "cuGraphDestroy",
        "cuGraphExecDestroy", "cuStreamEndCapture", "cuDevicePrimaryCtxRelease_v2", "cuCtxSynchronize"}) {
    const std::string text = run({{"K2C_EMULATED_FAIL", name + ":1:CUDA_ERROR_NOT_FOUND"}}, [&](TestDriver &driver) {
      const CUstream stream = driver.stream();
      const CUdeviceptr memory = driver.allocate(16);
      const CUevent event = driver.event();
      const CUlibrary library = driver.library(addEntry);
      void *const pinned = driver.pinned(1);
      CUgraph graph = nullptr;
      CUgraphExec executable = nullptr;
      driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
      std::map<std::string, CUresult> ended = {{"cuStreamEndCapture", driver.cuStreamEndCapture(stream, &graph)}};
      EXPECT_EQ(graph == nullptr, name == "cuStreamEndCapture");
      EXPECT_EQ(driver.cuStreamQuery(stream), CUDA_SUCCESS); // nothing captures it any more
      if (graph) {
        EXPECT_EQ(driver.cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
        ended["cuGraphDestroy"] = driver.cuGraphDestroy(graph);
        ended["cuGraphExecDestroy"] = driver.cuGraphExecDestroy(executable);
      }
      ended["cuCtxSynchronize"] = driver.cuCtxSynchronize();
      ended["cuMemFree_v2"] = driver.cuMemFree_v2(memory);
      ended["cuMemFreeHost"] = driver.cuMemFreeHost(pinned);
      ended["cuEventDestroy_v2"] = driver.cuEventDestroy_v2(event);
      ended["cuLibraryUnload"] = driver.cuLibraryUnload(library);
      ended["cuStreamDestroy_v2"] = driver.cuStreamDestroy_v2(stream);
      ended["cuDevicePrimaryCtxRelease_v2"] = driver.cuDevicePrimaryCtxRelease_v2(0);
      for (const auto &[call, result] : ended)
        EXPECT_EQ(result, call == name ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS) << name << ": " << call;
    });
    EXPECT_EQ(text.find("the process ends with"), std::string::npos) << name << ": " << text;
  }
}

TEST(Settings, ZerosCrashNoEntryPoint) {
  run({}, [](TestDriver &driver) {
    size_t count = 0;
#define K2C_CUDA(name, parameters) ++count;
#include "base/CudaDriver.def"
    for (size_t i = 0; i < count; ++i)
      callWithZeros(driver, i);
  });
}

} // namespace
