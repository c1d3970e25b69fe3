//===- ParseLayout.cpp - Layouts as people write them -------------------------===//
//
// The text of --layout is KEY=VALUE entries that are separated by commas; which keys there are depends on the phase,
// and a message about an unknown key lists those of the phase. Whether the numbers fit a model is not decided here
// (CheckLayout).
//
//   tp=8,ep=32,overlap=1                         one pool; dp = ep x etp / (tp x cp), since ep alone was given
//   pp=16,layers=3+4x14+2                        layers of 16 stages, of which 14 have four
//   dp=32,prefill.dp=8                           two pools: any prefill. key makes the second layout
//   phase=decode,ep=32                           one of these pools alone, so that there are no prefill. keys beside it
//
// A key that occurs twice is an error, since the last one would silently win. Runs of layers are bounded before they
// are expanded, and sizes are multiplied as Checked numbers, as the text may hold any 64-bit number.
//
//===----------------------------------------------------------------------===//

#include "base/Utf8.h"
#include "k2c/Planner/Checked.h"
#include "k2c/Planner/Evaluate.h"

#include <charconv>
#include <set>
#include <sstream>

using namespace k2c;

namespace {

Expected<int64_t> wholeNumber(const std::string &key, const std::string &text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return Error{"--layout", key + " is '" + shortened(text) + "', not a whole number", "write " + key + "=8"};
  return value;
}

/// "3+4x14+2": 3 layers, 14 times 4, 2.
Expected<std::vector<int64_t>> layersOf(const std::string &text) {
  constexpr int64_t most = 1 << 16;
  std::vector<int64_t> layers;
  std::istringstream in(text + "+"); // an end for every run, of a text without any too
  for (std::string run; std::getline(in, run, '+');) {
    const size_t times = run.find('x');
    Expected<int64_t> each = wholeNumber("layers", run.substr(0, times)),
                      count = times == std::string::npos ? 1 : wholeNumber("layers", run.substr(times + 1));
    if (!each || !count || *each < 0 || *count < 1 || *count > most - int64_t(layers.size()))
      return Error{"--layout", "layers has '" + shortened(run) + "'", "write layers=3+4x14+2: 3 layers, 14 times 4, 2"};
    layers.insert(layers.end(), size_t(*count), *each);
  }
  return layers;
}

/// The value of the enum whose name is `text`.
template <class E> Status named(const std::string &key, const std::string &text, int count, E &to) {
  std::string known;
  for (int i = 0; i < count; ++i) {
    if (text == nameOf(E(i))) {
      to = E(i);
      return Status::success();
    }
    known += (i ? ", " : "") + std::string(nameOf(E(i)));
  }
  return Error{"--layout", key + " is '" + shortened(text) + "'", "use one of " + known};
}

/// "full", or modules in any order: "activations+norms".
Status parseRecompute(const std::string &text, RecomputeSet &to) {
  for (RecomputeSet set : {RecomputeSet::None, RecomputeSet::DeepSeekV3, RecomputeSet::KimiK2, RecomputeSet::KimiK2Fp8,
                           RecomputeSet::Layer})
    if (text == nameOf(set)) {
      to = set;
      return Status::success();
    }
  uint8_t modules = 0;
  std::istringstream in(text + "+"); // an end for every module, of a text without any too
  for (std::string module; std::getline(in, module, '+');) {
    uint8_t bit = 0;
    for (RecomputeSet each : {RecomputeSet::Norms, RecomputeSet::UpProjections, RecomputeSet::Activations})
      if (module == nameOf(each))
        bit = uint8_t(each);
    if (!bit || (modules & bit))
      return Error{"--layout", "recompute is '" + shortened(text) + "'",
                   "use none, v3, k2, k2_fp8, full, or modules, each once: norms+mla_up_proj+activations"};
    modules |= bit;
  }
  to = RecomputeSet(modules);
  return Status::success();
}

Status setEntry(ParallelLayout &layout, PlanPhase phase, const std::string &key, const std::string &text,
                const std::string &prefix = "") {
  struct {
    const char *key;
    int64_t *to;
    bool serve, train;
  } numbers[] = {{"tp", &layout.tp, true, true},
                 {"ep", &layout.ep, true, true},
                 {"etp", &layout.etp, true, true},
                 {"pp", &layout.pp, true, true},
                 {"dp", &layout.dp, true, true},
                 {"cp", &layout.cp, true, true},
                 {"replicas", &layout.replicas, true, false},
                 {"vocab", &layout.vocab, true, false},
                 {"redundant", &layout.redundantExperts, true, false},
                 {"step", &layout.stepTokens, true, false},
                 {"chunks", &layout.chunks, false, true},
                 {"microbatches", &layout.microbatches, false, true},
                 {"microbatch", &layout.microbatchSize, false, true}};
  const bool serves = phase == PlanPhase::Serve;
  std::string known;
  for (auto &entry : numbers) {
    if (!(serves ? entry.serve : entry.train))
      continue;
    known += std::string(entry.key) + ", ";
    if (key != entry.key)
      continue;
    Expected<int64_t> value = wholeNumber(prefix + key, text);
    if (!value)
      return value.takeError();
    *entry.to = *value;
    return Status::success();
  }
  if (key == "overlap" || (key == "sp" && !serves)) {
    if (text != "0" && text != "1")
      return Error{"--layout", prefix + key + " is '" + shortened(text) + "', must be 0 or 1", "choose one of these"};
    (key == "sp" ? layout.sp : layout.overlap) = text == "1";
    return Status::success();
  }
  if (key == "phase" && serves && prefix.empty())
    return named(key, text, 3, layout.role);
  if (key == "layers" && prefix.empty()) {
    Expected<std::vector<int64_t>> layers = layersOf(text);
    if (!layers)
      return layers.takeError();
    layout.layers = std::move(*layers);
    return Status::success();
  }
  if (key == "schedule" && !serves)
    return named(key, text, 6, layout.schedule);
  if (key == "recompute" && !serves)
    return parseRecompute(text, layout.recompute);
  if (key == "zero" && !serves)
    return named(key, text, 4, layout.zero);
  if (key == "offload" && !serves)
    return named(key, text, 4, layout.offload);
  return Error{"--layout",
               "'" + shortened(prefix + key) + "' is not a key of a " + (serves ? "serving" : "training") + " layout",
               "use " + known +
                   (serves ? "overlap, these with prefill. before them, layers or phase"
                           : "overlap, sp, layers, schedule, recompute, zero, offload")};
}

/// `text` without spaces and tabs around it.
std::string withoutSpaces(const std::string &text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end + 1 - begin);
}

/// Experts are spread over the ranks that are there: ep alone says dp.
void spreadExperts(ParallelLayout &layout, const std::set<std::string> &seen, const std::string &prefix) {
  const Checked ranks = Checked(layout.ep) * layout.etp, shared = Checked(layout.tp) * layout.cp;
  if (seen.count(prefix + "ep") && !seen.count(prefix + "dp") && ranks.isValid() && shared.isValid() &&
      shared.value() > 0)
    layout.dp = std::max<int64_t>(1, ranks.value() / shared.value());
}

} // namespace

Expected<ParallelLayout> k2c::parseLayout(const std::string &text, PlanPhase phase) {
  static const std::string prefix = "prefill.";
  ParallelLayout layout, prefill;
  std::istringstream in(text);
  std::string entry;
  std::set<std::string> seen;
  bool disaggregated = false;
  while (std::getline(in >> std::ws, entry, ',')) {
    entry = withoutSpaces(entry);
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{"--layout", "'" + shortened(entry) + "' is not KEY=VALUE", "write ep=8,dp=8"};
    const std::string key = withoutSpaces(entry.substr(0, equals));
    if (!seen.insert(key).second)
      return Error{"--layout", "names " + key + " twice", "keep one of them"};
    const std::string value = withoutSpaces(entry.substr(equals + 1));
    const bool isPrefill = phase == PlanPhase::Serve && key.compare(0, prefix.size(), prefix) == 0;
    disaggregated |= isPrefill;
    Status status = isPrefill ? setEntry(prefill, phase, key.substr(prefix.size()), value, prefix)
                              : setEntry(layout, phase, key, value);
    if (!status)
      return status.takeError();
  }
  if (seen.empty() && !text.empty())
    return Error{"--layout", "'" + shortened(text) + "' is not KEY=VALUE", "write ep=8,dp=8"};
  if (phase == PlanPhase::Train)
    return layout;
  spreadExperts(layout, seen, "");
  if (disaggregated && layout.role != PoolRole::Both)
    return Error{"--layout",
                 std::string("phase is ") + nameOf(layout.role) + ", one pool alone, beside keys of a prefill pool",
                 "leave phase or the keys with prefill. before them out"};
  if (disaggregated) {
    spreadExperts(prefill, seen, prefix);
    layout.prefill = std::make_shared<const ParallelLayout>(prefill);
  }
  return layout;
}
