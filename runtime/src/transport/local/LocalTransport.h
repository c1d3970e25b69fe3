// Ranks as threads of one process: a receiver copies from the sender's buffer into its own. Nothing is staged but
// messages of a few hundred bytes, whose senders then need not wait.
#ifndef K2RT_TRANSPORT_LOCAL_LOCALTRANSPORT_H
#define K2RT_TRANSPORT_LOCAL_LOCALTRANSPORT_H

#include "transport/Transport.h"
#include <memory>
#include <vector>

namespace k2c::runtime {

/// The transports of `ranks` ranks that reach each other, by rank. Each is used, and destroyed, by one thread.
std::vector<std::unique_ptr<Transport>> localTransports(int32_t ranks);

} // namespace k2c::runtime

#endif
