// Captures of streams, and the graphs that they give.
#include "TestDriver.h"

#include <thread>

using namespace k2c::emulated;

namespace {

/// Two streams whose graph adds 1 and 10 to words of their own and then copies both to the host.
struct Fork {
  TestDriver &driver;
  CUstream first = driver.stream(), second = driver.stream();
  CUevent forked = driver.event(), joined = driver.event();
  CUlibrary library = driver.library(increaseEntry + addEntry);
  CUkernel increase = driver.kernel(library, "increase"), add = driver.kernel(library, "add");
  CUdeviceptr memory = driver.allocate(256);
  uint32_t *in = driver.pinned(64), *out = driver.pinned(64);

  CUgraph capture(uint64_t one = 1, uint64_t ten = 10) {
    CUgraph graph = nullptr;
    EXPECT_EQ(driver.cuStreamBeginCapture_v2(first, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(memory, in, 256, first), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuEventRecord(forked, first), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamWaitEvent(second, forked, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver.launch(increase, first, 1, 32, memory, one), CUDA_SUCCESS);
    EXPECT_EQ(driver.launch(increase, second, 1, 32, memory + 128, ten), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuEventRecord(joined, second), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamWaitEvent(first, joined, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(out, memory, 256, first), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamEndCapture(first, &graph), CUDA_SUCCESS);
    return graph;
  }
  CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec executable = nullptr;
    EXPECT_EQ(driver.cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
    return executable;
  }
  void launch(CUgraphExec executable) {
    EXPECT_EQ(driver.cuGraphLaunch(executable, first), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamSynchronize(first), CUDA_SUCCESS);
  }
};

TEST(Graphs, ACaptureOfTwoStreamsRunsOverAndOver) {
  for (const char *seed : {"1", "2", "3", "4", "5"})
    run({{"K2C_EMULATED_SEED", seed}}, [](TestDriver &driver) {
      Fork fork{driver};
      const CUgraph graph = fork.capture();
      EXPECT_EQ(fork.out[0], 0u); // nothing is done by a capture
      const CUgraphExec executable = fork.instantiate(graph);
      EXPECT_EQ(driver.cuGraphDestroy(graph), CUDA_SUCCESS);
      for (const uint32_t input : {100u, 200u, 300u}) {
        std::fill_n(fork.in, 64, input);
        fork.launch(executable);
        EXPECT_EQ(fork.out[31], input + 1);
        EXPECT_EQ(fork.out[63], input + 10);
      }
      EXPECT_EQ(driver.cuGraphExecDestroy(executable), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuGraphLaunch(executable, fork.first), CUDA_ERROR_INVALID_VALUE);
    });
}

TEST(Graphs, EachLaunchRecordsTheEventsThatAreNodes) {
  run({}, [](TestDriver &driver) {
    Fork fork{driver};
    const CUevent begin = driver.event(0), end = driver.event(0);
    EXPECT_EQ(driver.cuEventRecordWithFlags(begin, fork.first, CU_EVENT_RECORD_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
    CUgraph graph = nullptr;
    EXPECT_EQ(driver.cuMemsetD8Async(fork.memory, 0, 256, fork.first), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamSynchronize(fork.first), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamBeginCapture_v2(fork.first, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuEventRecordWithFlags(begin, fork.first, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.cuEventRecordWithFlags(begin, fork.first, CU_EVENT_RECORD_EXTERNAL), CUDA_SUCCESS);
    EXPECT_EQ(driver.launch(fork.increase, fork.first, 1, 1, fork.memory, 1), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuEventRecordWithFlags(end, fork.first, CU_EVENT_RECORD_EXTERNAL), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamEndCapture(fork.first, &graph), CUDA_SUCCESS);
    const CUgraphExec executable = fork.instantiate(graph);
    float milliseconds = -1;
    EXPECT_EQ(driver.cuEventElapsedTime(&milliseconds, begin, end), CUDA_ERROR_INVALID_HANDLE);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(driver.cuGraphLaunch(executable, fork.first), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuEventElapsedTime(&milliseconds, begin, end), CUDA_ERROR_NOT_READY);
      EXPECT_EQ(driver.cuStreamSynchronize(fork.first), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuEventElapsedTime(&milliseconds, begin, end), CUDA_SUCCESS);
      EXPECT_GT(milliseconds, 0);
    }
  });
}

TEST(Graphs, LaunchesOfAGraphComeOneBehindTheOther) {
  for (const char *seed : {"1", "2", "3", "4", "5", "6"})
    run({{"K2C_EMULATED_SEED", seed}}, [](TestDriver &driver) {
      Fork fork{driver};
      CUgraph graph = nullptr;
      EXPECT_EQ(driver.cuMemsetD8Async(fork.memory, 0, 256, fork.first), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuStreamSynchronize(fork.first), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuStreamBeginCapture_v2(fork.first, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
      EXPECT_EQ(driver.launch(fork.increase, fork.first, 1, 1, fork.memory, 1), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuStreamEndCapture(fork.first, &graph), CUDA_SUCCESS);
      const CUgraphExec executable = fork.instantiate(graph);
      EXPECT_EQ(driver.cuGraphLaunch(executable, fork.first), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuGraphLaunch(executable, fork.second), CUDA_SUCCESS);
      uint32_t seen = 0;
      EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(&seen, fork.memory, 4, fork.second), CUDA_SUCCESS);
      EXPECT_EQ(seen, 2u);
    });
}

TEST(Graphs, WithoutAnEdgeSomeSeedIsWrong) {
  bool isWrong = false;
  for (int seed = 0; seed < 20; ++seed) {
    const std::string text = run({{"K2C_EMULATED_SEED", std::to_string(seed)}}, [](TestDriver &driver) {
      Fork fork{driver};
      CUgraph graph = nullptr;
      fork.in[0] = 5;
      EXPECT_EQ(driver.cuStreamBeginCapture_v2(fork.first, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuEventRecord(fork.forked, fork.first), CUDA_SUCCESS); // before the copy
      EXPECT_EQ(driver.cuStreamWaitEvent(fork.second, fork.forked, 0), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(fork.memory, fork.in, 256, fork.first), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(fork.out, fork.memory, 256, fork.second), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuEventRecord(fork.joined, fork.second), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuStreamWaitEvent(fork.first, fork.joined, 0), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuStreamEndCapture(fork.first, &graph), CUDA_SUCCESS);
      fork.launch(fork.instantiate(graph));
      std::printf("SEEN %u\n", fork.out[0]);
    });
    isWrong |= text.find("SEEN 5") == std::string::npos;
  }
  EXPECT_TRUE(isWrong);
}

TEST(Graphs, AnUpdateChangesParameters) {
  run({}, [](TestDriver &driver) {
    Fork fork{driver};
    const CUgraphExec executable = fork.instantiate(fork.capture());
    CUgraphExecUpdateResultInfo info{};
    EXPECT_EQ(driver.cuGraphExecUpdate_v2(executable, fork.capture(2, 20), &info), CUDA_SUCCESS);
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    fork.launch(executable);
    EXPECT_EQ(fork.out[0], 2u);
    EXPECT_EQ(fork.out[32], 20u);
  });
}

TEST(Graphs, AnUpdateSaysWhatHasChanged) {
  run({}, [](TestDriver &driver) {
    Fork fork{driver};
    const auto captured = [&](const std::function<void()> &enqueue) {
      CUgraph graph = nullptr;
      EXPECT_EQ(driver.cuStreamBeginCapture_v2(fork.first, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
      EXPECT_EQ(driver.launch(fork.increase, fork.first, 1, 32, fork.memory, 1), CUDA_SUCCESS);
      enqueue();
      EXPECT_EQ(driver.cuStreamEndCapture(fork.first, &graph), CUDA_SUCCESS);
      return graph;
    };
    const auto increase = [&] { driver.launch(fork.increase, fork.first, 1, 32, fork.memory, 1); };
    const CUgraphExec executable = fork.instantiate(captured(increase));
    const auto update = [&](const std::function<void()> &enqueue, CUgraphExecUpdateResult wanted) {
      CUgraphExecUpdateResultInfo info{};
      const CUgraph graph = captured(enqueue);
      EXPECT_EQ(driver.cuGraphExecUpdate_v2(executable, graph, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
      EXPECT_EQ(info.result, wanted);
    };
    update([] {}, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    update([&] { driver.cuMemsetD8Async(fork.memory, 0, 4, fork.first); },
           CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    update([&] { driver.launch(fork.add, fork.first, 1, 32, fork.memory, fork.memory, fork.memory); },
           CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED);
    CUgraphExecUpdateResultInfo info{};
    EXPECT_EQ(driver.cuGraphExecUpdate_v2(executable, captured(increase), &info), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuGraphExecUpdate_v2(executable, nullptr, &info), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(Graphs, WorkThatIsNotJoinedIsAnError) {
  run({}, [](TestDriver &driver) {
    Fork fork{driver};
    CUgraph graph = nullptr;
    EXPECT_EQ(driver.cuStreamBeginCapture_v2(fork.first, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuEventRecord(fork.forked, fork.first), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamWaitEvent(fork.second, fork.forked, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver.launch(fork.increase, fork.second, 1, 32, fork.memory, 1), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamEndCapture(fork.first, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(driver.cuStreamSynchronize(fork.second), CUDA_SUCCESS); // it is not captured any more
    fork.capture();
  });
}

TEST(Graphs, CallsThatMayNotBeInACaptureEndIt) {
  run({}, [](TestDriver &driver) {
    Fork fork{driver};
    CUdeviceptr address = 0;
    void *pinned = nullptr;
    uint32_t pageable = 0;
    const auto spoiled = [&](CUresult wanted, const std::function<CUresult()> &call) {
      CUgraph graph = nullptr;
      EXPECT_EQ(driver.cuStreamBeginCapture_v2(fork.first, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuEventRecord(fork.forked, fork.first), CUDA_SUCCESS);
      EXPECT_EQ(call(), wanted);
      EXPECT_EQ(driver.launch(fork.increase, fork.first, 1, 32, fork.memory, 1), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
      EXPECT_EQ(driver.cuStreamEndCapture(fork.first, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    };
    const CUresult unsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    spoiled(unsupported, [&] { return driver.cuMemAlloc_v2(&address, 16); });
    spoiled(unsupported, [&] { return driver.cuMemFree_v2(fork.memory); });
    spoiled(unsupported, [&] { return driver.cuMemHostAlloc(&pinned, 16, 0); });
    spoiled(unsupported, [&] { return driver.cuStreamSynchronize(fork.first); });
    spoiled(unsupported, [&] { return driver.cuStreamQuery(fork.first); });
    spoiled(unsupported, [&] { return driver.cuCtxSynchronize(); });
    spoiled(unsupported, [&] { return driver.cuEventQuery(fork.joined); });
    spoiled(unsupported, [&] { return driver.cuLibraryUnload(fork.library); });
    spoiled(unsupported, [&] { return driver.cuMemcpyHtoDAsync_v2(fork.memory, &pageable, 4, fork.first); });
    spoiled(CUDA_ERROR_CAPTURED_EVENT, [&] { return driver.cuEventSynchronize(fork.forked); });
    spoiled(CUDA_ERROR_ILLEGAL_STATE,
            [&] { return driver.cuStreamBeginCapture_v2(fork.first, CU_STREAM_CAPTURE_MODE_GLOBAL); });
    EXPECT_EQ(driver.cuEventRecord(fork.joined, fork.second), CUDA_SUCCESS);
    spoiled(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, [&] { return driver.cuStreamWaitEvent(fork.first, fork.joined, 0); });
    CUgraph graph = nullptr;
    EXPECT_EQ(driver.cuStreamEndCapture(fork.first, &graph), CUDA_ERROR_ILLEGAL_STATE);
    fork.capture(); // and now all is well
  });
}

TEST(Graphs, ARelaxedCaptureLetsAllocationsBe) {
  run({}, [](TestDriver &driver) {
    Fork fork{driver};
    CUgraph graph = nullptr;
    EXPECT_EQ(driver.cuStreamBeginCapture_v2(fork.first, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    driver.allocate(16);
    EXPECT_EQ(driver.cuStreamEndCapture(fork.first, &graph), CUDA_SUCCESS);
  });
}

TEST(Graphs, TwoCapturesAreNotMerged) {
  run({}, [](TestDriver &driver) {
    Fork fork{driver};
    CUgraph graph = nullptr;
    for (const CUstream stream : {fork.first, fork.second})
      EXPECT_EQ(driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuEventRecord(fork.forked, fork.first), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamWaitEvent(fork.second, fork.forked, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    for (const CUstream stream : {fork.first, fork.second})
      EXPECT_EQ(driver.cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  });
}

TEST(Graphs, ACaptureEndsWhereItBegan) {
  run({}, [](TestDriver &driver) {
    Fork fork{driver};
    CUgraph graph = nullptr;
    EXPECT_EQ(driver.cuStreamBeginCapture_v2(fork.first, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuEventRecord(fork.forked, fork.first), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamWaitEvent(fork.second, fork.forked, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamEndCapture(fork.second, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    EXPECT_EQ(driver.cuStreamEndCapture(fork.first, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  });
}

TEST(Graphs, ACaptureEndsInItsThread) {
  run({}, [](TestDriver &driver) {
    Fork fork{driver};
    CUgraph graph = nullptr;
    const auto elsewhere = [&](const std::function<void()> &call) {
      std::thread([&] {
        EXPECT_EQ(driver.cuCtxSetCurrent(driver.context), CUDA_SUCCESS);
        call();
      }).join();
    };
    EXPECT_EQ(driver.cuStreamBeginCapture_v2(fork.first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
    elsewhere([&] {
      EXPECT_EQ(driver.cuStreamEndCapture(fork.first, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
      driver.allocate(16); // a capture of another thread
    });
    EXPECT_EQ(driver.cuStreamEndCapture(fork.first, &graph), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamBeginCapture_v2(fork.first, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    elsewhere([&] { EXPECT_EQ(driver.cuStreamEndCapture(fork.first, &graph), CUDA_SUCCESS); });
  });
}

TEST(Graphs, AStreamThatIsDestroyedEndsItsCapture) {
  run({}, [](TestDriver &driver) {
    Fork fork{driver};
    CUgraph graph = nullptr;
    EXPECT_EQ(driver.cuStreamBeginCapture_v2(fork.first, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuEventRecord(fork.forked, fork.first), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamWaitEvent(fork.second, fork.forked, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamDestroy_v2(fork.second), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamEndCapture(fork.first, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(driver.cuStreamBeginCapture_v2(fork.first, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamDestroy_v2(fork.first), CUDA_SUCCESS);
    driver.allocate(16); // nothing is captured
  });
}

TEST(Graphs, AGraphInACaptureIsRefused) {
  const std::string text = run({}, [](TestDriver &driver) {
    Fork fork{driver};
    const CUgraphExec executable = fork.instantiate(fork.capture());
    EXPECT_EQ(driver.cuStreamBeginCapture_v2(fork.first, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuGraphLaunch(executable, fork.first), CUDA_ERROR_NOT_SUPPORTED);
  });
  EXPECT_TRUE(says(text, "a graph is launched in a capture; capture what it does"));
}

TEST(Graphs, MemoryIsAllocatedBeforeTheFirstLaunch) {
  const auto allocate = [](const char *isAllowed, CUresult wanted) {
    return run({{"K2C_EMULATED_LATE_ALLOCATIONS", isAllowed}}, [&](TestDriver &driver) {
      Fork fork{driver};
      const CUgraphExec executable = fork.instantiate(fork.capture());
      driver.allocate(16);
      fork.launch(executable);
      CUdeviceptr address = 0;
      EXPECT_EQ(driver.cuMemAlloc_v2(&address, 16), wanted);
    });
  };
  EXPECT_TRUE(says(allocate("0", CUDA_ERROR_NOT_PERMITTED),
                   "memory is allocated behind the first launch of a graph; allocate it before, or set "
                   "K2C_EMULATED_LATE_ALLOCATIONS=1"));
  allocate("1", CUDA_SUCCESS);
}

} // namespace
