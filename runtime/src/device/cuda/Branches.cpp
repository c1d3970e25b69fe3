// A launch whose CTAs do not fit beside those of its group begins another: the device would run them later anyway, and
// so one piece of scratch, for as many CTAs as a launch has at most, is enough for all.
#include "device/cuda/Branches.h"

namespace k2c::runtime {

Expected<Branches> Branches::create(const Driver &driver, CUstream main, int64_t ctas) {
  Branches made(driver, main, ctas);
  Expected<Event> begun = createEvent(driver);
  if (!begun)
    return begun.takeError();
  made.begun = std::move(*begun);
  for (Side &side : made.sides) {
    Expected<Stream> stream = createStream(driver);
    if (!stream)
      return stream.takeError();
    side.stream = std::move(*stream);
    Expected<Event> done = createEvent(driver);
    if (!done)
      return done.takeError();
    side.done = std::move(*done);
  }
  return made;
}

Expected<Branches::Place> Branches::next(int64_t launchCtas, bool isOpenBehind) {
  if (isOpen && usedCtas + launchCtas > ctas)
    if (Status joined = join(); !joined)
      return joined.takeError();
  if (launches == 0) {
    ++group;
    if (isOpenBehind)
      if (Status marked = driver->call<&Cuda::cuEventRecord>(begun.get(), main); !marked)
        return marked.takeError();
  }
  const int32_t branch = launches++ % K2RT_GPU_BRANCHES;
  Place place = {main, branch, group, usedCtas};
  usedCtas += launchCtas;
  isOpen = isOpenBehind;
  if (branch == 0)
    return place;
  Side &side = sides[static_cast<size_t>(branch) - 1];
  place.stream = side.stream.get();
  if (!std::exchange(side.isUsed, true))
    if (Status forked = driver->call<&Cuda::cuStreamWaitEvent>(side.stream.get(), begun.get(), 0u); !forked)
      return forked.takeError();
  return place;
}

Status Branches::launched() { return isOpen ? Status() : join(); }

/// What comes next on the main stream is behind all of the group.
Status Branches::join() {
  for (Side &side : sides) {
    if (!std::exchange(side.isUsed, false))
      continue;
    if (Status marked = driver->call<&Cuda::cuEventRecord>(side.done.get(), side.stream.get()); !marked)
      return marked;
    if (Status joined = driver->call<&Cuda::cuStreamWaitEvent>(main, side.done.get(), 0u); !joined)
      return joined;
  }
  isOpen = false;
  launches = 0;
  usedCtas = 0;
  return {};
}

} // namespace k2c::runtime
