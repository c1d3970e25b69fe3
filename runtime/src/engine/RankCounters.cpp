// What each rank has counted, for rank 0: all tell all how long they have worked, how much memory they took and how
// many words of counters they have, then rank 0 the words.
//
// A rank has worked while its program's step function ran, but for the time in which its workers waited for a
// collective of the program. What is around a step, records and results, is none of it.
#include "base/Container.h"
#include "engine/RankMember.h"
#include <algorithm>
#include <cmath>

namespace k2c::runtime {

RankMember::Use RankMember::useOfOwn(int64_t words) const {
  double waited = 0;
  for (const auto &[key, site] : exchange->counters().sites())
    waited += key.first < firstSite ? site.waitedSeconds : 0;
  const double seconds = std::chrono::duration<double>(stepped).count();
  return {words, std::max<int64_t>(std::llround((seconds - waited) * 1e9), 0), peakResidentBytes()};
}

/// Of each rank. Refuses more words than a rank can have, as many as it has sites and layers.
Expected<std::vector<RankMember::Use>> RankMember::gatherUse(int64_t ownWords) {
  std::vector<Use> use(static_cast<size_t>(ranks()));
  const Use own = useOfOwn(ownWords);
  Collective gather{Op::allGather, Axis::world, static_cast<uint32_t>(firstSite + countersSite)};
  gather.source = &own;
  gather.result = use.data();
  gather.bytes = sizeof own;
  if (Status done = run(gather); !done)
    return done.takeError();
  const int64_t most = (firstSite + countersSite + 1) * (manifest.layers + 1) * Counters::entryWords(ranks());
  for (size_t rank = 0; rank < use.size(); ++rank)
    if (use[rank].words < 0 || use[rank].words > most)
      return told(Error{K2RT_PEER_FAILED, "counters",
                        "rank " + std::to_string(rank) + " has " + std::to_string(use[rank].words) +
                            " words of them, a rank of this program at most " + std::to_string(most),
                        "start the same build of k2c on every host"})
          .takeError();
  return use;
}

Status RankMember::giveCounters(std::vector<RankCounters> *all) {
  const std::vector<int64_t> counted = exchange->counters().words(ranks());
  Expected<std::vector<Use>> use = gatherUse(static_cast<int64_t>(counted.size()));
  if (!use)
    return use.takeError();
  rows.clear(use->size());
  rows.sent[0] = static_cast<int64_t>(counted.size());
  int64_t total = 0;
  for (size_t rank = 0; all && rank < use->size(); total += rows.received[rank++]) {
    rows.receivedOffsets[rank] = total;
    rows.received[rank] = (*use)[rank].words;
  }
  std::vector<int64_t> gathered(static_cast<size_t>(total));
  Collective gather{Op::gatherRows, Axis::world, static_cast<uint32_t>(firstSite + countersSite)};
  gather.source = counted.data();
  gather.result = gathered.data();
  gather.bytes = sizeof(int64_t);
  gather.rows = rows.of(/*isCapacity=*/false);
  if (Status done = run(gather); !done)
    return done;
  for (size_t rank = 0; all && rank < use->size(); ++rank) {
    const auto begin = gathered.begin() + rows.receivedOffsets[rank];
    Expected<Counters> read = Counters::read({begin, begin + rows.received[rank]}, ranks());
    if (!read)
      return told(read.takeError());
    const Use &of = (*use)[rank];
    all->push_back({std::move(*read), static_cast<double>(of.busyNs) * 1e-9, of.peakResidentBytes});
  }
  return {};
}

Expected<std::vector<RankCounters>> RankMember::counters() {
  std::vector<RankCounters> all;
  if (Status taken = tellAll(countersRecord); !taken)
    return taken.takeError();
  if (Status given = giveCounters(&all); !given)
    return given.takeError();
  return all;
}

} // namespace k2c::runtime
