// What can be refused cheaply comes first: options, the trace's file, then memory.
//
// A step of several ranks has a record for each, made as it is prepared; which table of the placement it goes by is
// known when all are there, and is written into them then. What a run counts of its routes it has from the results that
// rank 0 gets anyway.
#include "engine/Engine.h"
#include <algorithm>

namespace k2c::runtime {

Expected<std::unique_ptr<Engine>> Engine::create(const Bundle &bundle, std::unique_ptr<Device> device,
                                                 const EngineOptions &options, std::unique_ptr<Exchange> exchange) {
  if (options.chunk < 0)
    return Error{K2RT_INVALID_ARGUMENT, "--chunk", "is " + std::to_string(options.chunk) + ", must be at least 1", ""};
  std::unique_ptr<Engine> engine(new Engine(bundle));
  engine->chunkTokens = options.chunk > 0 ? options.chunk : bundle.manifest.limits.step_tokens;
  if (options.countsExperts)
    engine->counted.emplace(bundle.manifest);
  if (options.countsTraffic)
    engine->routed.emplace(bundle);
  if (engine->capturesExperts())
    engine->chosen.resize(bundle.manifest.moeLayers.size() * bundle.manifest.limits.step_tokens * bundle.manifest.topK);
  if (!options.traceFile.empty()) {
    Expected<std::unique_ptr<TraceFile>> file = TraceFile::create(options.traceFile);
    if (!file)
      return file.takeError();
    Expected<std::unique_ptr<Trace>> trace = Trace::create(device->workers());
    if (!trace)
      return trace.takeError();
    engine->traceFile = std::move(*file);
    engine->trace = std::move(*trace);
  }
  if (exchange) {
    Expected<std::unique_ptr<RankMember>> member =
        RankMember::create(bundle, std::move(device), engine->trace.get(), std::move(exchange));
    if (!member)
      return member.takeError();
    engine->member = std::move(*member);
    if (Status added = engine->addRanks(); !added)
      return added.takeError();
    if (Status chosen = engine->choosePlacements(); !chosen)
      return chosen.takeError();
    return engine;
  }
  Expected<std::unique_ptr<Rank>> rank = Rank::create(bundle, std::move(device), engine->trace.get());
  if (!rank)
    return rank.takeError();
  engine->theRank = std::move(*rank);
  return engine;
}

Status Engine::addRanks() {
  freePages.resize(static_cast<size_t>(ranks()));
  for (std::vector<PagePool> &pages : freePages)
    for (const CacheGroup &group : manifest().groups)
      pages.emplace_back(group.pages);
  underWay.resize(static_cast<size_t>(microbatches()));
  for (Microbatch &of : underWay)
    for (int32_t rank = 0; rank < ranks(); ++rank) {
      Expected<StepArrays> arrays = StepArrays::allocateOwn(manifest());
      if (!arrays)
        return arrays.takeError();
      of.ranks.push_back({std::move(*arrays)});
    }
  return {};
}

/// The first has to hold; of a bundle's own, an expert that is not there ends the run when a token wants it.
Status Engine::choosePlacements() {
  for (const PlacementPeriod &period : theBundle.placement.periods()) {
    const std::optional<int32_t> lacking = std::max(member->lacking(period.prefill), member->lacking(period.decode));
    if (!lacking || period.isOwn)
      periods.push_back(period);
    else if (period.fromStep > 0)
      refused.push_back({period.place, *lacking});
    else
      return Error{K2RT_INVALID_ARGUMENT, period.place,
                   "rank " + std::to_string(*lacking) + " has not the weights of all experts that it would have",
                   "give its host their weights: k2c pack DIR --checkpoint FOLDER"};
  }
  return {};
}

void Engine::prepare(int32_t microbatch, int32_t rank, const k2rt_ir_step &asked, const WantedOutputs &wanted) {
  k2rt_ir_step step = asked;
  if (capturesExperts() && !step.capture_experts)
    step.capture_experts = chosen.data();
  if (!member) {
    only = step;
    onlyWanted = wanted;
    return theRank->upload(step, wanted.logits || wanted.targets);
  }
  if (rank == 0) {
    underWay[microbatch].records.records.clear();
    underWay[microbatch].records.ends.clear();
    promptRows = generatedRows = maxRows = maxPromptRows = 0;
  }
  RankStep &of = underWay[microbatch].ranks[rank];
  of.prepared = step;
  of.flags = flagsOf(step, wanted);
  countRows(step);
  AllRecords &records = underWay[microbatch].records;
  writeStepRecord(manifest(), of.arrays, step, steps, wanted, records.records);
  records.ends.push_back(static_cast<int64_t>(records.records.size()));
}

/// Results lie in the order of the ranks.
void Engine::planResults(Microbatch &of) const {
  std::vector<int64_t> &begins = of.gathered.begins;
  begins.assign(1, 0);
  for (int64_t rank = 0; rank < manifest().ranks.count; ++rank) {
    const RankStep &own = of.ranks[static_cast<size_t>(manifest().ranks.dataRankOf(rank))];
    const int64_t outputs = manifest().ranks.isLastStage(rank) ? own.prepared.output_rows : 0;
    begins.push_back(begins.back() + resultLayout(manifest(), own.prepared.token_rows, outputs, own.flags).bytes);
  }
}

void PromptSpread::add(int64_t fullest, int64_t all, int64_t ranks) {
  if (all == 0)
    return;
  const double overMean = static_cast<double>(fullest * ranks) / static_cast<double>(all);
  ++steps;
  sum += overMean;
  most = std::max(most, overMean);
}

void Engine::countRows(const k2rt_ir_step &step) {
  maxRows = std::max(maxRows, step.token_rows);
  const auto *begin = static_cast<const int32_t *>(step.seq_begin);
  int64_t ofPrompts = 0;
  for (int64_t sequence = 0; sequence < step.seq_rows; ++sequence)
    ofPrompts += phaseOf(step, sequence) == Phase::prefill ? begin[sequence + 1] - begin[sequence] : 0;
  promptRows += ofPrompts;
  generatedRows += step.token_rows - ofPrompts;
  maxPromptRows = std::max(maxPromptRows, ofPrompts);
}

Status Engine::submit(int32_t microbatch) {
  const size_t table = tableAt(periods, steps, promptRows > generatedRows);
  const HalvesFacts &halves = manifest().ranks.halves;
  const bool goesInHalves = halves.rows > 0 && maxRows >= halves.from;
  ++steps;
  halved += goesInHalves;
  if (!member)
    return theRank->submit();
  promptSpread.add(maxPromptRows, promptRows, ranks());
  Microbatch &of = underWay[microbatch];
  for (size_t rank = 0; rank < of.records.ends.size(); ++rank)
    setShared(of.records.records.data() + of.records.begin(rank), table, goesInHalves);
  of.table = table;
  of.inHalves = goesInHalves;
  planResults(of);
  return member->submit(of.records, of.gathered);
}

Status Engine::collect(int32_t microbatch) {
  Status done = member ? member->collect() : theRank->collect();
  if (done && capturesExperts())
    countCaptured(microbatch);
  return done;
}

Engine::StageResults Engine::resultsOf(Microbatch &of, int64_t source, int64_t stage) {
  const RankFacts &facts = manifest().ranks;
  const int64_t rank = facts.rankOf(source, stage);
  const RankStep &own = of.ranks[static_cast<size_t>(facts.dataRankOf(rank))];
  const int64_t outputs = facts.isLastStage(rank) ? own.prepared.output_rows : 0;
  const std::array<int64_t, 2> layers = facts.layersOf(rank, manifest().layers);
  return {of.gathered.results.data() + of.gathered.begins[static_cast<size_t>(rank)],
          resultLayout(manifest(), own.prepared.token_rows, outputs, own.flags), layers[0], layers[1]};
}

/// Of the step of its tensor-parallel group, those that `source` has carried.
std::vector<RowRange> Engine::rowsOf(const Microbatch &of, int64_t source) const {
  const RankFacts &facts = manifest().ranks;
  const int64_t rows = of.ranks[static_cast<size_t>(source / facts.tp)].prepared.token_rows;
  return rowsOfSlice(rows, source % facts.tp, facts.tp, of.inHalves);
}

/// Brings `perRow` entries of each row and layer from the rank that has both to `to`, if that is there: of layers with
/// experts in their order, or of all layers, before which the first stage has its embedding. All have room for the rows
/// of the whole step.
template <class T>
void Engine::bringLayers(Microbatch &microbatch, int32_t dataRank, int64_t ResultLayout::*part, bool areMoe,
                         int64_t perRow, void *to) {
  const RankFacts &facts = manifest().ranks;
  const int64_t perLayer = microbatch.ranks[dataRank].prepared.token_rows * perRow;
  for (int64_t stage = 0; to && stage < facts.stageCount(); ++stage)
    for (int64_t source = dataRank * facts.tp; source < (dataRank + 1) * facts.tp; ++source) {
      const StageResults of = resultsOf(microbatch, source, stage);
      if (of.layout.*part < 0)
        continue;
      const std::vector<int64_t> &moe = manifest().moeLayers;
      const auto ordinal = [&](int64_t layer) { return std::lower_bound(moe.begin(), moe.end(), layer) - moe.begin(); };
      const int64_t begin = areMoe ? ordinal(of.firstLayer) : of.firstLayer + (stage > 0);
      const int64_t end = areMoe ? ordinal(of.endLayer) : of.endLayer + 1;
      const auto *from = reinterpret_cast<const T *>(of.results + of.layout.*part);
      for (const RowRange rows : rowsOf(microbatch, source))
        for (int64_t at = begin * perLayer + rows.begin * perRow; at < end * perLayer; at += perLayer)
          std::copy_n(from + at, rows.rows() * perRow, static_cast<T *>(to) + at);
    }
}

/// Samples and logits, each from the rank that has carried its row, to those of the first.
void Engine::bringOutputs(Microbatch &microbatch, int32_t dataRank) {
  const RankFacts &facts = manifest().ranks;
  const k2rt_ir_step &step = microbatch.ranks[dataRank].prepared;
  const auto *outputs = static_cast<const int32_t *>(step.outputs), *end = outputs + step.output_rows;
  const StageResults to = resultsOf(microbatch, dataRank * facts.tp, facts.stageCount() - 1);
  for (int64_t source = dataRank * facts.tp + 1; source < (dataRank + 1) * facts.tp; ++source) {
    const StageResults from = resultsOf(microbatch, source, facts.stageCount() - 1);
    const auto bring = [&](int64_t part, int64_t bytes, int64_t first, int64_t count) {
      if (part >= 0)
        std::copy_n(from.results + part + first * bytes, count * bytes, to.results + part + first * bytes);
    };
    for (const RowRange rows : rowsOf(microbatch, source)) {
      const int64_t first = std::lower_bound(outputs, end, rows.begin) - outputs;
      const int64_t count = std::lower_bound(outputs, end, rows.end) - outputs - first;
      bring(to.layout.samples, sizeof(int32_t), first, count);
      bring(to.layout.logits, manifest().vocab * static_cast<int64_t>(sizeof(float)), first, count);
      bring(to.layout.logProbabilities, sizeof(float), first, count);
    }
  }
}

/// Of each layer and head, from the rank that has both: a tensor-parallel group divides heads.
void Engine::bringLargest(Microbatch &microbatch, int32_t dataRank, float *to) {
  const RankFacts &facts = manifest().ranks;
  const int64_t heads = manifest().heads / facts.tp;
  for (int64_t stage = 0; stage < facts.stageCount(); ++stage)
    for (int64_t slice = 0; slice < facts.tp; ++slice) {
      const StageResults of = resultsOf(microbatch, dataRank * facts.tp + slice, stage);
      if (of.layout.maxLogits < 0)
        continue;
      const auto *largest = reinterpret_cast<const float *>(of.results + of.layout.maxLogits);
      for (int64_t layer = of.firstLayer; layer < of.endLayer; ++layer)
        for (int64_t head = 0; head < heads; ++head) {
          float &whole = to[layer * manifest().heads + slice * heads + head];
          whole = std::max(whole, largest[layer * heads + head]);
        }
    }
}

void Engine::countCaptured(int32_t microbatch) {
  const RankFacts &facts = manifest().ranks;
  for (int32_t rank = 0; rank < ranks(); ++rank) {
    const k2rt_ir_step &step = member ? underWay[microbatch].ranks[rank].prepared : only;
    const auto *experts = static_cast<const int32_t *>(step.capture_experts);
    sources.assign(static_cast<size_t>(step.token_rows), rank);
    if (member) {
      merged.resize(chosen.size());
      bringLayers<int32_t>(underWay[microbatch], rank, &ResultLayout::experts, /*areMoe=*/true, manifest().topK,
                           merged.data());
      experts = merged.data();
      for (int64_t source = rank * facts.tp; source < (rank + 1) * facts.tp; ++source)
        for (const RowRange rows : rowsOf(underWay[microbatch], source))
          std::fill(sources.begin() + rows.begin, sources.begin() + rows.end, static_cast<int32_t>(source));
    }
    if (counted)
      counted->count(sources, step, experts);
    if (routed)
      routed->count(sources, experts, underWay[microbatch].table);
  }
}

StepResults Engine::onlyResults() {
  StepResults results = theRank->results();
  if (onlyWanted.targets) {
    probabilities.resize(static_cast<size_t>(only.output_rows));
    theRank->logProbabilities(onlyWanted.targets, only.output_rows, probabilities.data());
    results.logProbabilities = probabilities.data();
  }
  return results;
}

StepResults Engine::results(int32_t number, int32_t rank) {
  if (!member)
    return onlyResults();
  Microbatch &microbatch = underWay[number];
  const k2rt_ir_step &step = microbatch.ranks[rank].prepared;
  const int64_t topK = manifest().topK;
  bringLayers<int32_t>(microbatch, rank, &ResultLayout::experts, /*areMoe=*/true, topK, step.capture_experts);
  bringLayers<float>(microbatch, rank, &ResultLayout::weights, /*areMoe=*/true, topK, step.capture_weights);
  bringLayers<float>(microbatch, rank, &ResultLayout::hidden, /*areMoe=*/false, manifest().hidden, step.capture_hidden);
  bringLargest(microbatch, rank, static_cast<float *>(step.capture_max_logit));
  bringOutputs(microbatch, rank);
  const StageResults last = resultsOf(microbatch, rank * manifest().ranks.tp, manifest().ranks.stageCount() - 1);
  const auto floatsAt = [&last](int64_t part) {
    return part < 0 ? nullptr : reinterpret_cast<const float *>(last.results + part);
  };
  return {floatsAt(last.layout.logits), reinterpret_cast<const int32_t *>(last.results + last.layout.samples),
          floatsAt(last.layout.logProbabilities)};
}

void Engine::interrupt() {
  if (member)
    member->interrupt();
  else
    theRank->interrupt();
}

Status Engine::finish() {
  int64_t lost = 0;
  Status ended;
  if (member && trace) {
    Expected<int64_t> gathered = member->traces(theBundle, *traceFile);
    if (gathered)
      lost = *gathered;
    else
      ended = gathered.takeError();
  }
  if (member && ended)
    ended = member->end();
  Status traced = writeTrace(lost);
  return ended ? std::move(traced) : std::move(ended);
}

Status Engine::finishTrace() { return writeTrace(0); }

/// `lost`: records of other ranks that were overwritten.
Status Engine::writeTrace(int64_t lost) {
  if (!trace)
    return {};
  traceFile->write(*trace, theBundle.rank, theBundle.program, manifest());
  for (size_t layer = 0; capturesExperts() && layer < manifest().moeLayers.size(); ++layer)
    if (routed && manifest().ranks.divideExperts)
      traceFile->writeLoads(manifest().moeLayers[layer], routed->loads(layer), routed->balancedness(layer));
    else if (counted)
      traceFile->writeLoads(manifest().moeLayers[layer], counted->loads(layer), std::nullopt);
  return traceFile->finish(lost + trace->lost());
}

} // namespace k2c::runtime
