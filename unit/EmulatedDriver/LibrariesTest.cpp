// Which texts a driver takes, what it says of their kernels, and which launches and tensor maps it refuses.
#include "TestDriver.h"

#include <cstring>

using namespace k2c::emulated;

namespace {

/// Loads `code`; what the error log has.
std::string loadLog(TestDriver &driver, const std::string &code, CUresult wanted) {
  CUlibrary library = nullptr;
  char log[512] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  EXPECT_EQ(driver.cuLibraryLoadData(&library, code.c_str(), options, values, 2, nullptr, nullptr, 0), wanted);
  if (wanted != CUDA_SUCCESS) {
    EXPECT_EQ(library, nullptr);
    EXPECT_EQ(reinterpret_cast<size_t>(values[1]), std::strlen(log));
  }
  return log;
}

std::string textFor(const std::string &target, const std::string &version = "8.6") {
  return ".version " + version + "\n.target " + target + "\n.address_size 64\n" + addEntry;
}

TEST(Libraries, WhatIsNotUnderstoodIsInTheLog) {
  const std::string text = run({}, [](TestDriver &driver) {
    EXPECT_TRUE(
        says(loadLog(driver, moduleOf(entryOf("k", "frobnicate.u32 %r0;")), CUDA_ERROR_INVALID_PTX), "library:7: "));
    EXPECT_TRUE(says(loadLog(driver, "no text of this kind", CUDA_ERROR_INVALID_PTX), "library:1: "));
    EXPECT_EQ(loadLog(driver, moduleOf(addEntry), CUDA_SUCCESS), "");
  });
  EXPECT_TRUE(says(text, "k2c: emulated driver: library:7: 'k': instruction 'frobnicate.u32' is not supported"));
}

TEST(Libraries, ATextIsForTheDevicesArchitecture) {
  run({}, [](TestDriver &driver) {
    EXPECT_EQ(loadLog(driver, textFor("sm_100a"), CUDA_ERROR_NO_BINARY_FOR_GPU),
              "the text is for sm_100a and does not run on sm_90a; compile it for that");
    for (const char *runs : {"sm_80", "sm_90", "sm_90a"})
      loadLog(driver, textFor(runs), CUDA_SUCCESS);
    loadLog(driver, textFor("sm_100"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT_EQ(loadLog(driver, textFor("sm_90a", "9.1"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION),
              "the text is PTX 9.1; give 9.0 or less");
    EXPECT_EQ(loadLog(driver, textFor("compute_90"), CUDA_ERROR_INVALID_PTX),
              "the text is for 'compute_90', which is no architecture; give one as sm_90a");
  });
  run({{"K2C_EMULATED_ARCH", "sm_100a"}}, [](TestDriver &driver) {
    loadLog(driver, textFor("sm_90a"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    loadLog(driver, textFor("sm_90"), CUDA_SUCCESS);
    loadLog(driver, textFor("sm_100f"), CUDA_SUCCESS);
  });
}

TEST(Libraries, CodeOfADeviceIsRefused) {
  const std::string text = run({}, [](TestDriver &driver) {
    for (const char *magic : {"\x7f"
                              "ELF\x02",
                              "\x50\xed\x55\xba\x01"})
      EXPECT_EQ(loadLog(driver, magic, CUDA_ERROR_NO_BINARY_FOR_GPU), "the image is code of a device; give PTX");
  });
  EXPECT_FALSE(says(text, "give PTX")) << text;
}

TEST(Libraries, OtherOptionsOfTheCompilerAreRefused) {
  const std::string text = run({}, [](TestDriver &driver) {
    CUlibrary library = nullptr;
    auto option = static_cast<CUjit_option>(0);
    void *value = nullptr;
    EXPECT_EQ(driver.cuLibraryLoadData(&library, "", &option, &value, 1, nullptr, nullptr, 0),
              CUDA_ERROR_NOT_SUPPORTED);
  });
  EXPECT_TRUE(says(text, "of the compiler's options, only the buffer for errors is emulated; leave others out"));
}

TEST(Libraries, VariablesAreThoseOfADevice) {
  const std::string entries =
      ".visible .global .align 4 .u32 count = 5;\n" +
      entryOf("next", "ld.param.u64 %d0, [a]; atom.global.add.u32 %r3, [count], 1; st.global.u32 [%d0], %r3;");
  run({{"K2C_EMULATED_DEVICES", "2"}}, [&](TestDriver &driver) {
    const CUkernel next = driver.kernel(driver.library(entries), "next");
    for (int device = 0; device < 2; ++device) {
      CUcontext context = nullptr;
      EXPECT_EQ(driver.cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuCtxSetCurrent(context), CUDA_SUCCESS);
      const CUstream stream = driver.stream();
      const CUdeviceptr memory = driver.allocate(4);
      uint32_t seen = 0;
      for (int i = 0; i < 2; ++i)
        EXPECT_EQ(driver.launch(next, stream, 1, 1, memory), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(&seen, memory, 4, stream), CUDA_SUCCESS);
      EXPECT_EQ(seen, 6u);
    }
  });
}

TEST(Libraries, KernelsHaveAttributes) {
  run({}, [](TestDriver &driver) {
    const std::string entry = ".shared .align 16 .b8 tile[1024];\n.visible .entry k(.param .u64 a)\n.maxntid 256\n"
                              "{ .reg .b32 %r<4>; mov.u32 %r0, tile; st.shared.u32 [%r0], 1; }\n";
    const CUlibrary library = driver.library(entry);
    const CUkernel kernel = driver.kernel(library, "k");
    EXPECT_EQ(driver.kernel(library, "k"), kernel);
    CUkernel none = nullptr;
    EXPECT_EQ(driver.cuLibraryGetKernel(&none, library, "tile"), CUDA_ERROR_NOT_FOUND);
    const auto get = [&](CUfunction_attribute attribute) {
      int value = -1;
      EXPECT_EQ(driver.cuKernelGetAttribute(&value, attribute, kernel, 0), CUDA_SUCCESS);
      return value;
    };
    EXPECT_EQ(get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 256);
    EXPECT_EQ(get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 1024);
    EXPECT_EQ(get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 0);
    EXPECT_EQ(get(CU_FUNC_ATTRIBUTE_NUM_REGS), 255);
    EXPECT_EQ(get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 48 * 1024 - 1024);
    const CUfunction_attribute dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    EXPECT_EQ(driver.cuKernelSetAttribute(dynamic, 227 * 1024 - 1023, kernel, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuKernelSetAttribute(dynamic, 227 * 1024 - 1024, kernel, 0), CUDA_SUCCESS);
    EXPECT_EQ(get(dynamic), 227 * 1024 - 1024);
    EXPECT_EQ(driver.cuLibraryUnload(library), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuKernelSetAttribute(dynamic, 0, kernel, 0), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST(Libraries, ALibraryMayBeUnloadedBehindALaunch) {
  run({}, [](TestDriver &driver) {
    const CUstream stream = driver.stream();
    const CUdeviceptr memory = driver.allocate(4);
    const CUlibrary library = driver.library(increaseEntry);
    const CUkernel increase = driver.kernel(library, "increase");
    EXPECT_EQ(driver.cuMemsetD8Async(memory, 0, 4, stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.launch(increase, stream, 1, 1, memory, 1), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuLibraryUnload(library), CUDA_SUCCESS);
    EXPECT_EQ(driver.launch(increase, stream, 1, 1, memory, 1), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
  });
}

CUlaunchAttribute clusterOf(unsigned blocks) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {blocks, 1, 1};
  return attribute;
}

TEST(Launches, AClusterIsAnAttribute) {
  const std::string entry = entryOf("k", "ld.param.u64 %d0, [a]; mov.u32 %r3, %cluster_nctarank;\n"
                                         "mul.wide.u32 %d1, %r0, 4; add.s64 %d0, %d0, %d1; st.global.u32 [%d0], %r3;");
  run({}, [&](TestDriver &driver) {
    const CUstream stream = driver.stream();
    const CUdeviceptr memory = driver.allocate(64);
    const CUkernel kernel = driver.kernel(driver.library(entry), "k");
    uint32_t seen = 0;
    EXPECT_EQ(driver.launch(kernel, stream, 8, 1, memory, 0, 0, {clusterOf(4)}), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(&seen, memory, 4, stream), CUDA_SUCCESS);
    EXPECT_EQ(seen, 4u);
    EXPECT_EQ(driver.launch(kernel, stream, 6, 1, memory, 0, 0, {clusterOf(4)}), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    EXPECT_EQ(driver.launch(kernel, stream, 16, 1, memory, 0, 0, {clusterOf(16)}), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    EXPECT_EQ(driver.launch(kernel, stream, 16, 1, memory, 0, 0, {clusterOf(0)}), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  });
}

TEST(Launches, WhatADeviceCannotRunIsAnErrorOfTheCall) {
  const std::string text = run({}, [](TestDriver &driver) {
    const CUstream stream = driver.stream();
    const CUkernel add = driver.kernel(driver.library(addEntry), "add");
    EXPECT_EQ(driver.launch(add, stream, 0, 32, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.launch(add, stream, 1, 1025, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.launch(reinterpret_cast<CUkernel>(stream), stream, 1, 1, 0), CUDA_ERROR_INVALID_HANDLE);
    CUlaunchAttribute other{};
    other.id = static_cast<CUlaunchAttributeID>(2);
    EXPECT_EQ(driver.launch(add, stream, 1, 1, 0, 0, 0, {other}), CUDA_ERROR_NOT_SUPPORTED);
    CUlaunchConfig config{1, 1, 1, 1, 1, 1, 48 * 1024 + 1, stream, nullptr, 0};
    void *parameters[] = {&config, &config, nullptr}, *extra[] = {nullptr};
    const auto function = reinterpret_cast<CUfunction>(add);
    EXPECT_EQ(driver.cuLaunchKernelEx(&config, function, parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
    config.sharedMemBytes = 0;
    EXPECT_EQ(driver.cuLaunchKernelEx(&config, function, parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuLaunchKernelEx(&config, function, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuLaunchKernelEx(nullptr, function, parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuLaunchKernelEx(&config, function, parameters, extra), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
  });
  EXPECT_TRUE(says(text, "launch attribute 2 is not emulated; leave it out"));
  EXPECT_TRUE(says(text, "parameters in a buffer are not emulated; give an array of them"));
}

/// A tensor of 64 by 32 elements of 2 bytes, as cuTensorMapEncodeTiled takes it.
struct Tensor {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  uint64_t address = 4096;
  uint64_t extents[2] = {64, 32};
  uint64_t strides[1] = {128};
  uint32_t box[2] = {64, 8};
  uint32_t elementStrides[2] = {1, 1};
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;

  CUresult encode(TestDriver &driver, CUtensorMap *map) const {
    return driver.cuTensorMapEncodeTiled(map, type, 2, reinterpret_cast<void *>(address), extents, strides, box,
                                         elementStrides, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                         CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }
};

TEST(TensorMaps, RulesOfCuda) {
  const auto refused = [](const std::function<void(Tensor &)> &spoil) {
    return run({}, [&](TestDriver &driver) {
      CUtensorMap map;
      Tensor tensor;
      EXPECT_EQ(tensor.encode(driver, &map), CUDA_SUCCESS);
      spoil(tensor);
      EXPECT_EQ(tensor.encode(driver, &map), CUDA_ERROR_INVALID_VALUE);
      EXPECT_EQ(Tensor().encode(driver, nullptr), CUDA_ERROR_INVALID_VALUE);
    });
  };
  EXPECT_TRUE(says(refused([](Tensor &t) { t.address = 4104; }),
                   "k2c: emulated driver: tensor map: the address is no multiple of 16\n"));
  EXPECT_TRUE(says(refused([](Tensor &t) { t.extents[1] = 0; }), "extent 1 is 0, and not from 1 to 2^32\n"));
  EXPECT_TRUE(says(refused([](Tensor &t) { t.box[0] = 257; }), "box 0 is 257, and not from 1 to 256\n"));
  EXPECT_TRUE(
      says(refused([](Tensor &t) { t.strides[0] = 136; }), "stride 1 is 136, and no multiple of 16 below 2^40\n"));
  EXPECT_TRUE(says(refused([](Tensor &t) { t.strides[0] = 112; }), "stride 1 is 112, and less than a line\n"));
  EXPECT_TRUE(
      says(refused([](Tensor &t) { t.elementStrides[1] = 2; }), "element stride 1 is 2, and only 1 is emulated\n"));
  EXPECT_TRUE(
      says(refused([](Tensor &t) { t.box[0] = 60; }), "a line of the box has 120 bytes, which is no multiple of 16\n"));
  EXPECT_TRUE(says(refused([](Tensor &t) { t.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; }),
                   "a line of the box has 128 bytes, more than the swizzle's 64\n"));
  refused([](Tensor &t) { t.type = static_cast<CUtensorMapDataType>(10); });
}

/// A kernel that copies a box of a tensor to shared memory and its first word to `a`; the map is its parameter.
const std::string copyEntry =
    ".visible .entry copy(.param .u64 a, .param .align 64 .b8 map[128])\n"
    "{ .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<8>; .shared .align 1024 .b8 tile[1024];\n"
    ".shared .align 8 .b64 bar; mov.u32 %r0, tile; mov.u32 %r1, bar; ld.param.u64 %d0, [a];\n"
    "mov.b64 %d1, map; cvta.param.u64 %d2, %d1; mov.b32 %r2, 0; mov.b32 %r3, 2;\n"
    "mbarrier.init.shared.b64 [%r1], 1; fence.proxy.async.shared::cta;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 1024;\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r0], [%d2, {%r2, %r3}], "
    "[%r1];\n"
    "Wait: mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r1], 0;\n@!%p0 bra Wait;\n"
    "ld.shared.u32 %r4, [%r0]; st.global.u32 [%d0], %r4; }\n";

TEST(TensorMaps, AKernelCopiesABox) {
  run({}, [](TestDriver &driver) {
    const CUstream stream = driver.stream();
    const CUkernel copy = driver.kernel(driver.library(copyEntry), "copy");
    Tensor tensor;
    tensor.address = driver.allocate(4096);
    CUdeviceptr out = driver.allocate(4);
    uint32_t *in = driver.pinned(1024), seen = 0;
    in[2 * 32] = 77; // of line 2
    CUtensorMap map;
    EXPECT_EQ(tensor.encode(driver, &map), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(tensor.address, in, 4096, stream), CUDA_SUCCESS);
    CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, stream, nullptr, 0};
    void *parameters[] = {&out, &map};
    EXPECT_EQ(driver.cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(copy), parameters, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(&seen, out, 4, stream), CUDA_SUCCESS);
    EXPECT_EQ(seen, 77u);
  });
}

} // namespace
