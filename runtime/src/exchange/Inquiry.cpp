// The message of a deadline: who has not posted, how many bytes are missing, and what each of those ranks says.
#include "exchange/Inquiry.h"
#include "transport/RankText.h"
#include <algorithm>

namespace k2c::runtime {

Inquiry::Inquiry(const CollectiveRequest &request, Control &control)
    : request(request), asked(request.unfinishedRanks()) {
  for (int32_t rank : asked)
    control.send(rank, ControlKind::question);
}

void Inquiry::hear(const ControlMessage &answer) {
  if (std::find(asked.begin(), asked.end(), answer.source) != asked.end())
    answers[answer.source] = answer.text.data();
}

Error Inquiry::error(Clock::duration deadline) const {
  const std::vector<int32_t> absent = request.absentRanks();
  std::string message = "the deadline of " + secondsText(deadline) + " has passed: ";
  message += absent.empty() ? rankList(asked) + (asked.size() == 1 ? " has" : " have") + " not finished a message"
                            : rankList(absent) + (absent.size() == 1 ? " has" : " have") + " not posted";
  message += ", " + std::to_string(request.receivedBytes()) + " of " + std::to_string(request.expectedBytes()) +
             " bytes were received";
  std::vector<int32_t> silent;
  for (size_t i = 0; i < asked.size(); ++i) {
    const auto said = answers.find(asked[i]);
    if (said == answers.end())
      silent.push_back(asked[i]);
    else if (i < maxNamed)
      message += "; the communication thread of rank " + std::to_string(asked[i]) + " answers: " + said->second;
  }
  if (!silent.empty())
    message += "; " + rankList(silent) + (silent.size() == 1 ? " does" : " do") + " not answer";
  return Error{K2RT_DEADLINE, placeOf(request.collective()), message, "a longer deadline helps ranks that are slow"};
}

} // namespace k2c::runtime
