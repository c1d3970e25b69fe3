// Only lock-free atomics are touched in the handler.
#include "run/Interrupt.h"
#include "engine/Engine.h"
#include <atomic>
#include <csignal>
#include <unistd.h>

namespace k2c::runtime {

static std::atomic<bool> interrupted{false};
static std::atomic<Engine *> current{nullptr};

static void onInterrupt(int) {
  if (interrupted.exchange(true))
    ::_exit(130);
  if (Engine *engine = current.load())
    engine->interrupt();
}

void catchInterrupt() {
  struct sigaction action = {};
  action.sa_handler = onInterrupt;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

bool wasInterrupted() { return interrupted.load(); }

void interruptStops(Engine *engine) {
  current.store(engine);
  if (engine && wasInterrupted())
    engine->interrupt();
}

} // namespace k2c::runtime
