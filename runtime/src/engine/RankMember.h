// A rank among others: each step begins with a record from rank 0 and ends with results for it.
//
//   rank 0    records of all ranks ->  own record -> upload, run -> all results
//   others                             own record -> upload, run -> own results      until the record of the end
//
// Results travel while the next step begins, as many steps at once as there are stages: a stage computes a step while
// those behind it compute the ones before.
//
// What ranks have counted, and what they have traced, is gathered when rank 0 asks for it with a record. All are
// collectives of all ranks, of sites behind those of the program. A failure of a rank, whatever it is, is told to all
// others.
#ifndef K2RT_ENGINE_RANKMEMBER_H
#define K2RT_ENGINE_RANKMEMBER_H

#include "engine/Rank.h"
#include "engine/StepRecord.h"
#include "exchange/Exchange.h"
#include <memory>
#include <optional>
#include <vector>

namespace k2c::runtime {

/// Memory that is taken when it is needed, and not written before: pages that nobody uses take none.
class Bytes {
public:
  /// At least so many; what it held is gone when it grows.
  Status reserve(int64_t bytes);
  std::byte *data() { return memory.get(); }
  const std::byte *data() const { return memory.get(); }
  int64_t bytes() const { return size; }

private:
  struct Free {
    void operator()(std::byte *memory) const;
  };
  std::unique_ptr<std::byte, Free> memory;
  int64_t size = 0;
};

/// Every tensor-parallel group of a stage has sequences of its own, every rank a part of the experts.
Grid gridOf(const RankFacts &ranks);

/// What rank 0 sends, and what it gets back. Ranks with the same sequences, in all stages, have one record.
struct AllRecords {
  std::vector<std::byte> records;
  std::vector<int64_t> ends; ///< of the record of each rank with sequences, in `records`

  int64_t begin(size_t dataRank) const { return dataRank == 0 ? 0 : ends[dataRank - 1]; }
};
struct AllResults {
  Bytes results;
  std::vector<int64_t> begins; ///< of each rank's results, and their end
};

/// What a rank has counted of a run, from the begin of the program.
struct RankCounters {
  Counters exchanged;
  double busySeconds = 0;        ///< in the step function, but for waits for its collectives
  int64_t peakResidentBytes = 0; ///< of the rank's process, which ranks that are threads share
};

/// How many steps are under way at once, each of sequences of its own: one a stage, up to a bound.
int32_t microbatchesOf(const RankFacts &ranks);

class TraceFile;

class RankMember {
public:
  /// Loads the rank, and returns when all others have. `bundle` and `trace` (which may be null) outlive it; what its
  /// workers run and what it exchanges is traced.
  static Expected<std::unique_ptr<RankMember>> create(const Bundle &bundle, std::unique_ptr<Device> device,
                                                      Trace *trace, std::unique_ptr<Exchange> exchange);

  Rank &rank() { return *theRank; }
  int32_t ranks() const { return exchange->ranks(); }
  /// The first rank that lacks weights of an expert in its slots by this table of the placement.
  std::optional<int32_t> lacking(size_t table) const;
  /// Of rank 0: begins a step of all ranks, which has passed its own stage on return. `results` has the begins of what
  /// each gives; they are there when the step was collected, and both are the rank's up to then. At most
  /// microbatchesOf() steps are under way.
  Status submit(const AllRecords &records, AllResults &results);
  /// Of rank 0: waits for the results of the oldest step under way.
  Status collect();
  /// Of rank 0, before the end: what each rank has counted, by rank.
  Expected<std::vector<RankCounters>> counters();
  /// Of rank 0, before the end: what ran when on the other ranks, into `file`; the records that they lost.
  Expected<int64_t> traces(const Bundle &bundle, TraceFile &file);
  /// Of rank 0, after the last step: the others end theirs.
  Status end();
  /// Of the others: takes part in steps up to the end.
  Status serve();
  /// Safe in a signal handler.
  void interrupt();

private:
  RankMember(const Bundle &bundle, std::unique_ptr<Exchange> exchange);
  Status await(const Bundle &bundle);
  Expected<StepRecordKind> takeRecord();
  Status readRecord(const std::byte *bytes, int64_t count);
  Status tellAll(StepRecordKind kind);
  ResultLayout layoutOfOwn() const;
  Status compute();
  Status giveResults(AllResults *all);
  Status collectAll();
  Status giveCounters(std::vector<RankCounters> *all);
  Status pass(Op op, int32_t peer, void *bytes, int64_t count);
  Expected<int64_t> clockOf(int32_t rank);
  Status tellClock();
  Status giveRings();
  Status takeRings(int32_t rank, int64_t workers, const Bundle &bundle, TraceFile &file);
  Status giveTraces(const Bundle *bundle, TraceFile *file, int64_t *lost);
  void traceCollectives();
  Expected<RequestId> start(Collective &collective);
  Status run(Collective &collective);
  Status told(Status done);

  /// What a rank says before its counters: how many words of them it has, and what RankCounters have beside them.
  struct Use {
    int64_t words, busyNs, peakResidentBytes;
  };
  Use useOfOwn(int64_t words) const;
  Expected<std::vector<Use>> gatherUse(int64_t ownWords);

  /// Rows of a collective, by rank.
  struct Rows {
    std::vector<int64_t> sent, sentOffsets, received, receivedOffsets;

    void clear(size_t ranks);
    RaggedRows of(bool isCapacity);
  };
  /// What the rank gives of a step, while it travels; rank 0 gives the records, too.
  struct Given {
    Bytes own;
    Rows records, results;
    RequestId recordsRequest = -1, resultsRequest = -1;
  };
  Expected<RequestId> startRecords(const AllRecords &all, Rows &rows);
  Given &givenBy(int64_t step) { return given[static_cast<size_t>(step) % given.size()]; }

  /// Behind those of the program.
  enum ControlSite : int32_t { recordSite, resultSite, loadedSite, countersSite, tracesSite };

  const Manifest &manifest;
  Trace *trace = nullptr;
  const int32_t firstSite;          ///< of the sites that are no program's
  int64_t steps = 0, collected = 0; ///< that were begun; of these, the ones whose results have arrived
  Clock::duration stepped{};        ///< time in the step function
  std::vector<uint64_t> tables; ///< of each rank, a bit for each table of the placement for which it has all weights
  Rows rows;                    ///< of the running collective
  Bytes record;                 ///< of the running step
  std::vector<Given> given;     ///< of steps under way, by number
  ReceivedStep current = {};
  std::unique_ptr<Rank> theRank;
  std::unique_ptr<Exchange> exchange; ///< last: it may hold buffers of the above
};

} // namespace k2c::runtime

#endif
