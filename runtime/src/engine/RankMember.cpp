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
  grid.dp = grid.ep = static_cast<int32_t>(ranks.count);
  grid.perNode = static_cast<int32_t>(ranks.count / ranks.nodes);
  return grid;
}

enum ControlSite : int32_t { recordSite, resultSite, loadedSite };

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

RankMember::RankMember(const Bundle &bundle, std::unique_ptr<Exchange> exchange)
    : manifest(bundle.manifest), firstSite(bundle.program.description().n_collectives), exchange(std::move(exchange)) {
  const auto ranks = static_cast<size_t>(this->exchange->group(Axis::world).size);
  for (std::vector<int64_t> *rows : {&sent, &sentOffsets, &received, &receivedOffsets})
    rows->resize(ranks);
}

Expected<std::unique_ptr<RankMember>> RankMember::create(const Bundle &bundle, std::unique_ptr<Device> device,
                                                         Trace *trace, std::unique_ptr<Exchange> exchange) {
  std::unique_ptr<RankMember> member(new RankMember(bundle, std::move(exchange)));
  Expected<std::unique_ptr<Rank>> rank = Rank::create(bundle, std::move(device), trace, member->exchange.get());
  if (!rank)
    return member->told(rank.takeError()).takeError();
  member->theRank = std::move(*rank);
  if (Status taken = member->told(member->record.reserve(recordCapacity(bundle.manifest, member->theRank->arrays())));
      !taken)
    return taken.takeError();
  if (Status all = member->await(); !all)
    return all.takeError();
  return member;
}

/// A failure of this rank ends the run of all.
Status RankMember::told(Status done) {
  if (!done)
    exchange->fail(done.error());
  return done;
}

Status RankMember::run(Collective &collective) {
  collective.axis = Axis::world;
  collective.step = steps;
  collective.isControl = true;
  return exchange->run(collective);
}

/// Returns when all ranks have loaded.
Status RankMember::await() {
  const int64_t own = 1;
  std::vector<int64_t> all(sent.size());
  Collective loaded{Op::allGather, Axis::world, static_cast<uint32_t>(firstSite + loadedSite)};
  loaded.source = &own;
  loaded.result = all.data();
  loaded.bytes = sizeof own;
  loaded.isPatient = true;
  return run(loaded);
}

/// False: it was the record of the end.
Expected<bool> RankMember::takeRecord(const AllRecords *records) {
  std::fill(sent.begin(), sent.end(), 0);
  std::fill(received.begin(), received.end(), 0);
  std::fill(receivedOffsets.begin(), receivedOffsets.end(), 0);
  received[0] = record.bytes() / recordUnit;
  for (size_t rank = 0; records && rank < sent.size(); ++rank) {
    sentOffsets[rank] = rank == 0 ? 0 : records->ends[rank - 1] / recordUnit;
    sent[rank] = records->ends[rank] / recordUnit - sentOffsets[rank];
  }
  Collective scatter{Op::allToAllRows, Axis::world, static_cast<uint32_t>(firstSite + recordSite)};
  scatter.source = records ? records->records.data() : nullptr;
  scatter.result = record.data();
  scatter.bytes = recordUnit;
  scatter.rows = {sent.data(), sentOffsets.data(), received.data(), receivedOffsets.data(), /*isCapacity=*/true};
  scatter.isPatient = !records;
  if (Status done = run(scatter); !done)
    return done.takeError();
  Expected<ReceivedStep> read =
      readStepRecord(manifest, record.data(), received[0] * recordUnit, steps, theRank->tables(), theRank->arrays());
  if (!read)
    return told(read.takeError()).takeError();
  current = *read;
  return current.header.kind == stepRecord;
}

/// Where `offset` bytes of results are; null where they have no such part.
template <class T> static T *partAt(std::byte *results, int64_t offset) {
  return offset < 0 ? nullptr : reinterpret_cast<T *>(results + offset);
}

/// Captures go to the results at once.
Status RankMember::compute() {
  const StepRecordHeader &header = current.header;
  const ResultLayout layout = resultLayout(manifest, header.tokenRows, header.outputRows, header.flags);
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
  theRank->upload(step);
  if (Status ran = told(theRank->run()); !ran)
    return ran;
  const StepResults results = theRank->results();
  std::copy_n(results.samples, header.outputRows, partAt<int32_t>(own.data(), layout.samples));
  if (layout.logits >= 0)
    std::copy_n(results.logits, header.outputRows * manifest.vocab, partAt<float>(own.data(), layout.logits));
  return {};
}

Status RankMember::giveResults(AllResults *all) {
  std::fill(sent.begin(), sent.end(), 0);
  std::fill(sentOffsets.begin(), sentOffsets.end(), 0);
  std::fill(received.begin(), received.end(), 0);
  const StepRecordHeader &header = current.header;
  sent[0] = resultLayout(manifest, header.tokenRows, header.outputRows, header.flags).bytes / recordUnit;
  for (size_t rank = 0; all && rank < sent.size(); ++rank) {
    receivedOffsets[rank] = all->begins[rank] / recordUnit;
    received[rank] = all->begins[rank + 1] / recordUnit - receivedOffsets[rank];
  }
  if (all)
    if (Status taken = told(all->results.reserve(all->begins.back())); !taken)
      return taken;
  Collective gather{Op::allToAllRows, Axis::world, static_cast<uint32_t>(firstSite + resultSite)};
  gather.source = own.data();
  gather.result = all ? all->results.data() : nullptr;
  gather.bytes = recordUnit;
  gather.rows = {sent.data(), sentOffsets.data(), received.data(), receivedOffsets.data(), /*isCapacity=*/false};
  Status done = run(gather);
  ++steps;
  return done;
}

Status RankMember::step(const AllRecords &records, AllResults &results) {
  Expected<bool> taken = takeRecord(&records);
  if (!taken)
    return taken.takeError();
  if (Status computed = compute(); !computed)
    return computed;
  return giveResults(&results);
}

Status RankMember::end() {
  AllRecords records;
  for (size_t rank = 0; rank < sent.size(); ++rank) {
    writeEndRecord(steps, records.records);
    records.ends.push_back(static_cast<int64_t>(records.records.size()));
  }
  Expected<bool> taken = takeRecord(&records);
  return taken ? exchange->close() : taken.takeError();
}

Status RankMember::serve() {
  for (;;) {
    Expected<bool> more = takeRecord(nullptr);
    if (!more)
      return more.takeError();
    if (!*more)
      return exchange->close();
    if (Status computed = compute(); !computed)
      return computed;
    if (Status given = giveResults(nullptr); !given)
      return given;
  }
}

void RankMember::interrupt() {
  theRank->interrupt();
  exchange->interrupt();
}

} // namespace k2c::runtime
