// Kernels of PTX texts, and what becomes of a context whose kernel fails.
#include "TestDriver.h"

using namespace k2c::emulated;

namespace {

TEST(Launches, AKernelAddsWhatCopiesBring) {
  run({}, [](TestDriver &driver) {
    const CUstream stream = driver.stream();
    const CUkernel add = driver.kernel(driver.library(addEntry), "add");
    const CUdeviceptr a = driver.allocate(256), b = driver.allocate(256), c = driver.allocate(256);
    uint32_t *one = driver.pinned(64, 1), *two = driver.pinned(64, 20), *sum = driver.pinned(64);
    EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(a, one, 256, stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(b, two, 256, stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.launch(add, stream, 2, 32, a, b, c), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(sum, c, 256, stream), CUDA_SUCCESS);
    EXPECT_EQ(sum[63], 0u);
    EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(sum[0], 21u);
    EXPECT_EQ(sum[63], 21u);
  });
}

/// Launches `body` on 256 bytes of zeros: the error of the context, which each call gives from then on, and the text.
std::pair<CUresult, std::string> fail(const std::string &body, Environment environment = {}) {
  int number = 0;
  const std::string text = run(environment, [&](TestDriver &driver) {
    const CUstream stream = driver.stream();
    const CUkernel kernel = driver.kernel(driver.library(entryOf("k", body)), "k");
    const CUdeviceptr a = driver.allocate(256);
    EXPECT_EQ(driver.cuMemsetD8Async(a, 0, 256, stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.launch(kernel, stream, 1, 32, a), CUDA_SUCCESS);
    const CUresult first = driver.cuStreamSynchronize(stream);
    size_t free = 0, total = 0;
    CUdeviceptr more = 0;
    EXPECT_EQ(driver.cuMemGetInfo_v2(&free, &total), first);
    EXPECT_EQ(driver.cuMemAlloc_v2(&more, 16), first);
    EXPECT_EQ(driver.launch(kernel, stream, 1, 32, a), first);
    EXPECT_EQ(driver.cuCtxSynchronize(), first);
    EXPECT_EQ(driver.cuMemFree_v2(a), first);
    std::printf("ERROR %d\n", first);
  });
  std::sscanf(text.c_str() + text.find("ERROR"), "ERROR %d", &number);
  return {static_cast<CUresult>(number), text};
}

TEST(Launches, AnAccessOutsideOfAnAllocationIsAnIllegalAddress) {
  const auto [error, text] = fail("ld.param.u64 %d1, [a]; mul.wide.u32 %d0, %r0, 4; add.s64 %d1, %d1, %d0;\n"
                                  "st.global.u32 [%d1+132], %r0;");
  EXPECT_EQ(error, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(says(text, "k2c: emulated driver: library:8: kernel 'k', CTA (0, 0, 0), warp 0, lanes 0x80000000"));
  EXPECT_TRUE(says(text, "where there is no memory"));
}

TEST(Launches, AnAccessThatIsNotAlignedIsAMisalignedAddress) {
  const auto [error, text] = fail("ld.param.u64 %d1, [a];\nst.global.u32 [%d1+2], %r0;");
  EXPECT_EQ(error, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_TRUE(says(text, "which is no multiple of that"));
}

TEST(Launches, AKernelThatDoesNotEndTimesOut) {
  const std::string loop = "setp.eq.u32 %p0, %r0, %r0;\nLoop: @%p0 bra Loop;";
  EXPECT_EQ(fail(loop, {{"K2C_EMULATED_INSTRUCTIONS", "10000"}}).first, CUDA_ERROR_LAUNCH_TIMEOUT);
  const auto [error, text] = fail("setp.eq.u32 %p0, %r0, 0;\n@%p0 bra End;\nbar.sync 0, 64;\nEnd:");
  EXPECT_EQ(error, CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_TRUE(says(text, "no warp can go on"));
}

TEST(Launches, ABlockIsAsTheKernelSays) {
  const auto launched = [](const std::string &directive, unsigned threads) {
    std::string entry = entryOf("k", "ret;");
    entry.insert(entry.find('\n'), "\n" + directive);
    int error = -1;
    const std::string text = run({}, [&](TestDriver &driver) {
      const CUkernel kernel = driver.kernel(driver.library(entry), "k");
      std::printf("ERROR %d\n", driver.launch(kernel, driver.stream(), 1, threads, 0));
    });
    std::sscanf(text.c_str() + text.find("ERROR"), "ERROR %d", &error);
    return error;
  };
  const std::string most = "2147483648, 2147483648, 2147483648"; // which is 0 in 64 bits
  EXPECT_EQ(launched(".reqntid 128", 128), CUDA_SUCCESS);
  EXPECT_EQ(launched(".reqntid 64, 2", 128), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launched(".reqntid " + most, 128), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launched(".maxntid 127", 128), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launched(".maxntid " + most, 128), CUDA_SUCCESS);
}

TEST(Launches, CopiesReachAKernelThatRuns) {
  run({}, [](TestDriver &driver) {
    const CUstream waits = driver.stream(), tells = driver.stream();
    const std::string body = "ld.param.u64 %d1, [a];\nWait: ld.relaxed.sys.global.u32 %r3, [%d1];\n"
                             "setp.eq.u32 %p0, %r3, 0;\n@%p0 bra Wait;\nst.global.u32 [%d1+4], %r3;";
    const CUkernel kernel = driver.kernel(driver.library(entryOf("k", body)), "k");
    const CUdeviceptr a = driver.allocate(8);
    uint32_t *told = driver.pinned(1, 7), *left = driver.pinned(1);
    EXPECT_EQ(driver.cuMemsetD8Async(a, 0, 8, waits), CUDA_SUCCESS);
    EXPECT_EQ(driver.launch(kernel, waits, 1, 1, a), CUDA_SUCCESS);
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(driver.cuStreamQuery(waits), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(a, told, 4, tells), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(left, a + 4, 4, waits), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamSynchronize(waits), CUDA_SUCCESS);
    EXPECT_EQ(left[0], 7u);
  });
}

TEST(Launches, RacesAreFoundWhereTheyAreLookedFor) {
  const std::string body = "ld.param.u64 %d1, [a]; mul.wide.u32 %d0, %r0, 4; add.s64 %d0, %d1, %d0;\n"
                           "st.global.u32 [%d0], %r0; xor.b64 %d0, %d0, 4; ld.global.u32 %r3, [%d0];";
  EXPECT_EQ(fail(body, {{"K2C_EMULATED_STRICT", "0"}}).first, CUDA_SUCCESS);
  const auto [error, text] = fail(body, {{"K2C_EMULATED_STRICT", "1"}});
  EXPECT_EQ(error, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(says(text, "and nothing orders it with "));
}

TEST(Launches, MemoryThatNobodyWroteIsNotRead) {
  const std::string text = run({}, [](TestDriver &driver) {
    const CUstream stream = driver.stream();
    const CUkernel add = driver.kernel(driver.library(addEntry), "add");
    const CUdeviceptr a = driver.allocate(128), b = driver.allocate(128), c = driver.allocate(128);
    EXPECT_EQ(driver.cuMemsetD8Async(a, 1, 128, stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemsetD8Async(b, 1, 124, stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.launch(add, stream, 1, 31, a, b, c), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.launch(add, stream, 1, 32, a, b, c), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
  });
  EXPECT_TRUE(says(text, "of which some were never written"));
}

} // namespace
