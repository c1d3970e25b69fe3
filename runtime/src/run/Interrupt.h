// SIGINT: the first ends the running step cleanly (exit code 130), the second ends the process at once.
#ifndef K2RT_RUN_INTERRUPT_H
#define K2RT_RUN_INTERRUPT_H

namespace k2c::runtime {

class Engine;

/// Installs the handler. Once, at start.
void catchInterrupt();
/// Whether SIGINT has come.
bool wasInterrupted();
/// The engine that a SIGINT stops from now on; null before it is destroyed.
void interruptStops(Engine *engine);

} // namespace k2c::runtime

#endif
