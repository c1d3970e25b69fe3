// The messages of a round are posted at once: for each peer a header, with the payload behind it where it is short,
// else the payload as the next message of the tag. A payload is received when its header has been found right: no byte
// of a wrong message reaches a buffer.
//
//   header -> payload -> done      or, of a short one,      header -> done
//
// A round is over when all its messages are, the sent ones, too: reductions write in place what the first round read.
#include "exchange/CollectiveRequest.h"
#include <algorithm>
#include <cstring>

namespace k2c::runtime {

void CollectiveRequest::begin(const Collective &collective, const Group &among, int32_t messageTag,
                              uint64_t programHash, int32_t perNode) {
  what = collective;
  group = among;
  tag = messageTag;
  program = programHash;
  nodeRanks = perNode;
  round = 0;
  rounds = roundsOf(what, group);
  isPosted = false;
  sums = {};
  sums.begin = Clock::now();
}

void CollectiveRequest::post(Transport &transport) {
  planRound(what, group, round, current);
  outgoing.resize(std::max(outgoing.size(), current.sends.size()));
  incoming.resize(std::max(incoming.size(), current.receives.size()));
  for (size_t i = 0; i < current.receives.size(); ++i) {
    Incoming &next = incoming[i];
    next.stage = Stage::header;
    next.bytes = 0;
    next.ticket = transport.receive(current.receives[i].rank, tag, &next.envelope, sizeof(Envelope));
  }
  for (size_t i = 0; i < current.sends.size(); ++i) {
    const Sending &sending = current.sends[i];
    Outgoing &next = outgoing[i];
    const bool isInline = sending.bytes <= maxInlineBytes;
    next.envelope.header = headerOf(what, program, round, transport.rank(), sending.bytes);
    if (isInline && sending.bytes > 0)
      std::memcpy(next.envelope.payload.data(), sending.data, static_cast<size_t>(sending.bytes));
    next.header = transport.send(sending.rank, tag, &next.envelope,
                                 static_cast<int64_t>(sizeof(Header)) + (isInline ? sending.bytes : 0));
    next.payload = isInline ? noTicket : transport.send(sending.rank, tag, sending.data, sending.bytes);
    SentBytes &sent = sums.sent[sending.rank / nodeRanks != transport.rank() / nodeRanks];
    sent.payload += sending.bytes;
    sent.headers += sizeof(Header);
    sent.messages += what.rowBytes > 0   ? sending.bytes / what.rowBytes
                     : isRagged(what.op) ? sending.bytes / what.bytes
                                         : sending.bytes > 0;
  }
  unfinished = current.sends.size() + current.receives.size();
  isPosted = true;
}

/// The header of a message has come: checks it, and takes or posts the payload.
Status CollectiveRequest::take(Transport &transport, const Receiving &wanted, Incoming &incoming) {
  const Header own = headerOf(what, program, round, transport.rank(), wanted.bytes);
  if (Status right = checkHeader(incoming.envelope.header, own, wanted.rows != nullptr, what); !right)
    return right;
  incoming.bytes = incoming.envelope.header.bytes;
  if (wanted.rows)
    *wanted.rows = incoming.bytes / wanted.rowBytes;
  incoming.stage = Stage::done;
  if (incoming.bytes > maxInlineBytes) {
    incoming.ticket = transport.receive(wanted.rank, tag, wanted.data, incoming.bytes);
    incoming.stage = Stage::payload;
  } else if (incoming.bytes > 0) {
    std::memcpy(wanted.data, incoming.envelope.payload.data(), static_cast<size_t>(incoming.bytes));
  }
  return {};
}

Expected<bool> CollectiveRequest::advanceReceives(Transport &transport) {
  bool hasMoved = false;
  for (size_t i = 0; i < current.receives.size(); ++i) {
    Incoming &next = incoming[i];
    while (next.stage != Stage::done) {
      Expected<bool> has = transport.test(next.ticket);
      if (!has || !*has) {
        if (!has)
          return has.takeError();
        break;
      }
      hasMoved = true;
      if (next.stage == Stage::payload)
        next.stage = Stage::done;
      else if (Status right = take(transport, current.receives[i], next); !right)
        return right.takeError();
      if (next.stage == Stage::done) {
        --unfinished;
        sums.last = current.receives[i].rank;
      }
    }
  }
  return hasMoved;
}

Expected<bool> CollectiveRequest::advanceSends(Transport &transport) {
  bool hasMoved = false;
  for (size_t i = 0; i < current.sends.size(); ++i)
    for (Ticket *ticket : {&outgoing[i].header, &outgoing[i].payload}) {
      if (*ticket == noTicket)
        continue;
      Expected<bool> has = transport.test(*ticket);
      if (!has)
        return has.takeError();
      if (!*has)
        break;
      *ticket = noTicket;
      hasMoved = true;
      unfinished -= outgoing[i].payload == noTicket;
    }
  return hasMoved;
}

Expected<bool> CollectiveRequest::advance(Transport &transport) {
  bool hasMoved = !isPosted;
  if (!isPosted)
    post(transport);
  for (auto part : {&CollectiveRequest::advanceReceives, &CollectiveRequest::advanceSends}) {
    Expected<bool> has = (this->*part)(transport);
    if (!has)
      return has.takeError();
    hasMoved |= *has;
  }
  if (unfinished > 0)
    return hasMoved;
  finishRound(what, group, round);
  ++round;
  isPosted = false;
  sums.end = Clock::now();
  return true;
}

std::vector<int32_t> CollectiveRequest::absentRanks() const {
  std::vector<int32_t> ranks;
  for (size_t i = 0; isPosted && i < current.receives.size(); ++i)
    if (incoming[i].stage == Stage::header)
      ranks.push_back(current.receives[i].rank);
  return ranks;
}

std::vector<int32_t> CollectiveRequest::unfinishedRanks() const {
  std::vector<int32_t> ranks;
  for (size_t i = 0; isPosted && i < current.receives.size(); ++i)
    if (incoming[i].stage != Stage::done)
      ranks.push_back(current.receives[i].rank);
  for (size_t i = 0; isPosted && i < current.sends.size(); ++i)
    if ((outgoing[i].header != noTicket || outgoing[i].payload != noTicket) &&
        std::find(ranks.begin(), ranks.end(), current.sends[i].rank) == ranks.end())
      ranks.push_back(current.sends[i].rank);
  return ranks;
}

int64_t CollectiveRequest::expectedBytes() const {
  int64_t bytes = 0;
  for (size_t i = 0; isPosted && i < current.receives.size(); ++i)
    bytes += incoming[i].stage == Stage::header ? current.receives[i].bytes : incoming[i].bytes;
  return bytes;
}

int64_t CollectiveRequest::receivedBytes() const {
  int64_t bytes = 0;
  for (size_t i = 0; isPosted && i < current.receives.size(); ++i)
    bytes += incoming[i].stage == Stage::done ? incoming[i].bytes : 0;
  return bytes;
}

} // namespace k2c::runtime
