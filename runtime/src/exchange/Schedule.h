// A collective as rounds of messages: who sends what to whom, in which order, and what is computed when a round is
// over. Functions of the collective and the group alone, so every rank knows what every other rank will send.
#ifndef K2RT_EXCHANGE_SCHEDULE_H
#define K2RT_EXCHANGE_SCHEDULE_H

#include "exchange/Collective.h"
#include <cstddef>
#include <vector>

namespace k2c::runtime {

struct Sending {
  int32_t rank;
  const std::byte *data;
  int64_t bytes;
};

struct Receiving {
  int32_t rank;
  std::byte *data;
  int64_t bytes;           ///< exactly, or at most where `rows` is not null
  int64_t *rows = nullptr; ///< gets the number of rows of `rowBytes` that came
  int64_t rowBytes = 0;
};

/// Messages that depend on no message of each other. Empty after the last round.
struct Round {
  std::vector<Sending> sends;
  std::vector<Receiving> receives;
};

/// Rounds of this collective: reductions of more than maxInlineBytes have two, others one.
int32_t roundsOf(const Collective &collective, const Group &group);
/// Fills `round` with the messages of one. Peers come in the order of their distance, so that not all begin with one.
void planRound(const Collective &collective, const Group &group, int32_t number, Round &round);
/// What this rank does itself when all messages of a round are through: copies its own part, adds partial sums.
void finishRound(const Collective &collective, const Group &group, int32_t number);

} // namespace k2c::runtime

#endif
