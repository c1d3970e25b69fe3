// How a thread that polls sleeps without losing what arrives: it notes what it heard, polls, and sleeps unless the bell
// has rung since.
//
//   heard = bell.heard(); if (!poll()) bell.wait(heard, atMost);
#ifndef K2RT_TRANSPORT_DOORBELL_H
#define K2RT_TRANSPORT_DOORBELL_H

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace k2c::runtime {

class Doorbell {
public:
  uint32_t heard() const { return rings.load(); }

  /// Wakes all who sleep. From any thread, and from a signal handler.
  void ring() {
    rings.fetch_add(1); // sequentially consistent with `sleepers`: no wake-up is lost
    if (sleepers.load() > 0)
      ::syscall(SYS_futex, &rings, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

  /// Sleeps until the bell has rung since it was `heard`, at most so long; a signal may end it early.
  void wait(uint32_t heard, std::chrono::microseconds atMost) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(atMost);
    const timespec time{seconds.count(), std::chrono::nanoseconds(atMost - seconds).count()};
    sleepers.fetch_add(1);
    if (rings.load() == heard)
      ::syscall(SYS_futex, &rings, FUTEX_WAIT_PRIVATE, heard, &time, nullptr, 0);
    sleepers.fetch_sub(1);
  }

private:
  std::atomic<uint32_t> rings{0};
  std::atomic<int32_t> sleepers{0};
};

} // namespace k2c::runtime

#endif
