#include "transport/Job.h"
#include <atomic>

namespace k2c::runtime {

static std::atomic<EndOfJob> joined{nullptr};

void joinJob(EndOfJob end) { joined = end; }

void leaveJob() { joined = nullptr; }

bool isInJob() { return joined.load() != nullptr; }

void endJoinedJob(int32_t exitCode) { joined.load()(exitCode); }

} // namespace k2c::runtime
