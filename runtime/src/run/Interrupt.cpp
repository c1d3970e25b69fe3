// Only lock-free atomics are touched in the handler. It cannot wait for anyone: a process that joins its job is in a
// call of a library, one that loads reads weights, and neither looks at a flag. The launcher ends the rest of the job.
#include "run/Interrupt.h"
#include "engine/Engine.h"
#include "exchange/LinkProbe.h"
#include <atomic>
#include <csignal>
#include <unistd.h>

namespace k2c::runtime {

static std::atomic<bool> interrupted{false}, hasWork{false};
static std::atomic<Engine *> runningEngine{nullptr};
static std::atomic<RankMember *> servingRank{nullptr};
static std::atomic<LinkProbe *> measuringRank{nullptr};

static void onInterrupt(int) {
  if (interrupted.exchange(true) || !hasWork)
    ::_exit(130);
  if (Engine *engine = runningEngine.load())
    engine->interrupt();
  if (RankMember *member = servingRank.load())
    member->interrupt();
  if (LinkProbe *probe = measuringRank.load())
    probe->interrupt();
}

/// With work that is stopped in order, calls that wait go on behind the handler: a file that stdio writes would have a
/// hole where its write was interrupted.
static void install(bool hasWorkNow) {
  hasWork = hasWorkNow;
  struct sigaction action = {};
  action.sa_handler = onInterrupt;
  action.sa_flags = hasWorkNow ? SA_RESTART : 0;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

void catchInterrupt() { install(false); }

void interruptStops(Engine *engine) {
  runningEngine.store(engine);
  install(true);
}

void interruptStops(RankMember *member) {
  servingRank.store(member);
  install(member != nullptr);
}

void interruptStops(LinkProbe *probe) {
  measuringRank.store(probe);
  install(true);
}

} // namespace k2c::runtime
