// Devices, contexts and memory; what the environment says; what is counted.
#include "TestDriver.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

using namespace k2c::emulated;

namespace {

/// What `command` prints.
std::string printed(const std::string &command) {
  std::string text;
  FILE *pipe = ::popen(command.c_str(), "r");
  char some[4096];
  while (std::fgets(some, sizeof some, pipe))
    text += some;
  EXPECT_EQ(::pclose(pipe), 0);
  return text;
}

TEST(Devices, NothingButTheEntryPointsIsExported) {
  std::set<std::string> exported;
  std::istringstream lines(printed("readelf --wide --dyn-syms '" K2C_BINARY_DIR "/lib/libk2c-cuda.so'"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    const std::vector<std::string> row{std::istream_iterator<std::string>(words), {}};
    if (row.size() == 8 && row[6] != "UND" && row[6] != "Ndx")
      exported.insert(row[7]);
  }
  const std::set<std::string> wanted = {
#define K2C_CUDA(name, parameters) #name,
#include "base/CudaDriver.def"
  };
  EXPECT_EQ(exported, wanted);
}

TEST(Devices, TheDriverSaysWhatItIs) {
  const std::string text = run({}, [](TestDriver &driver) {
    int version = 0, value = 0;
    char name[64];
    const char *said = nullptr;
    EXPECT_EQ(driver.cuDriverGetVersion(&version), CUDA_SUCCESS);
    EXPECT_EQ(version, 13000);
    EXPECT_EQ(driver.cuDeviceGetName(name, sizeof name, 0), CUDA_SUCCESS);
    EXPECT_STREQ(name, "k2c emulated sm_90a");
    EXPECT_EQ(driver.cuDeviceGetName(name, 4, 0), CUDA_SUCCESS);
    EXPECT_STREQ(name, "k2c");
    EXPECT_EQ(driver.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0), CUDA_SUCCESS);
    EXPECT_EQ(value, 9);
    EXPECT_EQ(driver.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(9), 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuGetErrorName(CUDA_ERROR_NOT_READY, &said), CUDA_SUCCESS);
    EXPECT_STREQ(said, "CUDA_ERROR_NOT_READY");
    EXPECT_EQ(driver.cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &said), CUDA_SUCCESS);
    EXPECT_STREQ(said, "out of memory");
    EXPECT_EQ(driver.cuGetErrorName(static_cast<CUresult>(12345), &said), CUDA_ERROR_INVALID_VALUE);
  });
  EXPECT_TRUE(says(text, "k2c: emulated driver: kernels run instruction by instruction on this processor\n"));
  EXPECT_TRUE(says(text, "device attribute 9 is not emulated; ask for one of base/CudaDriver.h"));
}

TEST(Devices, ADeviceStatesTheSizesThatItIsToldTo) {
  const auto expectSizes = [](TestDriver &driver, int bytes, int multiprocessors) {
    int value = 0;
    EXPECT_EQ(driver.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0), CUDA_SUCCESS);
    EXPECT_EQ(value, bytes);
    EXPECT_EQ(driver.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), CUDA_SUCCESS);
    EXPECT_EQ(value, multiprocessors);
  };
  run({}, [&](TestDriver &driver) { expectSizes(driver, 60 << 20, 132); });
  run({{"K2C_EMULATED_L2", "4096"}, {"K2C_EMULATED_MULTIPROCESSORS", "4"}},
      [&](TestDriver &driver) { expectSizes(driver, 4096, 4); });
}

TEST(Devices, CallsNeedADriverAndAContext) {
  const Outcome outcome = runApart({}, [] {
    Api driver;
    int count = 0;
    CUdeviceptr address = 0;
    CUcontext context = nullptr;
    EXPECT_EQ(driver.cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(driver.cuMemAlloc_v2(&address, 16), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(driver.cuInit(1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuDeviceGetCount(&count), CUDA_SUCCESS);
    EXPECT_EQ(count, 1);
    EXPECT_EQ(driver.cuDevicePrimaryCtxRetain(&context, 1), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(driver.cuMemAlloc_v2(&address, 16), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(driver.cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(driver.cuCtxSetCurrent(reinterpret_cast<CUcontext>(48)), CUDA_ERROR_INVALID_CONTEXT);
  });
  EXPECT_EQ(outcome.status, 0) << outcome.text;
}

TEST(Devices, AContextThatIsReleasedIsGone) {
  const std::string text = run({}, [](TestDriver &driver) {
    CUdeviceptr address = driver.allocate(16);
    driver.stream();
    CUcontext again = nullptr;
    EXPECT_EQ(driver.cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
    EXPECT_EQ(again, driver.context);
    EXPECT_EQ(driver.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemAlloc_v2(&address, 16), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemAlloc_v2(&address, 16), CUDA_ERROR_INVALID_CONTEXT);
  });
  EXPECT_TRUE(says(text, "k2c: emulated driver: the process ends with 3 objects whose context has ended\n"));
}

TEST(Devices, AContextMayEndInACapture) {
  run({{"K2C_EMULATED_DEVICES", "2"}}, [](TestDriver &driver) {
    const CUstream first = driver.stream();
    const CUevent forked = driver.event();
    CUcontext other = nullptr;
    EXPECT_EQ(driver.cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamBeginCapture_v2(first, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuEventRecord(forked, first), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuCtxSetCurrent(other), CUDA_SUCCESS);
    const CUstream second = driver.stream();
    const CUdeviceptr memory = driver.allocate(4);
    EXPECT_EQ(driver.cuStreamWaitEvent(second, forked, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemsetD8Async(memory, 0, 4, second), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamSynchronize(second), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamDestroy_v2(first), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST(Devices, MemoryEnds) {
  run({{"K2C_EMULATED_MEMORY", "1048576"}}, [](TestDriver &driver) {
    size_t free = 0, total = 0, less = 0;
    CUdeviceptr address = 0;
    EXPECT_EQ(driver.cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
    EXPECT_EQ(total, 1048576u);
    EXPECT_EQ(driver.cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
    EXPECT_EQ(free, 1048576u - 4096); // the context
    EXPECT_EQ(driver.cuMemAlloc_v2(&address, free + 1), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(driver.cuMemAlloc_v2(&address, ~size_t(0)), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(driver.cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuMemAlloc_v2(&address, free), CUDA_SUCCESS);
    EXPECT_EQ(address % 256, 0u);
    CUdeviceptr more = 0;
    EXPECT_EQ(driver.cuMemAlloc_v2(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(driver.cuMemFree_v2(address + 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuMemFree_v2(address), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuMemAlloc_v2(&more, 1), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemGetInfo_v2(&less, &total), CUDA_SUCCESS);
    EXPECT_EQ(less, free - 512);
    uint32_t *pinned = driver.pinned(4);
    EXPECT_EQ(driver.cuMemFree_v2(reinterpret_cast<CUdeviceptr>(pinned)), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuMemFreeHost(reinterpret_cast<void *>(more)), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuMemFreeHost(pinned), CUDA_SUCCESS);
  });
}

/// A kernel of device 0 adds 1 to memory of device 1.
CUresult increasePeer(TestDriver &driver, bool isEnabled) {
  CUcontext peer = nullptr;
  int can = 0;
  EXPECT_EQ(driver.cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(driver.cuDeviceCanAccessPeer(&can, 1, 1), CUDA_SUCCESS);
  EXPECT_EQ(can, 0);
  EXPECT_EQ(driver.cuDevicePrimaryCtxRetain(&peer, 1), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuCtxSetCurrent(peer), CUDA_SUCCESS);
  const CUdeviceptr theirs = driver.allocate(4);
  const CUstream theirStream = driver.stream();
  EXPECT_EQ(driver.cuMemsetD8Async(theirs, 0, 4, theirStream), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuStreamSynchronize(theirStream), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuCtxSetCurrent(driver.context), CUDA_SUCCESS);
  if (isEnabled) {
    EXPECT_EQ(driver.cuCtxEnablePeerAccess(peer, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuCtxEnablePeerAccess(peer, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    EXPECT_EQ(driver.cuCtxEnablePeerAccess(driver.context, 0), CUDA_ERROR_INVALID_CONTEXT);
  }
  const CUstream stream = driver.stream();
  const CUdeviceptr ours = driver.allocate(4);
  const CUkernel increase = driver.kernel(driver.library(increaseEntry), "increase");
  EXPECT_EQ(driver.launch(increase, theirStream, 1, 1, theirs, 1), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(driver.launch(increase, stream, 1, 1, theirs, 1), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuMemcpyPeerAsync(ours, driver.context, theirs, driver.context, 4, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver.cuMemcpyPeerAsync(ours, driver.context, theirs, peer, 4, stream), CUDA_SUCCESS);
  const CUresult result = driver.cuStreamSynchronize(stream);
  uint32_t seen = 0;
  if (result == CUDA_SUCCESS) {
    EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(&seen, ours, 4, stream), CUDA_SUCCESS);
    EXPECT_EQ(seen, 1u);
  } else { // the other device's context is well
    EXPECT_EQ(driver.cuCtxSetCurrent(peer), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuCtxSynchronize(), CUDA_SUCCESS);
  }
  return result;
}

TEST(Devices, AKernelReachesAPeerThatIsEnabled) {
  run({{"K2C_EMULATED_DEVICES", "2"}}, [](TestDriver &driver) { EXPECT_EQ(increasePeer(driver, true), CUDA_SUCCESS); });
}

TEST(Devices, AKernelReachesNoOtherPeer) {
  const std::string text = run({{"K2C_EMULATED_DEVICES", "2"}}, [](TestDriver &driver) {
    EXPECT_EQ(increasePeer(driver, false), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  EXPECT_TRUE(says(text, "where there is no memory"));
}

TEST(Devices, ThreadsOfTheirOwnDevicesDoNotDisturbEachOther) {
  run({{"K2C_EMULATED_DEVICES", "4"}}, [](TestDriver &driver) {
    const CUlibrary library = driver.library(increaseEntry);
    std::vector<std::thread> threads;
    for (int device = 0; device < 4; ++device)
      threads.emplace_back([&, device] {
        CUcontext context = nullptr;
        EXPECT_EQ(driver.cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
        EXPECT_EQ(driver.cuCtxSetCurrent(context), CUDA_SUCCESS);
        const CUstream stream = driver.stream();
        const CUkernel increase = driver.kernel(library, "increase");
        const CUdeviceptr memory = driver.allocate(128);
        EXPECT_EQ(driver.cuMemsetD8Async(memory, 0, 128, stream), CUDA_SUCCESS);
        for (int i = 0; i < 50; ++i) {
          uint32_t seen = 0;
          EXPECT_EQ(driver.launch(increase, stream, 1, 32, memory, static_cast<uint64_t>(device) + 1), CUDA_SUCCESS);
          EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(&seen, memory, 4, stream), CUDA_SUCCESS);
          EXPECT_EQ(seen, static_cast<uint32_t>((device + 1) * (i + 1)));
        }
      });
    for (std::thread &thread : threads)
      thread.join();
  });
}

TEST(Report, CallsAreCounted) {
  const std::string file = testing::TempDir() + "/calls.json";
  const std::string text = run({{"K2C_EMULATED_CALLS", file}}, [](TestDriver &driver) {
    const CUstream stream = driver.stream();
    const CUdeviceptr memory = driver.allocate(1000);
    driver.cuMemFree_v2(driver.allocate(1000));
    const CUkernel increase = driver.kernel(driver.library(increaseEntry), "increase");
    driver.event();
    driver.pinned(1);
    driver.cuMemsetD8Async(memory, 0, 1000, stream);
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    driver.launch(increase, stream, 1, 32, memory, 1);
    driver.cuStreamEndCapture(stream, &graph);
    driver.cuGraphInstantiateWithFlags(&executable, graph, 0);
    driver.cuGraphLaunch(executable, stream);
    driver.cuGraphLaunch(executable, stream);
    EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
    driver.pinned(1);
    CUdeviceptr late = 0;
    EXPECT_EQ(driver.cuMemAlloc_v2(&late, 16), CUDA_ERROR_NOT_PERMITTED);
  });
  EXPECT_TRUE(says(text, "k2c: emulated driver: the process ends with 1 contexts retained, 1 allocations, 2 pinned "
                         "allocations, 1 streams, 1 events, 1 libraries, 1 graphs, 1 executable graphs\n"));
  const nlohmann::json report = nlohmann::json::parse(std::ifstream(file));
  EXPECT_EQ(report["calls"]["cuMemAlloc_v2"], 3);
  EXPECT_EQ(report["calls"]["cuGraphLaunch"], 2);
  EXPECT_EQ(report["calls"].count("cuCtxSynchronize"), 0u);
  EXPECT_EQ(report["graph_launches"], 2);
  EXPECT_EQ(report["kernels"], 2);
  EXPECT_EQ(report["instructions"], 2 * 12);
  EXPECT_EQ(report["late_allocations"], 2);
  EXPECT_EQ(report["peak_bytes"], nlohmann::json({141000000000 / 256 + 2048}));
  EXPECT_EQ(report["alive"], (nlohmann::json{{"contexts", 1},
                                             {"allocations", 1},
                                             {"pinned", 2},
                                             {"streams", 1},
                                             {"events", 1},
                                             {"libraries", 1},
                                             {"graphs", 1},
                                             {"executables", 1},
                                             {"lost", 0}}));
}

TEST(Report, NothingIsSaidOfAProcessThatCleansUp) {
  const std::string text = run({{"K2C_EMULATED_CALLS", "/nowhere/calls.json"}}, [](TestDriver &driver) {
    EXPECT_EQ(driver.cuStreamDestroy_v2(driver.stream()), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuLibraryUnload(driver.library(addEntry)), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  });
  EXPECT_EQ(text.find("the process ends with"), std::string::npos) << text;
  EXPECT_TRUE(says(text, "/nowhere/calls.json: cannot be written"));
}

} // namespace
