//===- KernelTime.cpp - Seconds of a compiled program's step --------------===//
//
// One visitor turns a description, its tile and the rates of a machine into seconds of the busiest worker, as
// KernelTime.h lays down. Three things are behind most of its lines.
//
// Items are whole: the busiest of W workers has ceil(items / W) of them, which is what makes small steps slow. Weights
// lie partly in caches: `near` and `memory` rates are two ends, and memoryShare, read off the curve of bandwidth over
// working set, says where a step lies between; only the first tile of a panel pays the difference. And an expert's
// rows are random: with N tokens of topK experts each it has r rows with the binomial probability of (N, topK / E),
// summed within six standard deviations, since time is not linear in r. A rate that the calibration lacks is noted and
// ends in one error, so that a missing kind is never counted as no time.
//
//===----------------------------------------------------------------------===//
#include "k2c/Planner/KernelTime.h"

#include "Exchange.h"
#include "RateTable.h"
#include "k2c/Kernels/Cost.h"
#include "k2c/Planner/Experts.h"
#include <algorithm>
#include <cmath>

namespace k2c {

using namespace planner;

namespace {

/// What launches of a step have in common.
struct Step {
  const StepOptions &options;
  RateTable &rates;
  double memoryShare = 0; ///< of the weights that a step reads
  double readRate = 0;    ///< bytes a second of the team over what a step reads

  double tokens() const { return double(options.shape.sequences * options.shape.tokens); }
  double rowsOf(RowSpace space) const {
    return space == RowSpace::Output ? double(options.outputRows)
           : space == RowSpace::Slot ? tokens() * double(options.etp)
                                     : tokens();
  }
  double workers() const { return double(rates.workers()); }
  /// Items of the worker that has most.
  double busiest(double items) const { return std::ceil(items / workers()); }
  bool runs(FormFilter filter) const {
    return filter == FormFilter::All || (filter == FormFilter::Expanded) == options.expanded;
  }
};

double pairs(double multiplyAdds) { return 2 * multiplyAdds; }

/// Experts that tokens are shared out to.
double expertsOf(const LinearDesc &d, const StepOptions &options) {
  return options.expertsHit > 0 ? std::min(options.expertsHit, double(d.w.count)) : double(d.w.count);
}

/// Seconds of one launch on the busiest worker, its barrier left out.
class KernelSeconds {
public:
  KernelSeconds(const KernelDesc &desc, const TileConfig &tile, const Step &step)
      : desc(desc), tile(tile), step(step) {}

  double operator()(const LinearDesc &d) {
    if (d.grouped)
      return expertPanels(d) * step.busiest(double(panelCount(d.w) * d.w.count)) / double(d.w.count);
    double rows = step.rowsOf(d.x.space) * (d.x.space == RowSpace::Slot ? double(d.slotsPerToken) : 1);
    double blocks = std::max(1.0, std::ceil(rows / double(tile.rowsPerItem))), inBlock = rows / blocks;
    double items = step.busiest(blocks * double(panelCount(d.w)));
    double seconds = items * near(d.x.type, d.w, inBlock) +
                     step.busiest(double(panelCount(d.w))) * beyondNear(d.x.type, d.w, inBlock);
    if (d.normEps > 0) {
      double touched = std::min(blocks, std::ceil(items / double(panelCount(d.w))));
      double rowBytes = double(d.x.width * byteWidth(d.x.type) * 2);
      seconds += touched * rowSeconds("rms_norm", d.x.type, rowBytes, inBlock);
    }
    return seconds;
  }
  double operator()(const HeadLinearDesc &d) {
    if (!step.runs(d.rows))
      return 0;
    double rows = step.rowsOf(d.x.space), panels = double(d.heads * panelCount(d.w));
    double blocks = std::max(1.0, std::ceil(rows / double(tile.rowsPerItem)));
    return step.busiest(blocks * panels) * near(d.x.type, d.w, rows / blocks) +
           step.busiest(panels) * beyondNear(d.x.type, d.w, rows / blocks);
  }
  double operator()(const GqaAttentionDesc &d) {
    double splits = splitsOfQuery();
    Runs runs = busiestRuns(double(d.kvHeads));
    if (isApart())
      runs = {step.busiest(double(d.kvHeads) * step.tokens() * splits) / splits, 1};
    double queries = runs.tokens * double(d.shape.heads / d.kvHeads);
    double seconds = runs.count * keysOfQuery() * pairSeconds("gqa", d.q.type, d.shape, d.keyDim + d.valueDim, queries);
    return notFasterThanReading(seconds, d.kvHeads * (d.keyDim + d.valueDim), d.shape.cache) +
           mergeSeconds(d.shape.heads, d.valueDim, splits);
  }
  double operator()(const AbsorbedAttentionDesc &d) {
    if (!step.runs(d.rows))
      return 0;
    double heads = double(std::min(tile.headTile, d.shape.heads)), parts = double(tile.valueParts);
    double task = keysOfQuery() * pairSeconds("absorbed", d.qLatent.type, d.shape, 2 * d.latent + d.rope, heads);
    double splits = splitsOfQuery();
    double tasks = step.tokens() * std::ceil(double(d.shape.heads) / double(tile.headTile)) * splits;
    while (splits > 1 && parts > 1 && tasks * parts > step.workers())
      parts /= 2;
    // A worker that has some parts of a task computes all of its scores.
    double items = step.busiest(tasks * parts), whole = std::floor(items / parts), some = items - whole * parts;
    double scores = double(d.latent + d.rope) / double(2 * d.latent + d.rope);
    double share = (whole + (some > 0 ? scores + (1 - scores) * some / parts : 0)) / splits;
    return notFasterThanReading(task * share, d.latent + d.rope, d.shape.cache) +
           mergeSeconds(d.shape.heads, d.latent, splits);
  }
  double operator()(const ExpandedAttentionDesc &d) {
    if (!step.runs(d.rows))
      return 0;
    Runs runs = busiestRuns(double(d.shape.heads));
    double attention =
        keysOfQuery() * pairSeconds("expanded", d.q.type, d.shape, d.nope + d.rope + d.value, runs.tokens);
    double lastKey = double(step.options.shape.context) + (double(step.options.shape.tokens) + runs.tokens) / 2;
    double expansion = lastKey * double(d.nope + d.value) *
                       pairs(step.rates.secondsOfMany("expansion", d.shape.cache, d.uk.type, double(d.latent)));
    return runs.count * (attention + expansion);
  }
  double operator()(const RmsNormDesc &d) { return byRow("rms_norm", d.x.type, d.x.space); }
  double operator()(const RotaryDesc &d) { return byRow("rotary", d.x.type, d.x.space); }
  double operator()(const AppendDesc &d) { return byRow("append", d.x.front().type, RowSpace::Token); }
  double operator()(const RowwiseDesc &d) { // of lists, an addition and a gated SiLU are measured
    return byRow(d.list.hasExponential() ? "gated" : "add", d.inputs.front().type, d.inputs.front().space);
  }
  double operator()(const PermuteDesc &d) { return byRow("gather", d.x.type, RowSpace::Token); }
  double operator()(const UnpermuteDesc &d) { return byRow("unpermute", d.x.type, RowSpace::Token); }
  double operator()(const EmbedDesc &d) { return byRow("gather", d.y.type, RowSpace::Token); }
  double operator()(const OutputRowsDesc &d) { return byRow("gather", d.x.type, RowSpace::Output); }
  double operator()(const RoutingDesc &d) { return byRow("routing", d.logits.type, RowSpace::Token); }
  double operator()(const PermutationDesc &) { return plan(); }
  double operator()(const CaptureDesc &) { return 0; } // nothing is captured
  // Of several ranks nothing is measured yet: what is alike in kind and bytes stands for it.
  double operator()(const LocateDesc &) { return 0; } // some numbers a row
  double operator()(const RoutePlanDesc &) { return plan(); }
  double operator()(const ReturnPlanDesc &) { return plan(); }
  double operator()(const PackDesc &d) { return byRow("gather", d.x.type, RowSpace::Token); }
  double operator()(const UnpackDesc &d) { return byRow("gather", d.y.type, RowSpace::Token); }
  double operator()(const ReduceSubtreesDesc &d) { return byRow("unpermute", d.x.type, RowSpace::Token); }
  double operator()(const MergeSubtreesDesc &d) { return byRow("unpermute", d.x.type, RowSpace::Token); }
  double operator()(const CombineDesc &d) { return byRow("unpermute", d.x.type, RowSpace::Token); }
  double operator()(const TokenIdsDesc &) { return 0; } // a number a row, or some a member
  double operator()(const SharePlanDesc &) { return 0; }
  double operator()(const ShareReturnDesc &) { return 0; }
  double operator()(const LookupDesc &d) { return byRow("gather", d.y.type, RowSpace::Token); }
  double operator()(const CloseGapsDesc &d) { return byRow("gather", d.y.type, RowSpace::Token); }
  double operator()(const JoinColumnsDesc &d) { return byRow("gather", d.y.type, d.y.space); }
  double operator()(const PartPlanDesc &) { return plan(); }
  double operator()(const AddPartsDesc &d) { return byRow("unpermute", d.x.type, RowSpace::Token); }
  double operator()(const BlockArgmaxDesc &) { return 0; } // "sample" is counted for every program
  double operator()(const GreedySampleDesc &) { return 0; }

private:
  /// One worker counts and sorts.
  double plan() const { return rowSeconds("permutation", DType::F32, double(bytesOfRow(desc).value), step.tokens()); }
  double rowSeconds(const char *kind, DType type, double bytes, double rows) const {
    return step.rates.seconds(kind, type, type, bytes, rows);
  }
  double byRow(const char *kind, DType type, RowSpace space) const {
    double slots = space == RowSpace::Slot ? double(gridOf(desc, tile).slotsPerToken) : 1;
    double rows = step.busiest(step.rowsOf(space) * slots);
    return rowSeconds(kind, type, double(bytesOfRow(desc).value) / slots, rows);
  }

  double pass(DType x, const Matrix &w, double rows, bool fromMemory) const {
    return pairs(panelColumns * step.rates.seconds("linear", x, w.type, double(w.k), rows, fromMemory));
  }
  /// `rows` rows through one panel in the nearest caches: tiles share them, and none takes longer than a full one that
  /// follows others.
  double near(DType x, const Matrix &w, double rows) const {
    double mr = double(tile.mr), tiles = std::ceil(rows / mr);
    if (tiles <= 1)
      return pass(x, w, rows, false);
    double row = pairs(panelColumns * step.rates.secondsOfMany("linear", x, w.type, double(w.k)));
    return tiles * std::min(pass(x, w, rows / tiles, false), mr * row);
  }
  /// What the first tile waits for memory.
  double beyondNear(DType x, const Matrix &w, double rows) const {
    double first = rows / std::max(1.0, std::ceil(rows / double(tile.mr)));
    return step.memoryShare * std::max(0.0, pass(x, w, first, true) - pass(x, w, first, false));
  }
  /// One panel of every expert: an expert has r of N tokens with probability binomial(N, topK / experts)(r).
  double expertPanels(const LinearDesc &d) const {
    double experts = expertsOf(d, step.options);
    double tokens = step.rowsOf(RowSpace::Slot), p = double(d.slotsPerToken) / experts, seconds = 0;
    if (p >= 1)
      return experts * (near(d.x.type, d.w, tokens) + beyondNear(d.x.type, d.w, tokens));
    double mean = tokens * p, reach = 6 * std::sqrt(mean * (1 - p)) + 6;
    double least = std::max(1.0, std::floor(mean - reach)), most = std::min(tokens, std::ceil(mean + reach));
    for (double r = least; r <= most; ++r)
      seconds += std::exp(binomialLog(tokens, r, p)) * (near(d.x.type, d.w, r) + beyondNear(d.x.type, d.w, r));
    return seconds * experts;
  }

  /// Runs of tokens of a sequence that are computed together.
  struct Runs {
    double count, tokens;
  };
  /// Those of the busiest worker when items are heads x tokens.
  Runs busiestRuns(double heads) const {
    double items = step.busiest(heads * step.tokens());
    double tokens = std::min({items, double(step.options.shape.tokens), double(tile.rowsPerItem)});
    return {items / tokens, tokens};
  }
  /// Whether tokens are computed one by one, and their partials apart.
  bool isApart() const { return step.tokens() <= double(tile.splitTokens); }
  /// Parts that the keys of a query are split into (split-KV).
  double splitsOfQuery() const {
    int64_t partials = softmaxPartials(step.options.shape.context + step.options.shape.tokens - 1);
    return isApart() && partials >= minSplit ? double(partials) : 1;
  }
  /// The second launch of a kernel that can split: it adds up rows of partials.
  double mergeSeconds(int64_t heads, int64_t valueDim, double splits) const {
    if (tile.splitTokens == 0)
      return 0;
    double rows = splits > 1 ? step.busiest(step.tokens() * double(heads)) * splits : 0;
    double bytes = 3 * double(valueDim) * double(byteWidth(DType::F32)); // two rows to one
    return step.rates.launch() + (rows > 0 ? rowSeconds("add", DType::F32, bytes, rows) : 0);
  }
  /// A query sees the keys up to its own.
  double keysOfQuery() const {
    return double(step.options.shape.context) + (double(step.options.shape.tokens) + 1) / 2;
  }
  /// Keys come from where the step's data live.
  double pairSeconds(const char *kind, DType query, const AttentionShape &shape, int64_t depth, double queries) const {
    double near = step.rates.seconds(kind, query, shape.cache, double(depth), queries);
    double far = step.rates.seconds(kind, query, shape.cache, double(depth), queries, true);
    return pairs(near + step.memoryShare * std::max(0.0, far - near));
  }
  /// Cached keys of all sequences cross from where the step's data live once.
  double notFasterThanReading(double seconds, int64_t width, DType type) const {
    const StepShape &shape = step.options.shape;
    double bytes = double(shape.sequences * (shape.context + shape.tokens) * width * byteWidth(type));
    return std::max(seconds, bytes / step.readRate);
  }

  const KernelDesc &desc;
  const TileConfig &tile;
  const Step &step;
};

/// Whether the step's rows are of the form that a kernel is for.
bool launches(const KernelDesc &desc, const Step &step) {
  if (const auto *d = std::get_if<HeadLinearDesc>(&desc.body))
    return step.runs(d->rows);
  if (const auto *d = std::get_if<AbsorbedAttentionDesc>(&desc.body))
    return step.runs(d->rows);
  if (const auto *d = std::get_if<ExpandedAttentionDesc>(&desc.body))
    return step.runs(d->rows);
  return !std::holds_alternative<CaptureDesc>(desc.body); // nothing is captured
}

/// Bytes of weights and cache that the launches of `kernel` read.
double bytesRead(const ProgramKernel &kernel, const StepOptions &options) {
  const StepShape &shape = options.shape;
  if (const auto *d = std::get_if<HeadLinearDesc>(&kernel.desc.body))
    if (d->rows != FormFilter::All && (d->rows == FormFilter::Expanded) != options.expanded)
      return 0;
  bool isAttention = std::holds_alternative<GqaAttentionDesc>(kernel.desc.body) ||
                     std::holds_alternative<AbsorbedAttentionDesc>(kernel.desc.body) ||
                     std::holds_alternative<ExpandedAttentionDesc>(kernel.desc.body);
  const auto *linear = std::get_if<LinearDesc>(&kernel.desc.body);
  if (linear && linear->grouped && options.expertsHit > 0)
    return double(kernel.launches) * double(weightBytes(linear->w, kernel.tile.weights)) * expertsOf(*linear, options) /
           double(linear->w.count);
  const int64_t ranks = linear && linear->grouped ? options.etp : 1; // whose rows come to these weights
  Load load{shape.sequences * shape.tokens * ranks, double(shape.context), 0};
  if (isAttention)
    load.keys = double(shape.sequences * (shape.context + shape.tokens));
  Cost cost = count(kernel.desc, load, kernel.tile.weights);
  return double(kernel.launches) * double((cost.weights + cost.cache).value);
}

/// What the busiest worker reads of the others' activations, and writes over what they have read. A linear's workers
/// read all rows, the others' their own.
double exchangeSeconds(const ProgramKernel &kernel, const Step &step, const Exchange &exchange) {
  bool isLinear =
      std::holds_alternative<LinearDesc>(kernel.desc.body) || std::holds_alternative<HeadLinearDesc>(kernel.desc.body);
  Grid grid = gridOf(kernel.desc, kernel.tile);
  double rows = step.rowsOf(grid.space), slots = grid.space == RowSpace::Slot ? double(grid.slotsPerToken) : 1;
  if (rows == 0 || !launches(kernel.desc, step))
    return 0;
  Cost cost = count(kernel.desc, {int64_t(rows), 0, 0});
  double blocks = grid.rowsPerItem > 0 ? std::ceil(rows * slots / double(grid.rowsPerItem)) : 1;
  double items = blocks * double(grid.itemsPerBlock), share = step.busiest(items) / items;
  return exchange.seconds(double(cost.read.value) * (isLinear ? 1 : share), double(cost.written.value) * share);
}

} // namespace

StepOptions stepOptions(const ModelSpec &spec, const Plan &plan, const StepShape &shape) {
  return {shape, runsExpanded(plan, shape), shape.sequences, spec.vocab, plan.layout.etp};
}

Expected<StepTime> timeStep(const std::vector<ProgramKernel> &program, const TeamRates &team,
                            const std::vector<LinkRates> &links, const StepOptions &options) {
  RateTable rates(team);
  Exchange exchange(links, team);
  Step step{options, rates};
  double workingSet = 0;
  for (const ProgramKernel &kernel : program)
    workingSet += bytesRead(kernel, options);
  step.memoryShare = rates.memoryShare(workingSet);
  step.readRate = rates.readRate(workingSet);
  StepTime time;
  time.workingSet = Bytes(int64_t(workingSet));
  auto add = [&](const std::string &name, int64_t launches, double seconds) {
    time.kernels.push_back({name, launches, Seconds(seconds)});
    time.seconds += Seconds(seconds);
  };
  for (const ProgramKernel &kernel : program) {
    double work = std::visit(KernelSeconds(kernel.desc, kernel.tile, step), kernel.desc.body) +
                  exchangeSeconds(kernel, step, exchange);
    double barriers = double(kernel.launches - kernel.nowait);
    add(kernel.desc.name, kernel.launches, double(kernel.launches) * work + barriers * rates.launch());
  }
  double choice = rates.seconds("sample", DType::F32, DType::F32, double(options.vocab * byteWidth(DType::F32)),
                                step.busiest(double(options.outputRows)));
  // A step begins and ends at the gate of the workers.
  add("sample", 1, 2 * rates.launch() + choice);
  if (!rates.missing.empty())
    return Error{"measured", "has no rate of " + rates.missing + " with " + std::to_string(team.workers) + " workers",
                 "run k2c calibrate without --quick"};
  return time;
}

} // namespace k2c
