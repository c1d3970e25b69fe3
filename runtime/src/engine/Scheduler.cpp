// plan() decides how many rows each sequence gets, build() (StepBuilder.cpp) writes them down, deliver() reads the
// results. Generating sequences come first, those served longest ago before the others; prompts share what is left in
// order of admission.
//
// Two budgets bound a step, its rows and the output rows; a prompt's last row wants logits, and waits by itself when
// none are left. Sequences that finish are retired at the begin of the next step, since events still look at them, or
// when no step that is under way has rows of them. A step counts its rows as cached when it is submitted, so that the
// next one can be built before it is done; those of which nothing is delivered, as a step or a sample before them has
// failed, are taken back.
#include "engine/Scheduler.h"
#include <algorithm>

namespace k2c::runtime {

Status checkRequest(const Manifest &manifest, const std::vector<int32_t> &prompt, int64_t maxNew,
                    const std::string &place) {
  const int64_t length = static_cast<int64_t>(prompt.size());
  const int64_t context = manifest.limits.max_context;
  if (prompt.empty())
    return Error{K2RT_INVALID_ARGUMENT, place, "the prompt has no tokens", "give at least one"};
  for (size_t i = 0; i < prompt.size(); ++i)
    if (prompt[i] < 0 || prompt[i] >= manifest.vocab)
      return Error{K2RT_INVALID_ARGUMENT, place,
                   "token " + std::to_string(i) + " is id " + std::to_string(prompt[i]) + ", the vocabulary is 0.." +
                       std::to_string(manifest.vocab - 1),
                   ""};
  if (length > context)
    return Error{K2RT_INVALID_ARGUMENT, place,
                 "the prompt has " + std::to_string(length) + " tokens, max_context is " + std::to_string(context),
                 "shorten it or compile with --max-context " + std::to_string(length)};
  // The last new token is never read back, so it needs no place in the cache.
  if (maxNew < 0 || maxNew > context - length + 1)
    return Error{K2RT_INVALID_ARGUMENT, place,
                 std::to_string(length) + " prompt tokens and " + std::to_string(maxNew) +
                     " new ones exceed max_context " + std::to_string(context),
                 "use -n " + std::to_string(context - length + 1) + " at most or compile with a larger --max-context"};
  return {};
}

Scheduler::Scheduler(Engine &engine, StepEvents events)
    : engine(engine), manifest(engine.manifest()), events(std::move(events)), microbatches(engine.microbatches()) {
  for (int32_t microbatch = 0; microbatch < microbatches; ++microbatch)
    for (int32_t rank = 0; rank < engine.ranks(); ++rank) {
      ranks.push_back({microbatch, rank, engine.arrays(microbatch, rank), engine.pages(rank)});
      for (int64_t slot = manifest.limits.max_sequences; slot-- > 0;)
        ranks.back().freeSlots.push_back(static_cast<int32_t>(slot));
    }
}

Expected<int64_t> Scheduler::add(Request request) {
  Status fits = checkRequest(manifest, request.prompt, request.maxNew, "sequence " + std::to_string(added));
  if (!fits)
    return fits.takeError();
  queue.push_back(std::move(request));
  return added++;
}

int64_t Scheduler::unfinished() const {
  return static_cast<int64_t>(queue.size()) +
         std::count_if(active.begin(), active.end(), [](const auto &s) { return s->finish == Finish::running; });
}

bool Scheduler::isOutputRow(const Sequence &sequence, int64_t position) const {
  return position >= sequence.promptTokens - 1 || sequence.request.logits == PromptLogits::all;
}

/// Rows of a prompt's next chunk, so that neither its tokens nor its output rows exceed what is left.
int64_t Scheduler::promptRows(const Sequence &sequence, int64_t rowsLeft, int64_t outputsLeft) const {
  const int64_t pending = sequence.tokens - sequence.cached;
  const int64_t rows = std::min({pending, rowsLeft, engine.chunk()});
  if (sequence.request.logits == PromptLogits::all)
    return std::min(rows, outputsLeft);
  return rows == pending && outputsLeft == 0 ? rows - 1 : rows;
}

void Scheduler::plan(RankPlan &rank) {
  int64_t rows = manifest.limits.step_tokens;
  if (captures.rows > 0)
    rows = std::min(rows, captures.rows);
  int64_t outputs = std::min(manifest.outputRows(), manifest.limits.step_tokens);
  std::vector<Sequence *> &own = rank.batch;
  own.clear();
  std::vector<Sequence *> generating;
  bool samples = false;
  for (const auto &sequence : active) {
    if (&ranks[sequence->plan] != &rank || !sequence->goesOn())
      continue;
    own.push_back(sequence.get());
    sequence->planned = 0;
    samples |= sequence->request.maxNew > 0;
    if (sequence->cached >= sequence->promptTokens)
      generating.push_back(sequence.get());
  }
  // A row that is sampled has parameters of sampling, of which there are as many as sequences.
  if (samples)
    outputs = std::min(outputs, manifest.limits.max_sequences);
  std::stable_sort(generating.begin(), generating.end(),
                   [](const Sequence *a, const Sequence *b) { return a->lastServed < b->lastServed; });
  for (Sequence *sequence : generating)
    if (rows > 0 && outputs > 0) {
      sequence->planned = 1;
      --rows;
      --outputs;
    }
  for (Sequence *sequence : own)
    if (sequence->cached < sequence->promptTokens && rows > 0) {
      sequence->planned = promptRows(*sequence, rows, outputs);
      rows -= sequence->planned;
      for (int64_t i = 0; i < sequence->planned; ++i)
        outputs -= isOutputRow(*sequence, sequence->cached + i);
    }
  own.erase(std::remove_if(own.begin(), own.end(), [](const Sequence *sequence) { return sequence->planned == 0; }),
            own.end());
}

bool Scheduler::hasWork(int32_t microbatch) const {
  return std::any_of(active.begin(), active.end(), [&](const auto &sequence) {
    return ranks[sequence->plan].microbatch == microbatch && sequence->goesOn();
  });
}

/// Behind the step that is under way.
bool Scheduler::canChain() {
  return underWay.size() == 1 && engine.chains() && !events.logits && !events.logProbability && captures.rows == 0 &&
         ranks[0].last().isGreedy && hasWork(underWay.front());
}

/// The next one in turn that has sequences and is not under way, or chains.
std::optional<int32_t> Scheduler::nextMicrobatch() {
  for (int32_t i = 1; i <= microbatches; ++i) {
    const int32_t next = (last + i) % microbatches;
    if (hasWork(next) && std::find(underWay.begin(), underWay.end(), next) == underWay.end())
      return next;
  }
  return canChain() ? std::optional(underWay.front()) : std::nullopt;
}

Status Scheduler::submit(int32_t microbatch) {
  ++steps;
  for (RankPlan &rank : ranks) {
    if (rank.microbatch != microbatch)
      continue;
    plan(rank);
    build(rank);
    const int32_t *targets = events.logProbability ? rank.targets.data() : nullptr;
    engine.prepare(microbatch, rank.number, rank.step, {static_cast<bool>(events.logits), targets});
    keep(rank);
  }
  last = microbatch;
  underWay.push_back(microbatch);
  return engine.submit(microbatch);
}

/// The step that was built is under way: its rows count.
void Scheduler::keep(RankPlan &rank) {
  ++rank.submitted;
  SubmittedStep &step = rank.last();
  step.batch.clear();
  step.tokenRows = rank.step.token_rows;
  step.outputRows = rank.step.output_rows;
  step.isGreedy = true;
  for (Sequence *sequence : rank.batch) {
    const int64_t begin = rank.arrays.seqBegin[step.batch.size()];
    step.batch.push_back({sequence, begin, sequence->planned, sequence->cached});
    step.isGreedy &= !(sequence->request.sampling.temperature > 0.0f);
    sequence->cached += sequence->planned;
    sequence->lastServed = steps;
    ++sequence->underWay;
  }
}

/// What was submitted and not delivered; where a step chains it has to end first.
void Scheduler::takeBack() {
  for (; engine.chains() && !underWay.empty(); underWay.pop_front())
    (void)engine.collect(underWay.front());
  underWay.clear();
  for (RankPlan &rank : ranks)
    for (; rank.submitted > rank.delivered; --rank.submitted)
      for (const BatchRows &rows : rank.last().batch) {
        rows.sequence->cached = rows.first;
        rows.sequence->sampleRow = -1;
        --rows.sequence->underWay;
      }
}

/// The results of the microbatch that was submitted first.
Status Scheduler::collect() {
  const int32_t microbatch = underWay.front();
  underWay.pop_front();
  Status done = engine.collect(microbatch);
  for (RankPlan &rank : ranks)
    if (done && rank.microbatch == microbatch)
      done = deliver(rank, engine.results(microbatch, rank.number));
  return done;
}

Expected<bool> Scheduler::step() {
  retire();
  admit();
  const std::optional<int32_t> next = nextMicrobatch();
  if (!next && underWay.empty())
    return false;
  Status done = next ? submit(*next) : Status();
  const auto most = static_cast<size_t>(microbatches);
  if (done && (!next || (underWay.size() >= most && !canChain())))
    done = collect();
  if (done)
    return true;
  takeBack();
  return done.takeError();
}

Status Scheduler::drain() {
  for (;;) {
    Expected<bool> more = step();
    if (!more)
      return more.takeError();
    if (!*more)
      return {};
  }
}

/// Where it fails, the step keeps the sequences of which nothing is delivered.
Status Scheduler::deliver(RankPlan &rank, const StepResults &results) {
  SubmittedStep &step = rank.first();
  int64_t output = 0;
  for (auto at = step.batch.begin(); at != step.batch.end(); ++at) {
    const BatchRows &rows = *at;
    Sequence &sequence = *rows.sequence;
    if (captures.captured)
      captures.captured(sequence, rows.first, rows.begin, rows.begin + rows.rows, step.tokenRows);
    const bool isSurplus = sequence.finish != Finish::running;
    if (Status delivered = deliverRows(rows, results, output); !delivered) {
      step.batch.erase(step.batch.begin(), at);
      return delivered;
    }
    if (--sequence.underWay == 0)
      sequence.sampleRow = -1;
    if (!isSurplus && sequence.finish != Finish::running && events.finished)
      events.finished(sequence);
  }
  ++rank.delivered;
  return {};
}

/// `output`: of the step, the first output row of these, and then the first behind them.
Status Scheduler::deliverRows(const BatchRows &rows, const StepResults &results, int64_t &output) {
  Sequence &sequence = *rows.sequence;
  for (int64_t position = rows.first; position < rows.first + rows.rows; ++position) {
    if (!isOutputRow(sequence, position))
      continue;
    const int64_t row = output++;
    if (sequence.finish != Finish::running) // it had ended before this step was
      continue;
    if (events.logits)
      events.logits(sequence, position, results.logits + row * manifest.vocab);
    if (events.logProbability && position + 1 < sequence.promptTokens)
      events.logProbability(sequence, position, results.logProbabilities[row]);
    if (position + 1 < sequence.promptTokens)
      continue;
    if (Status appended = append(sequence, results.samples[row]); !appended)
      return appended;
  }
  return {};
}

/// The sample after a sequence's last token becomes its next token, and may be the last.
Status Scheduler::append(Sequence &sequence, int32_t id) {
  if (sequence.request.maxNew == 0) {
    sequence.finish = Finish::length;
    return {};
  }
  if (id < 0 || id >= manifest.vocab)
    return Error{K2RT_KERNEL_FAILED, "sequence " + std::to_string(sequence.number),
                 "no token could be sampled after position " + std::to_string(sequence.tokens - 1) +
                     ": the logits are not numbers, or the program does not sample",
                 "check the checkpoint with k2c verify"};
  sequence.ids[sequence.tokens++] = id;
  ++ranks[sequence.plan].tokens;
  const bool isEos = std::find(manifest.eos.begin(), manifest.eos.end(), id) != manifest.eos.end();
  const bool goOn = !events.token || events.token(sequence, id, isEos);
  if (!goOn || (isEos && !sequence.request.ignoreEos))
    sequence.finish = Finish::stop;
  else if (sequence.generated() == sequence.request.maxNew)
    sequence.finish = Finish::length;
  return {};
}

Status Scheduler::abandon() {
  queue.clear();
  Status done;
  while (done && !underWay.empty())
    done = collect();
  takeBack();
  for (const auto &sequence : active)
    sequence->finish = Finish::stop;
  retire();
  return done;
}

void Scheduler::retire() {
  const auto isOver = [](const auto &sequence) {
    return sequence->finish != Finish::running && sequence->underWay == 0;
  };
  for (const auto &sequence : active)
    if (isOver(sequence)) {
      RankPlan &rank = ranks[sequence->plan];
      const StepArrays &arrays = rank.arrays;
      rank.freeSlots.push_back(sequence->slot);
      rank.tokens -= sequence->tokens;
      for (size_t group = 0; group < rank.pages.size(); ++group)
        rank.pages[group].giveBack(sequence->pageCount[group],
                                   arrays.blockTables[group] + sequence->slot * arrays.blockStride);
    }
  active.erase(std::remove_if(active.begin(), active.end(), isOver), active.end());
}

} // namespace k2c::runtime
