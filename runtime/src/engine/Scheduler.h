// Which tokens go into the next step: a queue of requests, the sequences at work, and ragged batches of both phases.
//
//   queue --admit (slot + pages for all its tokens)--> active --step, step, ...--> finished (slot and pages given back)
//
// A step holds one token of each generating sequence and chunks of the prompts that wait, up to step_tokens rows. None
// of this reaches the bits of a result (numerics N0); the form of a prompt segment, which does, is fixed at admission
// from its own length (N4).
//
// Of several ranks each has its own slots, pages and step, all within limits that are of one rank. A sequence stays on
// the rank to which it is admitted (Admission.cpp): of those with room the one with the fewest prompt tokens to read,
// then the one with the fewest tokens. All ranks take every step, those without work one of no rows.
//
// Of ranks in stages the sequences of a rank are in as many microbatches, each with slots of its own. While one passes
// a stage, the others pass those behind it: steps of the microbatches take turns, and the results of one are read when
// each of the others has been submitted behind it.
//
// A device may chain steps (Device.h). Then the next step is built and submitted while one is under way whose sequences
// are all greedy: a sequence that goes on has its last token's sample named, which nobody has read yet. That it has
// ended there, by an end of text or because its caller says so, is known one step later: what that step computes of it
// is thrown away. It has a place in the cache for that, as its length is known.
#ifndef K2RT_ENGINE_SCHEDULER_H
#define K2RT_ENGINE_SCHEDULER_H

#include "engine/Engine.h"
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace k2c::runtime {

/// Forced routing of a sequence's first `tokens` tokens: [moe_layers][tokens][top_k] as in abi.def, an expert at most
/// once for a token and layer. The others are routed by the router.
struct ForcedRoutes {
  int64_t tokens = 0;
  std::vector<int32_t> experts;
  std::vector<float> weights;
};

/// Which rows of a prompt give logits.
enum class PromptLogits { last, all };

struct Request {
  std::vector<int32_t> prompt;
  int64_t maxNew = 0; ///< 0: the prompt is only read
  bool ignoreEos = false;
  PromptLogits logits = PromptLogits::last;
  k2rt_ir_sampling sampling = {0, 1, 0, 0, 0, 0, 0}; ///< position is filled in
  const ForcedRoutes *forced = nullptr;              ///< outlives the sequence
};

/// Why a sequence ended.
enum class Finish { running, length, stop };

/// An admitted sequence; lives until the step after it finished.
struct Sequence {
  int64_t number = 0; ///< of the request, from 0
  int32_t rank = 0;   ///< which has its cache
  size_t plan = 0;    ///< of its rank and microbatch
  int64_t promptTokens = 0;
  int64_t tokens = 0;             ///< prompt and generated, in ids
  int64_t cached = 0;             ///< in the cache, or in steps under way; one more than `tokens` where these sample
  int32_t *ids = nullptr;         ///< history, in the rank's memory
  int32_t slot = 0;               ///< which history and block table row
  int32_t promptForm = 0;         ///< K2RT_FORM_*
  std::vector<int64_t> pageCount; ///< per cache group
  Request request;                ///< its prompt has moved to ids
  Finish finish = Finish::running;
  int64_t admittedNs = 0; ///< when, on the clock of Trace::nowNs
  int64_t lastServed = 0; ///< step number
  int64_t planned = 0;    ///< rows of the step being built
  int64_t underWay = 0;   ///< steps with rows of it that were submitted and not collected
  int64_t sampleRow = -1; ///< output row of the last of these that samples the token behind `tokens`; -1: none does

  int64_t generated() const { return tokens - promptTokens; }
  /// Whether it has rows for a next step, as far as is known.
  bool goesOn() const { return finish == Finish::running && (sampleRow < 0 || generated() + 1 < request.maxNew); }
};

/// What of a step its caller wants to see; called on the scheduling thread, rank by rank, in batch order.
struct StepEvents {
  /// The logits after the token at `position`. Prompt rows (as the request asks) and generated ones.
  std::function<void(const Sequence &, int64_t position, const float *logits)> logits;
  /// The log probability of the prompt's token behind the one at `position`, of prompts with all logits.
  std::function<void(const Sequence &, int64_t position, float value)> logProbability;
  /// A new token; `isEos`: it is one of the manifest's. Return false to end the sequence (Finish::stop).
  std::function<bool(const Sequence &, int32_t id, bool isEos)> token;
  std::function<void(const Sequence &)> finished;
};

/// Buffers of an inspection command; null members are not captured. Rows = the most token rows a step may have.
struct Captures {
  int64_t rows = 0;
  int32_t *experts = nullptr;
  float *weights = nullptr;
  float *hidden = nullptr;
  float *maxLogits = nullptr; ///< [layers][heads], over all steps
  int32_t *forcedExperts = nullptr;
  float *forcedWeights = nullptr;
  /// Rows [begin, end) of the captured arrays belong to `sequence` from `position` on.
  std::function<void(const Sequence &, int64_t position, int64_t begin, int64_t end, int64_t stepRows)> captured;
};

class Scheduler {
public:
  /// `engine` outlives the scheduler.
  Scheduler(Engine &engine, StepEvents events);

  /// Inspection: steps capture into `buffers` and are no larger than they are, one after another. Before the first
  /// request.
  void capture(Captures buffers) {
    captures = std::move(buffers);
    microbatches = 1;
  }

  /// Queues a request; its number, counted from 0. Refuses an empty prompt, ids outside the vocabulary, and more
  /// tokens than max_context.
  Expected<int64_t> add(Request request);

  /// Runs one step; of ranks in stages, or where steps chain, begins one, and reads the results of one that was begun
  /// before, when as many are under way as can be. False when nothing was left to do.
  Expected<bool> step();
  /// Steps until nothing is left.
  Status drain();
  /// Ends all sequences where they are; their slots and pages are free again.
  Status abandon();

  /// Sequences queued or at work.
  int64_t unfinished() const;

private:
  /// What a submitted step has of a sequence: `rows` rows from token row `begin` on, of tokens from `first` on.
  struct BatchRows {
    Sequence *sequence;
    int64_t begin, rows, first;
  };
  struct SubmittedStep {
    std::vector<BatchRows> batch;
    int64_t tokenRows = 0, outputRows = 0;
    bool isGreedy = false; ///< it draws no sample
  };
  /// What the scheduler knows of a microbatch's sequences on a rank.
  struct RankPlan {
    int32_t microbatch;
    int32_t number;
    StepArrays &arrays;
    std::vector<PagePool> &pages; ///< per cache group
    std::vector<int32_t> freeSlots{};
    int64_t tokens = 0;              ///< of its sequences
    std::vector<Sequence *> batch{}; ///< of the step being built
    k2rt_ir_step step{};
    std::vector<int32_t> targets{};       ///< of its output rows, where log probabilities are wanted
    std::array<SubmittedStep, 2> steps{}; ///< under way: the first of them, and one that chains
    int64_t submitted = 0, delivered = 0;

    SubmittedStep &first() { return steps[static_cast<size_t>(delivered % 2)]; }
    SubmittedStep &last() { return steps[static_cast<size_t>((submitted + 1) % 2)]; }
  };

  /// What ranks can still take while requests are placed on them.
  struct Rooms {
    std::vector<int64_t> slots, unread, tokens; ///< by plan; prompt tokens that are not read, and all tokens
    std::vector<std::vector<int64_t>> pages;    ///< by rank, which all its plans share, and cache group
  };
  void admit();
  Rooms rooms() const;
  std::vector<int64_t> pagesNeeded(const Request &request) const;
  std::optional<size_t> take(Rooms &rooms, const Request &request) const;
  std::vector<std::optional<size_t>> place(size_t requests) const;
  std::optional<int32_t> nextMicrobatch();
  bool hasWork(int32_t microbatch) const;
  bool canChain();
  Status submit(int32_t microbatch);
  void keep(RankPlan &rank);
  Status collect();
  void takeBack();
  void admitTo(RankPlan &rank, Request request);
  void plan(RankPlan &rank);
  int64_t promptRows(const Sequence &sequence, int64_t rowsLeft, int64_t outputsLeft) const;
  bool isOutputRow(const Sequence &sequence, int64_t position) const;
  void build(RankPlan &rank);
  void buildRows(RankPlan &rank, Sequence &sequence, int64_t sequenceRow);
  void buildGroup(StepArrays &arrays, const Sequence &sequence, int64_t sequenceRow, int64_t firstRow, size_t group);
  void buildForced(const RankPlan &rank);
  Status deliver(RankPlan &rank, const StepResults &results);
  Status deliverRows(const BatchRows &rows, const StepResults &results, int64_t &output);
  Status append(Sequence &sequence, int32_t id);
  void retire();

  Engine &engine;
  const Manifest &manifest;
  StepEvents events;
  Captures captures;
  std::deque<Request> queue;
  int64_t added = 0, admitted = 0, steps = 0;
  int32_t microbatches;                          ///< that have sequences
  std::vector<RankPlan> ranks;                   ///< of each microbatch one behind the other
  std::deque<int32_t> underWay;                  ///< microbatches, in the order in which they were submitted
  int32_t last = -1;                             ///< that was submitted
  std::vector<std::unique_ptr<Sequence>> active; ///< in order of admission
};

/// Checks a prompt and its new tokens against the limits; `place` is the flag or file it came from.
Status checkRequest(const Manifest &manifest, const std::vector<int32_t> &prompt, int64_t maxNew,
                    const std::string &place);

} // namespace k2c::runtime

#endif
