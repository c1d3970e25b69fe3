// Messages between the communication threads themselves: is a rank alive, has one failed, has one ended.
#ifndef K2RT_EXCHANGE_CONTROL_H
#define K2RT_EXCHANGE_CONTROL_H

#include "base/Error.h"
#include "transport/Transport.h"
#include <array>
#include <deque>
#include <string>
#include <vector>

namespace k2c::runtime {

/// The tag of control messages; those of collectives begin behind it.
inline constexpr int32_t controlTag = 0;

enum class ControlKind : uint32_t {
  question, ///< is your communication thread alive, and what do its workers do?
  answer,   ///< `text` says what they do
  failure,  ///< the sender's run has failed with `code` and `text`: so does this one
  farewell, ///< the sender has ended its run: its last message, which it sends itself, too
};

struct ControlMessage {
  static constexpr size_t maxText = 480;

  uint32_t format; ///< controlFormat
  ControlKind kind;
  int32_t source; ///< rank
  k2rt_code code;
  std::array<char, maxText> text; ///< ends with a zero byte
};
static_assert(sizeof(ControlMessage) <= maxShortBytes);

inline constexpr uint32_t controlFormat = 0x3143326b; // "k2C1"

class Control {
public:
  /// Listens from now on.
  explicit Control(Transport &transport);

  void send(int32_t rank, ControlKind kind, k2rt_code code = K2RT_OK, const std::string &text = "");
  void sendToOthers(ControlKind kind, k2rt_code code = K2RT_OK, const std::string &text = "");
  /// The next message of a peer; null when there is none. Valid until the next call.
  Expected<const ControlMessage *> poll();
  /// Those that have not said farewell, of all ranks.
  std::vector<int32_t> ranksInRun() const;
  bool haveAllEnded() const { return ended == transport.ranks(); }
  /// Whether all that was sent has left this rank.
  bool isFlushed() const { return outgoing.empty(); }

private:
  struct Outgoing {
    ControlMessage message;
    Ticket ticket;
  };
  void listen();

  Transport &transport;
  ControlMessage incoming{}, delivered{};
  Ticket listening = noTicket;
  int32_t ended = 0;
  std::vector<bool> hasEnded;    ///< by rank
  std::deque<Outgoing> outgoing; ///< its elements stay where they are
};

} // namespace k2c::runtime

#endif
