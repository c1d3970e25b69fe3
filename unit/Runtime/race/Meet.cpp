// Four threads write, meet, read each other's slots and meet again. Built once with the runtime's Barrier.h and once
// with each of its orders weakened; ThreadSanitizer must tell them apart (RaceTest.cpp).
//
// meet-NAME: threads that wait never sleep; meet-NAME asleep: they sleep at once, and leave by the other loop.
#include "k2rt/Barrier.h"
#include <sched.h>
#include <thread>
#include <vector>

static constexpr int32_t threads = 4, rounds = 200, neverSleep = INT32_MAX;

int main(int argc, char **) {
  k2c::runtime::Barrier barrier(threads, argc > 1 ? 0 : neverSleep);
  std::vector<int64_t> slots(threads), sums(threads);
  std::vector<std::thread> team;
  for (int32_t self = 0; self < threads; ++self)
    team.emplace_back([&, self] {
      const auto meet = [&] { barrier.wait([] {}, [] { ::sched_yield(); }); };
      for (int32_t round = 1; round <= rounds; ++round) {
        slots[self] = round;
        meet();
        for (int64_t slot : slots)
          sums[self] += slot;
        meet();
      }
    });
  for (std::thread &thread : team)
    thread.join();
  const int64_t all = int64_t(threads) * rounds * (rounds + 1) / 2;
  return sums == std::vector<int64_t>(threads, all) ? 0 : 1;
}
