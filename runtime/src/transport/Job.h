// The job of processes that this one belongs to, as far as it matters at its end: a transport over processes joins it.
#ifndef K2RT_TRANSPORT_JOB_H
#define K2RT_TRANSPORT_JOB_H

#include <cstdint>

namespace k2c::runtime {

/// Ends all processes of the job, this one with the exit code. Returns where the library cannot: each ends by itself.
using EndOfJob = void (*)(int32_t exitCode);

/// Of a transport, when its library has been started, and before it is finished: nothing may be called behind that.
void joinJob(EndOfJob end);
void leaveJob();

bool isInJob();
/// After a failure in a process that isInJob, when no thread uses the transport any more.
void endJoinedJob(int32_t exitCode);

} // namespace k2c::runtime

#endif
