// A barrier for worker threads that share processors with nobody, or with everybody.
//
// One arrival counter and one generation word (the sense), each on its own cache line. The last to arrive runs an
// action, resets the counter and advances the generation; the others spin on it and, after a while, sleep in a futex.
// An oversubscribed team sleeps almost at once, so that the thread it waits for gets the processor.
#ifndef K2RT_BARRIER_H
#define K2RT_BARRIER_H

#include <atomic>
#include <climits>
#include <cstdint>
#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace k2c::runtime {

class Barrier {
public:
  /// `spins`: pause instructions before sleeping (4000 are about 50 microseconds).
  Barrier(int32_t count, int32_t spins) : count(count), spins(spins) {}

  /// Returns when all `count` threads have called it. The last one runs `action` before anyone returns; what it wrote
  /// is visible to all. The others call `idle`, which takes about as long as a pause instruction, until they sleep.
  template <class Action, class Idle> void wait(Action action, Idle idle) {
    const uint32_t sense = generation.load(std::memory_order_relaxed);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
      action();
      arrived.store(0, std::memory_order_relaxed);
      generation.store(sense + 1); // sequentially consistent with `sleepers`: no wake-up is lost
      if (sleepers.load() > 0)
        ::syscall(SYS_futex, &generation, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
      return;
    }
    for (int32_t i = 0; i < spins; ++i) {
      if (generation.load(std::memory_order_acquire) != sense)
        return;
      idle();
    }
    sleepers.fetch_add(1);
    while (generation.load() == sense)
      ::syscall(SYS_futex, &generation, FUTEX_WAIT_PRIVATE, sense, nullptr, nullptr, 0);
    sleepers.fetch_sub(1);
  }
  template <class Action> void wait(Action action) {
    wait(action, [] { _mm_pause(); });
  }
  void wait() {
    wait([] {});
  }

private:
  alignas(64) std::atomic<int32_t> arrived{0};
  alignas(64) std::atomic<uint32_t> generation{0};
  alignas(64) std::atomic<int32_t> sleepers{0};
  alignas(64) const int32_t count;
  const int32_t spins;
};

} // namespace k2c::runtime

#endif
