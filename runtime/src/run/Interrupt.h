// SIGINT: the first ends the running step cleanly (exit code 130), the second ends the process at once. So does the
// first where no step can run: before a rank has loaded, nothing of the run is there that could be lost.
#ifndef K2RT_RUN_INTERRUPT_H
#define K2RT_RUN_INTERRUPT_H

namespace k2c::runtime {

class Engine;
class LinkProbe;
class RankMember;

/// Installs the handler. Once, at start.
void catchInterrupt();
/// The engine that a SIGINT stops from now on; null before it is destroyed, after which a command completes its output.
void interruptStops(Engine *engine);
/// The same of a rank that serves another process: null before it is destroyed, after which it has nothing to complete.
void interruptStops(RankMember *member);

/// The same of a rank that measures links; null before it is destroyed, after which a command completes its output.
void interruptStops(LinkProbe *probe);

} // namespace k2c::runtime

#endif
