// What all-to-alls of a few sizes take, as medians: printed by rank 0, never a test.
#ifndef K2C_UNIT_RUNTIME_CONFORMANCE_TIMING_H
#define K2C_UNIT_RUNTIME_CONFORMANCE_TIMING_H

#include "exchange/Exchange.h"
#include <algorithm>
#include <cstdio>
#include <vector>

namespace k2c::test {

/// Microseconds of one all-to-all of `bytes` a member: the median of `repeats`, each of several calls.
inline double timeAllToAll(runtime::Exchange &exchange, int64_t bytes, int repeats) {
  using namespace runtime;
  const Group world = exchange.group(Axis::world);
  std::vector<char> source(bytes * world.size), result(bytes * world.size);
  Collective c{Op::allToAll, Axis::world, 1};
  c.source = source.data();
  c.result = result.data();
  c.bytes = bytes;
  const int calls = bytes < 100000 ? 100 : 5;
  std::vector<double> times;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const Clock::time_point begin = Clock::now();
    for (int call = 0; call < calls; ++call)
      if (!exchange.run(c))
        return -1;
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls);
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[repeats / 2];
}

inline int timeAllToAlls(runtime::Exchange &exchange) {
  const int32_t size = exchange.group(runtime::Axis::world).size;
  for (const int64_t bytes : {8, 4096, 131072, 262144, 524288, 4194304}) {
    const double us = timeAllToAll(exchange, bytes, 21);
    if (exchange.rank() == 0)
      std::printf("%d ranks, %8lld bytes a peer: %10.1f us, %6.2f GB/s a rank\n", size, static_cast<long long>(bytes),
                  us, static_cast<double>(bytes) * (size - 1) / us / 1000);
  }
  return exchange.close() ? 0 : 1;
}

} // namespace k2c::test

#endif
