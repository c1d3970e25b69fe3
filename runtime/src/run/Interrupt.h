// SIGINT: the first ends the running step cleanly (exit code 130), the second ends the process at once.
#ifndef K2RT_RUN_INTERRUPT_H
#define K2RT_RUN_INTERRUPT_H

namespace k2rt {

class Session;

/// Installs the handler. Once, at start.
void catchInterrupt();
/// Whether SIGINT has come.
bool wasInterrupted();
/// The session that a SIGINT stops from now on; null before it is destroyed.
void interruptStops(Session *session);

} // namespace k2rt

#endif
