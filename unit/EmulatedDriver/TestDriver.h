// The driver as the runtime opens it: by its path, in a process of its own for each test, since a process has one
// driver and the environment is read once.
#ifndef K2C_EMULATEDDRIVER_TESTDRIVER_H
#define K2C_EMULATEDDRIVER_TESTDRIVER_H

#include "base/CudaDriver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace k2c::emulated {

/// The entry points of a library.
struct Api {
#define K2C_CUDA(name, parameters) CUresult(*name) parameters = nullptr;
#include "base/CudaDriver.def"

  explicit Api(const std::string &path = K2C_BINARY_DIR "/lib/libk2c-cuda.so") {
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      std::fprintf(stderr, "%s\n", dlerror());
      return;
    }
#define K2C_CUDA(name, parameters) name = reinterpret_cast<decltype(name)>(dlsym(library, #name));
#include "base/CudaDriver.def"
  }
};

using Environment = std::map<std::string, std::string>;

/// What a process said and how it ended.
struct Outcome {
  int status = -1;
  std::string text;
};

/// Runs `body` in a process with these variables; its stdout and stderr are the text. Failed expectations make its
/// status other than 0.
inline Outcome runApart(const Environment &environment, const std::function<void()> &body) {
  int ends[2];
  if (pipe(ends) != 0)
    return {};
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    for (const auto &[name, value] : environment)
      setenv(name.c_str(), value.c_str(), 1);
    body();
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  }
  close(ends[1]);
  Outcome outcome;
  char some[4096];
  for (ssize_t got; (got = read(ends[0], some, sizeof some)) > 0;)
    outcome.text.append(some, static_cast<size_t>(got));
  close(ends[0]);
  waitpid(child, &outcome.status, 0);
  return outcome;
}

/// Whether `text` has `part` in it.
inline testing::AssertionResult says(const std::string &text, const std::string &part) {
  if (text.find(part) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << text << "' does not say '" << part << "'";
}

/// A module of one entry `name` with 64-bit parameters a, b and c, some registers, and `body` from line 7 on. %r0 is
/// the thread's number in the grid.
inline std::string entryOf(const std::string &name, const std::string &body) {
  return ".visible .entry " + name +
         "(.param .u64 a, .param .u64 b, .param .u64 c)\n"
         "{ .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<16>;\n"
         "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r0, %r0, %r1, %r2;\n" +
         body + "\n}\n";
}
inline std::string moduleOf(const std::string &entries) {
  return ".version 8.6\n.target sm_90a\n.address_size 64\n" + entries;
}

/// c[i] = a[i] + b[i], 32 bits each.
inline const std::string addEntry =
    entryOf("add", "mul.wide.u32 %d0, %r0, 4; ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u64 %d3, [c];\n"
                   "add.s64 %d1, %d1, %d0; add.s64 %d2, %d2, %d0; add.s64 %d3, %d3, %d0;\n"
                   "ld.global.u32 %r3, [%d1]; ld.global.u32 %r4, [%d2]; add.u32 %r3, %r3, %r4;\n"
                   "st.global.u32 [%d3], %r3;");
/// a[i] += b, where b is a number.
inline const std::string increaseEntry =
    entryOf("increase", "mul.wide.u32 %d0, %r0, 4; ld.param.u64 %d1, [a]; ld.param.u32 %r4, [b];\n"
                        "add.s64 %d1, %d1, %d0; ld.global.u32 %r3, [%d1]; add.u32 %r3, %r3, %r4;\n"
                        "st.global.u32 [%d1], %r3;");

/// A driver with the primary context of device 0.
struct TestDriver : Api {
  CUcontext context = nullptr;

  TestDriver() {
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  }

  CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
    return address;
  }
  /// Pinned memory of `count` words, each of which is `value`.
  uint32_t *pinned(size_t count, uint32_t value = 0) {
    void *address = nullptr;
    EXPECT_EQ(cuMemHostAlloc(&address, count * 4, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
    std::fill_n(static_cast<uint32_t *>(address), count, value);
    return static_cast<uint32_t *>(address);
  }
  CUstream stream() {
    CUstream made = nullptr;
    EXPECT_EQ(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return made;
  }
  CUevent event(unsigned flags = CU_EVENT_DISABLE_TIMING) {
    CUevent made = nullptr;
    EXPECT_EQ(cuEventCreate(&made, flags), CUDA_SUCCESS);
    return made;
  }
  CUlibrary library(const std::string &entries) {
    CUlibrary made = nullptr;
    EXPECT_EQ(cuLibraryLoadData(&made, moduleOf(entries).c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
              CUDA_SUCCESS);
    return made;
  }
  CUkernel kernel(CUlibrary of, const char *name) {
    CUkernel found = nullptr;
    EXPECT_EQ(cuLibraryGetKernel(&found, of, name), CUDA_SUCCESS);
    return found;
  }
  CUresult launch(CUkernel kernel, CUstream on, unsigned blocks, unsigned threads, uint64_t a, uint64_t b = 0,
                  uint64_t c = 0, std::vector<CUlaunchAttribute> attributes = {}) {
    CUlaunchConfig config{};
    config.gridDimX = blocks;
    config.blockDimX = threads;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.hStream = on;
    config.attrs = attributes.data();
    config.numAttrs = static_cast<unsigned>(attributes.size());
    void *parameters[] = {&a, &b, &c};
    return cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), parameters, nullptr);
  }
};

/// Runs `body` with a driver in a process of its own, which has to end well; what it said.
inline std::string run(const Environment &environment, const std::function<void(TestDriver &)> &body) {
  const Outcome outcome = runApart(environment, [&] {
    TestDriver driver;
    body(driver);
  });
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  return outcome.text;
}

} // namespace k2c::emulated

#endif // K2C_EMULATEDDRIVER_TESTDRIVER_H
