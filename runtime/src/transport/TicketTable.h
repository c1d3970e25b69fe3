// Posted messages by their tickets.
#ifndef K2RT_TRANSPORT_TICKETTABLE_H
#define K2RT_TRANSPORT_TICKETTABLE_H

#include "transport/Transport.h"
#include <vector>

namespace k2c::runtime {

/// Numbers from 0 on; those that were given back are taken first.
class NumberPool {
public:
  int32_t take() {
    if (unused.empty())
      return count++;
    const int32_t number = unused.back();
    unused.pop_back();
    return number;
  }
  void giveBack(int32_t number) { unused.push_back(number); }

private:
  int32_t count = 0;
  std::vector<int32_t> unused;
};

template <class Message> class TicketTable {
public:
  /// Its message is new, or as it was when its ticket was given back.
  Ticket take() {
    const Ticket ticket = tickets.take();
    if (static_cast<size_t>(ticket) == messages.size())
      messages.emplace_back();
    return ticket;
  }
  void giveBack(Ticket ticket) { tickets.giveBack(ticket); }
  Message &operator[](Ticket ticket) { return messages[ticket]; }
  /// Of all tickets, those given back, too.
  std::vector<Message> &all() { return messages; }

private:
  NumberPool tickets;
  std::vector<Message> messages;
};

} // namespace k2c::runtime

#endif
