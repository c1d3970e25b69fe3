// Ranks and times in messages.
#ifndef K2RT_TRANSPORT_RANKTEXT_H
#define K2RT_TRANSPORT_RANKTEXT_H

#include "transport/Transport.h"
#include <string>
#include <vector>

namespace k2c::runtime {

/// So many ranks are named at most, of those that a message is about.
inline constexpr size_t maxNamed = 8;
/// "rank 3", "ranks 1, 2 and 5"; of many the first ones and how many more.
std::string rankList(const std::vector<int32_t> &ranks);
/// "30 s", "0.5 s".
std::string secondsText(Clock::duration time);

} // namespace k2c::runtime

#endif
