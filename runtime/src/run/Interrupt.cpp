// Only lock-free atomics are touched in the handler.
#include "run/Interrupt.h"
#include "engine/Session.h"
#include <atomic>
#include <csignal>
#include <unistd.h>

namespace k2rt {

static std::atomic<bool> interrupted{false};
static std::atomic<Session *> current{nullptr};

static void onInterrupt(int) {
  if (interrupted.exchange(true))
    ::_exit(130);
  if (Session *session = current.load())
    session->interrupt();
}

void catchInterrupt() {
  struct sigaction action = {};
  action.sa_handler = onInterrupt;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

bool wasInterrupted() { return interrupted.load(); }

void interruptStops(Session *session) {
  current.store(session);
  if (session && wasInterrupted())
    session->interrupt();
}

} // namespace k2rt
