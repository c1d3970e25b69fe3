// While a step is captured: streams beside each other, so that launches of a group are parallel branches of the graph.
//
//   main      launch 1 -> launch 2 -----> launch 5
//   second            `-> launch 3 ----'
//   third             `-> launch 4 ---'
#ifndef K2RT_DEVICE_CUDA_BRANCHES_H
#define K2RT_DEVICE_CUDA_BRANCHES_H

#include "base/GpuHandles.h"
#include "k2rt/program.h"
#include <array>
#include <utility>

namespace k2c::runtime {

class Branches {
public:
  /// `main` is the first; of launches that run beside each other, at most `ctas` CTAs. All outlive it.
  static Expected<Branches> create(const Driver &driver, CUstream main, int64_t ctas);

  /// Where a launch goes.
  struct Place {
    CUstream stream;
    int32_t branch, group;
    int64_t firstCta; ///< of the group's, by which its scratch is apart
  };
  /// Of the next launch, of so many CTAs. `isOpen`: the one behind it may run beside it.
  Expected<Place> next(int64_t launchCtas, bool isOpen);
  /// The launch is enqueued.
  Status launched();

private:
  Branches(const Driver &driver, CUstream main, int64_t ctas) : driver(&driver), main(main), ctas(ctas) {}
  Status join();

  const Driver *driver;
  CUstream main;
  int64_t ctas;
  struct Side {
    Stream stream;
    Event done;
    bool isUsed = false; ///< in this group
  };
  std::array<Side, K2RT_GPU_BRANCHES - 1> sides;
  Event begun; ///< of the group
  bool isOpen = false;
  int32_t group = 0, launches = 0; ///< launches of the group
  int64_t usedCtas = 0;            ///< of it
};

} // namespace k2c::runtime

#endif
