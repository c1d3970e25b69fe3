//===- ClusterPlan.cpp - Reading a plan of a cluster --------------------------===//
//
// Each enum has one table of names, which --layout, JSON and pages share; a layout is printed with the keys that differ
// from a layout of one device, so that what is printed parses to the same layout.
//
//===----------------------------------------------------------------------===//

#include "k2c/Planner/ClusterPlan.h"

#include <algorithm>

using namespace k2c;

namespace {

/// Writes "key=value" entries separated by commas.
class Entries {
public:
  explicit Entries(std::string prefix = "") : prefix(std::move(prefix)) {}
  void number(const char *key, int64_t value, int64_t leftOut = 1) {
    if (value != leftOut)
      word(key, std::to_string(value));
  }
  void word(const char *key, const std::string &value) {
    text += (text.empty() ? "" : ",") + prefix + key + "=" + value;
  }
  std::string prefix, text;
};

/// What both phases and both pools have.
void addWays(Entries &entries, const ParallelLayout &layout) {
  entries.number("tp", layout.tp);
  entries.number("ep", layout.ep);
  entries.number("etp", layout.etp);
  entries.number("pp", layout.pp);
  entries.number("dp", layout.dp);
  entries.number("cp", layout.cp);
  entries.number("sp", layout.sp, 0);
}

/// "3+4x14+2": runs of stages with as many layers, in the order of the model.
std::string formatLayers(const std::vector<int64_t> &layers) {
  std::string text;
  for (size_t begin = 0, end; begin < layers.size(); begin = end) {
    for (end = begin + 1; end < layers.size() && layers[end] == layers[begin];)
      ++end;
    text +=
        (begin ? "+" : "") + std::to_string(layers[begin]) + (end - begin > 1 ? "x" + std::to_string(end - begin) : "");
  }
  return text;
}

void addServing(Entries &entries, const ParallelLayout &layout) {
  entries.number("replicas", layout.replicas);
  entries.number("vocab", layout.vocab);
  entries.number("redundant", layout.redundantExperts, 0);
  entries.number("step", layout.stepTokens, 0);
}

} // namespace

const char *k2c::nameOf(Bound bound) {
  static const char *const names[] = {"compute", "memory", "link", "latency"};
  return names[size_t(bound)];
}

const char *k2c::nameOf(Objective objective) {
  static const char *const names[] = {"throughput", "latency", "devices", "ep", "cost"};
  return names[size_t(objective)];
}

const char *k2c::nameOf(PoolRole role) {
  static const char *const names[] = {"both", "prefill", "decode"};
  return names[size_t(role)];
}

const char *k2c::nameOf(PipelineKind kind) {
  static const char *const names[] = {"gpipe", "1f1b", "interleaved", "zb-h1", "dualpipe", "dualpipev"};
  return names[size_t(kind)];
}

const char *k2c::nameOf(RecomputeSet set) {
  static const char *const names[recomputeSetCount] = {"none",
                                                       "norms",
                                                       "mla_up_proj",
                                                       "norms+mla_up_proj",
                                                       "activations",
                                                       "norms+activations",
                                                       "mla_up_proj+activations",
                                                       "norms+mla_up_proj+activations",
                                                       "v3",
                                                       "k2",
                                                       "k2_fp8",
                                                       "full"};
  return names[size_t(set)];
}

const char *k2c::nameOf(Zero zero) {
  static const char *const names[] = {"none", "os", "os+g", "os+g+params"};
  return names[size_t(zero)];
}

const char *k2c::nameOf(Offload offload) {
  static const char *const names[] = {"none", "activations", "optimizer", "activations+optimizer"};
  return names[size_t(offload)];
}

std::string k2c::wordOf(DType type) { return type == DType::F8E4M3 ? "fp8" : std::string(name(type)); }

std::string k2c::format(const ParallelLayout &layout, PlanPhase phase) {
  Entries entries;
  if (layout.role != PoolRole::Both)
    entries.word("phase", nameOf(layout.role));
  addWays(entries, layout);
  if (phase == PlanPhase::Serve) {
    addServing(entries, layout);
  } else {
    if (layout.pp > 1)
      entries.word("schedule", nameOf(layout.schedule));
    entries.number("chunks", layout.chunks);
  }
  if (!layout.layers.empty())
    entries.word("layers", formatLayers(layout.layers));
  if (phase == PlanPhase::Train) {
    entries.number("microbatches", layout.microbatches, 0);
    entries.number("microbatch", layout.microbatchSize);
    if (layout.recompute != RecomputeSet::None)
      entries.word("recompute", nameOf(layout.recompute));
    if (layout.zero != Zero::None)
      entries.word("zero", nameOf(layout.zero));
    if (layout.offload != Offload::None)
      entries.word("offload", nameOf(layout.offload));
  }
  entries.number("overlap", layout.overlap, 0);
  if (layout.prefill) {
    Entries pool("prefill.");
    addWays(pool, *layout.prefill);
    addServing(pool, *layout.prefill);
    pool.number("overlap", layout.prefill->overlap, 0);
    if (pool.text.empty())
      pool.number("replicas", layout.prefill->replicas, 0);
    return entries.text + (entries.text.empty() ? "" : ",") + pool.text;
  }
  return entries.text.empty() ? "one device" : entries.text;
}

Bytes RankMemory::total() const {
  Bytes sum;
  for (const MemoryPart &part : parts)
    sum += part.bytes;
  return sum;
}

bool ClusterPlan::overlaps(const std::string &phase) const {
  return std::find(overlapped.begin(), overlapped.end(), phase) != overlapped.end();
}

std::optional<double> ClusterPlan::figure(const std::string &key) const {
  for (const Figure &figure : figures)
    if (figure.key == key)
      return figure.value;
  return std::nullopt;
}

const RankMemory &ClusterPlan::fullest() const {
  return *std::min_element(memory.begin(), memory.end(), [](const RankMemory &a, const RankMemory &b) {
    return a.capacity - a.total() < b.capacity - b.total();
  });
}

bool ClusterPlan::fits() const {
  return (!host || host->fits()) &&
         std::all_of(memory.begin(), memory.end(), [](const RankMemory &ranks) { return ranks.fits(); });
}
