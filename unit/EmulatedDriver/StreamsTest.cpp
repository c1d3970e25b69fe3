// What orders operations, and what does not: copies, streams and events.
#include "TestDriver.h"

using namespace k2c::emulated;

namespace {

const std::vector<std::string> seeds = [] {
  std::vector<std::string> made;
  for (int seed = 0; seed < 50; ++seed)
    made.push_back(std::to_string(seed));
  return made;
}();

/// How often `body` is wrong, of all seeds; it exits with 7 then.
int wrongSeeds(const std::function<bool(TestDriver &)> &isRight) {
  int wrong = 0;
  for (const std::string &seed : seeds) {
    const Outcome outcome = runApart({{"K2C_EMULATED_SEED", seed}}, [&] {
      TestDriver driver;
      if (!isRight(driver))
        std::_Exit(7);
    });
    const bool isWrong = WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 7;
    EXPECT_TRUE(isWrong || outcome.status == 0) << outcome.text;
    wrong += isWrong;
  }
  return wrong;
}

/// Whether a stream that copies to the host sees what another has copied to the device.
bool isSeen(TestDriver &driver, bool isOrdered) {
  const CUstream first = driver.stream(), second = driver.stream();
  const CUevent event = driver.event();
  const CUdeviceptr memory = driver.allocate(4);
  uint32_t *from = driver.pinned(1, 5), *to = driver.pinned(1, 6);
  EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(memory, from, 4, first), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuEventRecord(event, first), CUDA_SUCCESS);
  if (isOrdered) {
    EXPECT_EQ(driver.cuStreamWaitEvent(second, event, 0), CUDA_SUCCESS);
  }
  EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(to, memory, 4, second), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuStreamSynchronize(second), CUDA_SUCCESS);
  return *to == 5;
}

TEST(Streams, AnEventOrdersTwoStreams) {
  EXPECT_EQ(wrongSeeds([](TestDriver &driver) { return isSeen(driver, true); }), 0);
}

TEST(Streams, WithoutAnEventSomeSeedIsWrong) {
  const int wrong = wrongSeeds([](TestDriver &driver) { return isSeen(driver, false); });
  EXPECT_GT(wrong, 5);
  EXPECT_LT(wrong, 45);
}

TEST(Streams, AnEventIsWhatWasRecordedBeforeTheWait) {
  EXPECT_GT(wrongSeeds([](TestDriver &driver) { // the event is recorded too late
              const CUstream first = driver.stream(), second = driver.stream();
              const CUevent event = driver.event();
              const CUdeviceptr memory = driver.allocate(4);
              uint32_t *from = driver.pinned(1, 5), *to = driver.pinned(1, 6);
              driver.cuMemcpyHtoDAsync_v2(memory, from, 4, first);
              EXPECT_EQ(driver.cuStreamWaitEvent(second, event, 0), CUDA_SUCCESS);
              EXPECT_EQ(driver.cuEventRecord(event, first), CUDA_SUCCESS);
              driver.cuMemcpyDtoHAsync_v2(to, memory, 4, second);
              EXPECT_EQ(driver.cuStreamSynchronize(second), CUDA_SUCCESS);
              return *to == 5;
            }),
            0);
}

TEST(Streams, PinnedMemoryIsReadWhenACopyIsDone) {
  run({}, [](TestDriver &driver) {
    const CUstream stream = driver.stream();
    const CUdeviceptr memory = driver.allocate(4);
    uint32_t *from = driver.pinned(1, 5), to = 0;
    EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(memory, from, 4, stream), CUDA_SUCCESS);
    *from = 6;
    EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(&to, memory, 4, stream), CUDA_SUCCESS);
    EXPECT_EQ(to, 6u); // a copy to pageable memory is done when the call returns
  });
}

TEST(Streams, PageableMemoryIsReadByTheCall) {
  run({}, [](TestDriver &driver) {
    const CUstream stream = driver.stream();
    const size_t count = 100000;
    const CUdeviceptr memory = driver.allocate(count * 4);
    uint32_t from = 5, to = 0;
    EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(memory, &from, 4, stream), CUDA_SUCCESS);
    from = 6;
    EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(&to, memory, 4, stream), CUDA_SUCCESS);
    EXPECT_EQ(to, 5u);
    std::vector<uint32_t> many(count, 7);
    EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(memory, many.data(), count * 4, stream), CUDA_SUCCESS);
    many.assign(count, 8);
    EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(&to, memory + (count - 1) * 4, 4, stream), CUDA_SUCCESS);
    EXPECT_EQ(to, 7u);
  });
}

TEST(Streams, ACopyOnADeviceKeepsWhatWasNeverWritten) {
  const std::string text = run({}, [](TestDriver &driver) {
    const CUstream stream = driver.stream();
    const CUkernel increase = driver.kernel(driver.library(increaseEntry), "increase");
    const CUdeviceptr from = driver.allocate(256), to = driver.allocate(256);
    EXPECT_EQ(driver.cuMemsetD8Async(from, 1, 100, stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemsetD8Async(to, 1, 256, stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemcpyDtoDAsync_v2(to + 28, from, 128, stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.launch(increase, stream, 1, 32, to), CUDA_SUCCESS);
    EXPECT_EQ(driver.launch(increase, stream, 1, 25, to + 156), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.launch(increase, stream, 1, 1, to + 128), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
  });
  EXPECT_TRUE(says(text, "of which some were never written"));
}

TEST(Streams, AQuestionDoesSomeOfTheWork) {
  run({}, [](TestDriver &driver) {
    const CUstream stream = driver.stream();
    const CUevent event = driver.event();
    const CUdeviceptr memory = driver.allocate(4);
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(driver.cuMemsetD8Async(memory, 0, 4, stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuEventQuery(event), CUDA_SUCCESS); // it was never recorded
    EXPECT_EQ(driver.cuEventRecord(event, stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuEventQuery(event), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(driver.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    int asked = 0;
    while (driver.cuEventQuery(event) == CUDA_ERROR_NOT_READY)
      ASSERT_LT(++asked, 100);
    EXPECT_EQ(driver.cuStreamQuery(stream), CUDA_SUCCESS);
  });
}

TEST(Streams, TimesAreThoseOfEventsThatWereDone) {
  run({}, [](TestDriver &driver) {
    const CUstream stream = driver.stream();
    const CUevent begin = driver.event(0), end = driver.event(0), untimed = driver.event();
    float milliseconds = -1;
    EXPECT_EQ(driver.cuEventElapsedTime(&milliseconds, begin, end), CUDA_ERROR_INVALID_HANDLE);
    for (const CUevent event : {begin, untimed, end})
      EXPECT_EQ(driver.cuEventRecord(event, stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuEventElapsedTime(&milliseconds, begin, end), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(driver.cuEventSynchronize(end), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuEventElapsedTime(&milliseconds, begin, end), CUDA_SUCCESS);
    EXPECT_GE(milliseconds, 0);
    EXPECT_EQ(driver.cuEventElapsedTime(&milliseconds, untimed, end), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST(Streams, DefaultStreamsAreRefused) {
  const std::string text = run({}, [](TestDriver &driver) {
    EXPECT_EQ(driver.cuMemsetD8Async(driver.allocate(4), 0, 4, nullptr), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(driver.cuStreamSynchronize(reinterpret_cast<CUstream>(2)), CUDA_ERROR_NOT_SUPPORTED);
  });
  EXPECT_TRUE(says(text, "k2c: emulated driver: default streams are not emulated; create a stream\n"));
}

TEST(Streams, MemoryThatIsFreedBeforeItsWorkIsFound) {
  const auto freed = [](const std::function<void(TestDriver &, CUdeviceptr, CUstream)> &use) {
    return run({}, [&](TestDriver &driver) {
      const CUstream stream = driver.stream();
      const CUdeviceptr memory = driver.allocate(64);
      use(driver, memory, stream);
      EXPECT_EQ(driver.cuMemFree_v2(memory), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    });
  };
  EXPECT_TRUE(says(freed([](TestDriver &driver, CUdeviceptr memory, CUstream stream) {
                     driver.cuMemcpyHtoDAsync_v2(memory, driver.pinned(16), 64, stream);
                   }),
                   "a copy of 64 bytes is of memory that is freed by now; free it behind the work"));
  EXPECT_TRUE(says(freed([](TestDriver &driver, CUdeviceptr memory, CUstream stream) {
                     driver.cuMemsetD8Async(memory, 1, 60, stream);
                   }),
                   "a memset of 60 bytes is of memory that is freed by now"));
}

TEST(Streams, WrongHandlesAreErrors) {
  run({}, [](TestDriver &driver) {
    const CUevent event = driver.event();
    const auto noStream = reinterpret_cast<CUstream>(event);
    EXPECT_EQ(driver.cuStreamSynchronize(noStream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(driver.cuStreamDestroy_v2(noStream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(driver.cuEventRecord(event, noStream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(driver.cuEventDestroy_v2(event), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuEventDestroy_v2(event), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(driver.cuEventSynchronize(event), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(driver.cuStreamWaitEvent(driver.stream(), event, 0), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(driver.cuStreamCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
    CUstream made = nullptr;
    EXPECT_EQ(driver.cuStreamCreate(&made, 4), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(Streams, CopiesAreOfWhatTheirNamesSay) {
  run({}, [](TestDriver &driver) {
    const CUstream stream = driver.stream();
    const CUdeviceptr memory = driver.allocate(64);
    uint32_t *pinned = driver.pinned(16);
    const auto host = reinterpret_cast<CUdeviceptr>(pinned);
    EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(memory, pinned, 65, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(memory + 4, pinned, 64, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(memory, reinterpret_cast<void *>(memory), 64, stream),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(nullptr, memory, 64, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(pinned, host, 64, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuMemcpyDtoDAsync_v2(memory, host, 64, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuMemsetD8Async(host, 0, 64, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(0, nullptr, 0, stream), CUDA_SUCCESS);
  });
}

} // namespace
