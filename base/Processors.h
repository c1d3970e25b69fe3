// Which processors a thread may run on, on a machine of any number of them.
//
// cpu_set_t ends at 1,024 processors, and the system refuses a mask that is shorter than its own. So masks grow until
// it takes them.
#ifndef K2C_BASE_PROCESSORS_H
#define K2C_BASE_PROCESSORS_H

#include <pthread.h>
#include <sched.h>
#include <vector>

namespace k2c {

/// How the system is asked for the mask of a thread: sched_getaffinity, or the stand-in of a test.
using AffinityQuery = int (*)(pid_t thread, size_t bytes, cpu_set_t *mask);

/// The processors the calling thread may run on, ascending; empty when the system does not tell.
std::vector<int> ownProcessors(AffinityQuery query = ::sched_getaffinity);

/// Lets `thread` run on `processors` (not empty, none negative) only: 0, or the errno of the refusal.
int bindThread(pthread_t thread, const std::vector<int> &processors);

} // namespace k2c

#endif
