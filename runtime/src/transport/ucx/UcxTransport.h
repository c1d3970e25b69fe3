// Ranks as processes that anything has started, over UCX: TCP or RDMA.
#ifndef K2RT_TRANSPORT_UCX_UCXTRANSPORT_H
#define K2RT_TRANSPORT_UCX_UCXTRANSPORT_H

#include "transport/Transport.h"
#include "transport/ucx/Rendezvous.h"
#include <memory>
#include <string>

namespace k2c::runtime {

/// The shared object of this transport, of a build that has found UCX.
inline constexpr const char *ucxLibraryFile = "libk2rt-ucx.so";

/// Opens that shared object, and with it the UCX of the system, and meets the other ranks. On the thread that uses the
/// transport.
Expected<std::unique_ptr<Transport>> openUcx(const std::string &file, const JobMember &member);

} // namespace k2c::runtime

#endif
