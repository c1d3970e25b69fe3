// One receive from anybody is always posted, until all ranks have said farewell. A rank says it to itself, too, so that
// it listens as long as others may fail, and ends with nothing posted.
#include "exchange/Control.h"
#include <algorithm>
#include <cstring>

namespace k2c::runtime {

Control::Control(Transport &transport) : transport(transport), hasEnded(transport.ranks()) { listen(); }

std::vector<int32_t> Control::ranksInRun() const {
  std::vector<int32_t> ranks;
  for (int32_t rank = 0; rank < transport.ranks(); ++rank)
    if (!hasEnded[rank])
      ranks.push_back(rank);
  return ranks;
}

void Control::listen() {
  if (!haveAllEnded())
    listening = transport.receive(anyPeer, controlTag, &incoming, sizeof incoming);
}

void Control::send(int32_t rank, ControlKind kind, k2rt_code code, const std::string &text) {
  outgoing.push_back({{controlFormat, kind, transport.rank(), code, {}}, noTicket});
  ControlMessage &message = outgoing.back().message;
  std::memcpy(message.text.data(), text.data(), std::min(text.size(), ControlMessage::maxText - 1));
  outgoing.back().ticket = transport.send(rank, controlTag, &message, sizeof message);
}

void Control::sendToOthers(ControlKind kind, k2rt_code code, const std::string &text) {
  for (int32_t rank = 0; rank < transport.ranks(); ++rank)
    if (rank != transport.rank())
      send(rank, kind, code, text);
}

Expected<const ControlMessage *> Control::poll() {
  while (!outgoing.empty()) {
    Expected<bool> has = transport.test(outgoing.front().ticket);
    if (!has)
      return has.takeError();
    if (!*has)
      break;
    outgoing.pop_front();
  }
  if (listening == noTicket)
    return nullptr;
  Expected<bool> has = transport.test(listening);
  if (!has)
    return has.takeError();
  if (!*has)
    return nullptr;
  delivered = incoming;
  delivered.text.back() = 0;
  listening = noTicket;
  if (delivered.format != controlFormat)
    return Error{K2RT_PEER_FAILED, "rank " + std::to_string(delivered.source),
                 "a control message begins with " + std::to_string(delivered.format) + ", not with " +
                     std::to_string(controlFormat),
                 "start the same build of k2c on every host"};
  if (delivered.kind == ControlKind::farewell) {
    ++ended;
    hasEnded[delivered.source] = true;
  }
  listen();
  return &delivered;
}

} // namespace k2c::runtime
