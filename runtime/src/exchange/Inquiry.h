// After a deadline: asks the ranks that a collective waits for whether they are alive, and makes the message of it.
#ifndef K2RT_EXCHANGE_INQUIRY_H
#define K2RT_EXCHANGE_INQUIRY_H

#include "exchange/CollectiveRequest.h"
#include "exchange/Control.h"
#include <map>
#include <string>
#include <vector>

namespace k2c::runtime {

class Inquiry {
public:
  /// How long an answer may take.
  static constexpr std::chrono::milliseconds answerTime{1000};

  /// Asks the ranks with which messages of `request` are under way.
  Inquiry(const CollectiveRequest &request, Control &control);

  void hear(const ControlMessage &answer);
  /// Whether all have answered, or had the time.
  bool isOver(Clock::time_point now) const { return haveAllAnswered() || now - begin > answerTime; }
  /// So much of the time for answers was none: this rank could not hear them.
  void forgive(Clock::duration lost) { begin += lost; }
  bool haveAllAnswered() const { return answers.size() == asked.size(); }
  const CollectiveRequest &about() const { return request; }
  /// What to report of a deadline of this length.
  Error error(Clock::duration deadline) const;

private:
  const CollectiveRequest &request;
  const std::vector<int32_t> asked;
  std::map<int32_t, std::string> answers;
  Clock::time_point begin = Clock::now();
};

} // namespace k2c::runtime

#endif
