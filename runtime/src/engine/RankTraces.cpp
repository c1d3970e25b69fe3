// The rings of all ranks for rank 0's file, one rank after another, in pieces: rank 0 keeps no more than one of them.
//
//   all       workers, and records that were lost
//   rank r    pieces of each ring, once rank 0 has asked it what time it is        rank 0 writes them as they come
//
// Clocks of hosts differ. Of some questions the one that was answered soonest says by how much: the answer is from the
// middle of its trip, half of which bounds the error. Where the difference is not above that, there is none: ranks of
// one host have one clock.
#include "engine/RankMember.h"
#include "engine/TraceFile.h"
#include <cstdlib>
#include <limits>

namespace k2c::runtime {

namespace {

constexpr int64_t pieceRecords = 16384;
constexpr int32_t questions = 8;
constexpr int64_t maxWorkers = 4096;

/// A time of another host, as what is counted with.
int64_t bounded(int64_t ns) { return std::clamp(ns, -(int64_t(1) << 60), int64_t(1) << 60); }

/// What a rank says first.
struct TraceHead {
  int64_t workers = -1, lost = 0; ///< -1: the rank keeps none
};

} // namespace

/// Between rank 0 and another, either of which may have other things to do.
Status RankMember::pass(Op op, int32_t peer, void *bytes, int64_t count) {
  Collective passed{op, Axis::world, static_cast<uint32_t>(firstSite + tracesSite)};
  passed.source = op == Op::send ? bytes : nullptr;
  passed.result = op == Op::send ? nullptr : bytes;
  passed.bytes = count;
  passed.peer = peer;
  passed.isPatient = true;
  return run(passed);
}

/// Of rank 0: by how much the clock of `rank` is ahead.
Expected<int64_t> RankMember::clockOf(int32_t rank) {
  int64_t offset = 0, shortest = std::numeric_limits<int64_t>::max();
  for (int32_t i = 0; i < questions; ++i) {
    int64_t asked = Trace::nowNs(), answer = 0;
    if (Status sent = pass(Op::send, rank, &asked, sizeof asked); !sent)
      return sent.takeError();
    if (Status received = pass(Op::receive, rank, &answer, sizeof answer); !received)
      return received.takeError();
    const int64_t trip = Trace::nowNs() - asked;
    if (trip < shortest) {
      shortest = trip;
      offset = bounded(answer) - (asked + trip / 2);
    }
  }
  return std::abs(offset) <= shortest / 2 + 1 ? 0 : offset;
}

Status RankMember::tellClock() {
  for (int32_t i = 0; i < questions; ++i) {
    int64_t asked = 0;
    if (Status received = pass(Op::receive, 0, &asked, sizeof asked); !received)
      return received;
    int64_t answer = Trace::nowNs();
    if (Status sent = pass(Op::send, 0, &answer, sizeof answer); !sent)
      return sent;
  }
  return {};
}

Status RankMember::giveRings() {
  std::vector<TraceRecord> piece;
  for (int32_t ring = 0; ring < trace->workers() + Trace::otherRings; ++ring) {
    int64_t count = trace->count(ring);
    if (Status sent = pass(Op::send, 0, &count, sizeof count); !sent)
      return sent;
    for (int64_t begin = 0; begin < count; begin += pieceRecords) {
      piece.clear();
      for (int64_t i = begin; i < std::min(count, begin + pieceRecords); ++i)
        piece.push_back(trace->at(ring, i));
      const auto bytes = static_cast<int64_t>(piece.size() * sizeof(TraceRecord));
      if (Status sent = pass(Op::send, 0, piece.data(), bytes); !sent)
        return sent;
    }
  }
  return {};
}

Status RankMember::takeRings(int32_t rank, int64_t ofWorkers, const Bundle &bundle, TraceFile &file) {
  Expected<int64_t> ahead = clockOf(rank);
  if (!ahead)
    return ahead.takeError();
  file.beginRank(rank, ranks(), static_cast<int32_t>(ofWorkers));
  std::vector<TraceRecord> piece;
  for (int32_t ring = 0; ring < ofWorkers + Trace::otherRings; ++ring) {
    int64_t count = 0;
    if (Status received = pass(Op::receive, rank, &count, sizeof count); !received)
      return received;
    if (count < 0 || count > Trace::ringRecords)
      return told(Error{K2RT_PEER_FAILED, "--trace",
                        "rank " + std::to_string(rank) + " has " + std::to_string(count) +
                            " records of a ring, which holds " + std::to_string(Trace::ringRecords),
                        "start the same build of k2c on every host"});
    for (int64_t begin = 0; begin < count; begin += pieceRecords) {
      piece.resize(static_cast<size_t>(std::min(count - begin, pieceRecords)));
      const auto bytes = static_cast<int64_t>(piece.size() * sizeof(TraceRecord));
      if (Status received = pass(Op::receive, rank, piece.data(), bytes); !received)
        return received;
      for (TraceRecord &record : piece) {
        record.beginNs = bounded(record.beginNs) - *ahead;
        record.endNs = bounded(record.endNs) - *ahead;
        if (ring > ofWorkers)
          record.itemBegin = bounded(record.itemBegin) - *ahead; // when it began to wait
        file.write(ring, record, bundle.program, manifest);
      }
    }
  }
  return {};
}

/// Of all ranks, at rank 0's wish. `file` is rank 0's; it counts what all have lost into `lost`.
Status RankMember::giveTraces(const Bundle *bundle, TraceFile *file, int64_t *lost) {
  exchange->setWhenOver({}); // rings stay as they are while they travel
  TraceHead own;
  if (trace)
    own = {trace->workers(), trace->lost()};
  std::vector<TraceHead> heads(static_cast<size_t>(ranks()));
  Collective gather{Op::allGather, Axis::world, static_cast<uint32_t>(firstSite + tracesSite)};
  gather.source = &own;
  gather.result = heads.data();
  gather.bytes = sizeof own;
  if (Status done = run(gather); !done)
    return done;
  if (!file) {
    if (!trace)
      return {};
    Status answered = tellClock();
    return answered ? giveRings() : std::move(answered);
  }
  for (size_t rank = 1; rank < heads.size(); ++rank) {
    if (heads[rank].workers < 0)
      continue;
    if (heads[rank].workers > maxWorkers)
      return told(Error{K2RT_PEER_FAILED, "--trace",
                        "rank " + std::to_string(rank) + " says " + std::to_string(heads[rank].workers) +
                            " workers, a rank has " + std::to_string(maxWorkers) + " at most",
                        "start the same build of k2c on every host"});
    if (Status taken = takeRings(static_cast<int32_t>(rank), heads[rank].workers, *bundle, *file); !taken)
      return taken;
    *lost += std::clamp<int64_t>(heads[rank].lost, 0, int64_t(1) << 48);
  }
  return {};
}

Expected<int64_t> RankMember::traces(const Bundle &bundle, TraceFile &file) {
  int64_t lost = 0;
  if (Status taken = tellAll(tracesRecord); !taken)
    return taken.takeError();
  if (Status given = giveTraces(&bundle, &file, &lost); !given)
    return given.takeError();
  return lost;
}

} // namespace k2c::runtime
