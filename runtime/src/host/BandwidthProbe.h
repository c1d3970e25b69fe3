// How fast the workers of a session read memory: the bound of decoding, measured beside it.
#ifndef K2RT_HOST_BANDWIDTHPROBE_H
#define K2RT_HOST_BANDWIDTHPROBE_H

#include "host/WorkerPool.h"
#include "serve/Session.h"

namespace k2rt {

/// Bytes per second of the fastest of a few passes over a 512 MiB buffer, all workers reading side by side. Takes and
/// frees that buffer: measure resident bytes before. 0 when there is no memory for it.
double probeBandwidth(Session &session);

} // namespace k2rt

#endif
