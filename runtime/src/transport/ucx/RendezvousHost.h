// Rank 0 of a rendezvous.
#ifndef K2RT_TRANSPORT_UCX_RENDEZVOUSHOST_H
#define K2RT_TRANSPORT_UCX_RENDEZVOUSHOST_H

#include "transport/ucx/Rendezvous.h"

namespace k2c::runtime {

/// Listens until all other ranks have come; as of meet.
Expected<std::vector<std::string>> hostRendezvous(const JobMember &member, const std::string &own);

/// "rendezvous at HOST:PORT".
std::string rendezvousPlace(const JobMember &member);
/// The limit of the member has passed, with the last trouble.
Error rendezvousIsLate(const JobMember &member, const std::string &trouble);

} // namespace k2c::runtime

#endif
