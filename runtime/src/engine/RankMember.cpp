// Rows of these collectives are units of 8 bytes. A record is received into room for the largest one, its header says
// how long it is; results are as long as rank 0 knows from the record.
//
// Who waits for a record waits for rank 0's user, too, so that wait has no end as long as the other ranks are alive;
// neither has the wait for ranks that still load.
#include "engine/RankMember.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace k2c::runtime {

Grid gridOf(const RankFacts &ranks) {
  Grid grid;
  grid.tp = static_cast<int32_t>(ranks.tp);
  grid.dp = static_cast<int32_t>(ranks.stageRanks() / ranks.tp);
  grid.etp = static_cast<int32_t>(ranks.etp);
  grid.ep = static_cast<int32_t>(ranks.expertRanks());
  grid.pp = static_cast<int32_t>(ranks.stageCount());
  grid.replicas = static_cast<int32_t>(ranks.replicas);
  grid.perNode = static_cast<int32_t>(ranks.count / ranks.nodes);
  return grid;
}

int32_t microbatchesOf(const RankFacts &ranks) {
  constexpr int64_t most = 16; // collectives in flight have a bound, too
  return static_cast<int32_t>(std::min(ranks.stageCount(), most));
}

void Bytes::Free::operator()(std::byte *memory) const { std::free(memory); }

Status Bytes::reserve(int64_t bytes) {
  if (bytes <= size)
    return {};
  memory.reset();
  size = 0;
  memory.reset(static_cast<std::byte *>(std::malloc(static_cast<size_t>(bytes))));
  if (!memory)
    return Error{K2RT_OUT_OF_MEMORY, "step record", "the system refuses " + std::to_string(bytes) + " bytes", ""};
  size = bytes;
  return {};
}

void RankMember::Rows::clear(size_t ranks) {
  for (std::vector<int64_t> *each : {&sent, &sentOffsets, &received, &receivedOffsets})
    each->assign(ranks, 0);
}

RaggedRows RankMember::Rows::of(bool isCapacity) {
  return {sent.data(), sentOffsets.data(), received.data(), receivedOffsets.data(), isCapacity};
}

RankMember::RankMember(const Bundle &bundle, std::unique_ptr<Exchange> exchange)
    : manifest(bundle.manifest), firstSite(bundle.program.description().n_collectives),
      given(static_cast<size_t>(microbatchesOf(bundle.manifest.ranks))), exchange(std::move(exchange)) {}

Expected<std::unique_ptr<RankMember>> RankMember::create(const Bundle &bundle, std::unique_ptr<Device> device,
                                                         Trace *trace, std::unique_ptr<Exchange> exchange) {
  std::unique_ptr<RankMember> member(new RankMember(bundle, std::move(exchange)));
  member->trace = trace;
  if (trace)
    member->traceCollectives();
  Expected<std::unique_ptr<Rank>> rank = Rank::create(bundle, std::move(device), trace, member->exchange.get());
  if (!rank)
    return member->told(rank.takeError()).takeError();
  member->theRank = std::move(*rank);
  if (Status taken = member->told(member->record.reserve(recordCapacity(bundle.manifest, member->theRank->arrays())));
      !taken)
    return taken.takeError();
  if (Status all = member->await(bundle); !all)
    return all.takeError();
  return member;
}

void RankMember::traceCollectives() {
  const auto ns = [](Clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  };
  exchange->setWhenOver([this, ns](const Collective &of, const RequestTotals &totals, Clock::time_point waitBegin) {
    int64_t bytes = 0;
    for (const SentBytes &tier : totals.sent)
      bytes += tier.payload + tier.headers;
    trace->recordCollective({ns(totals.begin), ns(totals.end), ns(std::min(waitBegin, totals.end)), totals.last, bytes,
                             of.step, static_cast<int32_t>(of.site), of.layer});
  });
}

/// A failure of this rank ends the run of all.
Status RankMember::told(Status done) {
  if (!done)
    exchange->fail(done.error());
  return done;
}

Expected<RequestId> RankMember::start(Collective &collective) {
  collective.axis = Axis::world;
  collective.step = steps;
  collective.isControl = true;
  return exchange->start(collective);
}

Status RankMember::run(Collective &collective) {
  Expected<RequestId> started = start(collective);
  return started ? exchange->wait(*started) : Status(started.takeError());
}

/// Returns when all ranks have loaded and told what they have.
Status RankMember::await(const Bundle &bundle) {
  uint64_t own = 0;
  for (size_t table = 0; table < bundle.placement.count(); ++table)
    own |= uint64_t(bundle.weights.hasAll(table)) << table;
  tables.resize(static_cast<size_t>(ranks()));
  Collective loaded{Op::allGather, Axis::world, static_cast<uint32_t>(firstSite + loadedSite)};
  loaded.source = &own;
  loaded.result = tables.data();
  loaded.bytes = sizeof own;
  loaded.isPatient = true;
  return run(loaded);
}

std::optional<int32_t> RankMember::lacking(size_t table) const {
  const auto found = std::find_if(tables.begin(), tables.end(), [&](uint64_t has) { return (has >> table & 1) == 0; });
  return found == tables.end() ? std::nullopt : std::optional(static_cast<int32_t>(found - tables.begin()));
}

/// Of rank 0, whose own is where it is. Each rank takes it when it has ended its step before, so nobody waits for that
/// here: a stage would wait for those behind it.
Expected<RequestId> RankMember::startRecords(const AllRecords &all, Rows &of) {
  of.clear(static_cast<size_t>(ranks()));
  for (size_t rank = 1; rank < of.sent.size(); ++rank) {
    const auto own = static_cast<size_t>(manifest.ranks.dataRankOf(static_cast<int64_t>(rank)));
    of.sentOffsets[rank] = all.begin(own) / recordUnit;
    of.sent[rank] = (all.ends[own] - all.begin(own)) / recordUnit;
  }
  Collective scatter{Op::scatterRows, Axis::world, static_cast<uint32_t>(firstSite + recordSite)};
  scatter.source = all.records.data();
  scatter.bytes = recordUnit;
  scatter.rows = of.of(/*isCapacity=*/false);
  scatter.deadlines = static_cast<int32_t>(manifest.ranks.stageCount());
  return start(scatter);
}

Status RankMember::readRecord(const std::byte *bytes, int64_t count) {
  Expected<ReceivedStep> read = readStepRecord(manifest, bytes, count, steps, theRank->tables(), theRank->arrays());
  if (!read)
    return told(read.takeError());
  current = *read;
  return {};
}

/// Of the others.
Expected<StepRecordKind> RankMember::takeRecord() {
  rows.clear(static_cast<size_t>(ranks()));
  rows.received[0] = record.bytes() / recordUnit;
  Collective scatter{Op::scatterRows, Axis::world, static_cast<uint32_t>(firstSite + recordSite)};
  scatter.result = record.data();
  scatter.bytes = recordUnit;
  scatter.rows = rows.of(/*isCapacity=*/true);
  scatter.isPatient = true;
  if (Status done = run(scatter); !done)
    return done.takeError();
  if (Status read = readRecord(record.data(), rows.received[0] * recordUnit); !read)
    return read.takeError();
  return static_cast<StepRecordKind>(current.header.kind);
}

/// Where `offset` bytes of results are; null where they have no such part.
template <class T> static T *partAt(std::byte *results, int64_t offset) {
  return offset < 0 ? nullptr : reinterpret_cast<T *>(results + offset);
}

ResultLayout RankMember::layoutOfOwn() const {
  const int64_t outputs = manifest.ranks.isLastStage(exchange->rank()) ? current.header.outputRows : 0;
  return resultLayout(manifest, current.header.tokenRows, outputs, current.header.flags);
}

/// Captures go to the results at once.
Status RankMember::compute() {
  const StepRecordHeader &header = current.header;
  const ResultLayout layout = layoutOfOwn();
  Bytes &own = givenBy(steps).own;
  if (Status taken = told(own.reserve(layout.bytes)); !taken)
    return taken;
  k2rt_ir_step &step = current.step;
  step.capture_experts = partAt<int32_t>(own.data(), layout.experts);
  step.capture_weights = partAt<float>(own.data(), layout.weights);
  step.capture_hidden = partAt<float>(own.data(), layout.hidden);
  step.capture_max_logit = partAt<float>(own.data(), layout.maxLogits);
  if (layout.maxLogits >= 0)
    std::fill_n(partAt<float>(own.data(), layout.maxLogits), manifest.layers * manifest.heads,
                -std::numeric_limits<float>::infinity());
  theRank->goBy(current.header.table);
  theRank->upload(step, layout.logits >= 0 || layout.logProbabilities >= 0, (header.flags & inHalves) != 0);
  const Clock::time_point begin = Clock::now();
  Status ran = told(theRank->run());
  stepped += Clock::now() - begin;
  if (!ran)
    return ran;
  if (!manifest.ranks.isLastStage(exchange->rank()))
    return {};
  const StepResults results = theRank->results();
  std::copy_n(results.samples, header.outputRows, partAt<int32_t>(own.data(), layout.samples));
  if (layout.logits >= 0)
    std::copy_n(results.logits, header.outputRows * manifest.vocab, partAt<float>(own.data(), layout.logits));
  if (layout.logProbabilities >= 0)
    theRank->logProbabilities(current.targets, header.outputRows, partAt<float>(own.data(), layout.logProbabilities));
  return {};
}

Status RankMember::giveResults(AllResults *all) {
  Given &of = givenBy(steps);
  of.results.clear(static_cast<size_t>(ranks()));
  of.results.sent[0] = layoutOfOwn().bytes / recordUnit;
  for (size_t rank = 0; all && rank < of.results.sent.size(); ++rank) {
    of.results.receivedOffsets[rank] = all->begins[rank] / recordUnit;
    of.results.received[rank] = all->begins[rank + 1] / recordUnit - of.results.receivedOffsets[rank];
  }
  if (all)
    if (Status taken = told(all->results.reserve(all->begins.back())); !taken)
      return taken;
  Collective gather{Op::gatherRows, Axis::world, static_cast<uint32_t>(firstSite + resultSite)};
  gather.deadlines = static_cast<int32_t>(manifest.ranks.stageCount());
  gather.source = of.own.data();
  gather.result = all ? all->results.data() : nullptr;
  gather.bytes = recordUnit;
  gather.rows = of.results.of(/*isCapacity=*/false);
  Expected<RequestId> started = start(gather);
  if (!started)
    return started.takeError();
  of.resultsRequest = *started;
  ++steps;
  return {};
}

/// Who has given results has taken the record.
Status RankMember::collect() {
  const Given &of = givenBy(collected++);
  Status done = exchange->wait(of.resultsRequest);
  return done && exchange->rank() == 0 ? exchange->wait(of.recordsRequest) : std::move(done);
}

Status RankMember::collectAll() {
  Status done;
  while (done && collected < steps)
    done = collect();
  return done;
}

Status RankMember::submit(const AllRecords &records, AllResults &results) {
  Given &of = givenBy(steps);
  Expected<RequestId> started = startRecords(records, of.records);
  if (!started)
    return started.takeError();
  of.recordsRequest = *started;
  if (Status read = readRecord(records.records.data(), records.ends[0]); !read)
    return read;
  if (Status computed = compute(); !computed)
    return computed;
  return giveResults(&results);
}

Status RankMember::tellAll(StepRecordKind kind) {
  AllRecords records;
  for (int64_t rank = 0; rank < manifest.ranks.dataRanks(); ++rank) {
    writeOtherRecord(kind, steps, records.records);
    records.ends.push_back(static_cast<int64_t>(records.records.size()));
  }
  Expected<RequestId> started = startRecords(records, rows);
  return started ? exchange->wait(*started) : Status(started.takeError());
}

Status RankMember::end() {
  Status told = tellAll(endRecord);
  return told ? exchange->close() : std::move(told);
}

Status RankMember::serve() {
  for (;;) {
    Expected<StepRecordKind> kind = takeRecord();
    if (!kind)
      return kind.takeError();
    Status done;
    if (*kind != stepRecord)
      done = collectAll();
    else if (steps - collected == static_cast<int64_t>(given.size()))
      done = collect(); // what it gave of that step is overwritten
    if (done && *kind == endRecord)
      return exchange->close();
    if (done)
      done = *kind == stepRecord       ? compute()
             : *kind == countersRecord ? giveCounters(nullptr)
                                       : giveTraces(nullptr, nullptr, nullptr);
    if (done && *kind == stepRecord)
      done = giveResults(nullptr);
    if (!done)
      return done;
  }
}

void RankMember::interrupt() {
  theRank->interrupt();
  exchange->interrupt();
}

} // namespace k2c::runtime
