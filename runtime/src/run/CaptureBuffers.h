// Memory for what inspection commands look at: a window of rows, beside the certificate of the program.
#ifndef K2RT_RUN_CAPTUREBUFFERS_H
#define K2RT_RUN_CAPTUREBUFFERS_H

#include "device/cpu/Region.h"
#include "engine/CaptureChoice.h"
#include "engine/Scheduler.h"

namespace k2c::runtime {

/// Buffers for at most 64 MiB of rows; a step is no larger than they are, which changes no bit of it.
class CaptureBuffers {
public:
  static Expected<CaptureBuffers> allocate(const Manifest &manifest, CaptureChoice choice);
  /// For Scheduler::capture; `captured` is the caller's to set.
  Captures view;

private:
  Region region;
};

} // namespace k2c::runtime

#endif
