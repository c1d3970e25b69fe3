// How ranks that nothing but an address and a number joins come to know where UCX reaches each of them.
//
//   rank r -> rank 0   hello:    rank, ranks, address of UCX        when it has come
//   rank 0 -> rank r   answer:   the addresses of all ranks         when all have come; or why the job does not begin
//
// Rank 0 listens at MASTER_ADDR:MASTER_PORT. Anyone may connect there: whoever does not say the hash of the job's token
// is dropped without a word, who says nothing delays nobody, and no message takes memory before its bound is checked
// (RendezvousMessages.h). A token tells jobs apart; it is no defence against one who reads the network.
#ifndef K2RT_TRANSPORT_UCX_RENDEZVOUS_H
#define K2RT_TRANSPORT_UCX_RENDEZVOUS_H

#include "base/Error.h"
#include "transport/Transport.h"
#include <string>
#include <vector>

namespace k2c::runtime {

/// Which rank this process is, where it meets the others, and for how long.
struct JobMember {
  int32_t rank = 0, ranks = 1;
  std::string host, port; ///< of rank 0
  std::string token;      ///< the same for all ranks of a job, and no other's
  Clock::duration limit = std::chrono::seconds(30);
};

/// The addresses of all ranks, by rank, once each has come with its `own`. What keeps the job from its beginning is
/// told to all ranks that have come.
Expected<std::vector<std::string>> meet(const JobMember &member, const std::string &own);

} // namespace k2c::runtime

#endif
