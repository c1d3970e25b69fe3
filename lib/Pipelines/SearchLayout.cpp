//===- SearchLayout.cpp - --layout search -------------------------------------===//
//
// The layouts that compile, the best first as the planner predicts (searchCompiled); the first whose program the passes
// certify, arena included, is the one. From there on the compile is that of a layout that was given by hand.
//
//===----------------------------------------------------------------------===//
#include "Stages.h"
#include "base/Utf8.h"
#include "k2c/Planner/Evaluate.h"
#include <cmath>

namespace k2c {

namespace {

/// Without what depends on the layout, and silent.
CompileOptions withoutLayout(CompileOptions options) {
  options.layout.clear();
  options.placement.clear();
  options.routeLimit = 0;
  options.localityPenalty = 0;
  options.note = nullptr;
  return options;
}

/// Which layout, of how many, and what is predicted under which load.
std::string noteOf(const CompileSearch &found, const ClusterPlan &plan, const Inputs &inputs) {
  const ServeWorkload load = defaultWorkload(inputs.spec, inputs.limits.maxContext).serve;
  auto number = [&](const char *key) { return formatCount(std::llround(plan.figure(key).value_or(0))); };
  auto seconds = [&](const char *what, const char *key) {
    const std::optional<double> value = plan.figure(key);
    return value ? std::string(", ") + what + " " + format(Seconds(*value)) : std::string();
  };
  return "--layout search takes " + compiledText(plan.layout) + ": of " + formatCount(found.candidates) + " layouts " +
         formatCount(found.compiling) + " compile, and memory holds " + formatCount(int64_t(found.holding.size())) +
         "; predicted are " + number("output_tokens_per_s") + " tokens/s" + seconds("TTFT", "ttft_s") +
         seconds("TPOT", "tpot_s") + " with " + number("batch") + " sequences of " +
         formatCount(std::llround(load.prompt.mean())) + " tokens that generate " +
         formatCount(std::llround(load.output.mean()));
}

/// None of those that compile makes the program of `options`: what becomes of the one that needs least memory.
Error noneHolds(const CompileSearch &found, const CompileOptions &options, const Inputs &inputs) {
  CompileOptions smallest = options;
  smallest.layout = compiledText(found.smallest);
  PlanOptions plan = inputs.planOptions;
  plan.layout = found.smallest;
  plan.mustFit = true;
  Expected<Plan> refused = planCompile(smallest); // of weights, whose program has to fit, with the arena
  if (refused)
    refused = planHost(inputs.spec, inputs.topology, inputs.limits, plan);
  const Error why = refused.takeError();
  return {"--layout search",
          "none of " + formatCount(found.compiling) + " layouts that compile makes this program: with " +
              smallest.layout + ", which needs least memory, " + why.where + " " + why.message,
          why.remedy};
}

} // namespace

Expected<CompileOptions> withSearchedLayout(const CompileOptions &options) {
  if (options.layout != "search") {
    if (("," + options.layout + ",").find(",search,") == std::string::npos)
      return options;
    return Error{"--layout", "'" + shortened(options.layout) + "' has keys beside search, which chooses all of them",
                 "use --layout search, or leave search out"};
  }
  Expected<Inputs> inputs = readInputs(withoutLayout(options));
  if (!inputs)
    return inputs.takeError();
  Expected<CompileSearch> found = searchCompiled(inputs->spec, inputs->topology, inputs->limits, inputs->planOptions,
                                                 {options.routeLimit, options.localityPenalty});
  if (!found)
    return found.takeError();
  CompileOptions chosen = options;
  chosen.note = nullptr;
  chosen.narrow = false; // found once
  chosen.narrowed = inputs->spec.narrowed;
  for (const ClusterPlan &plan : found->holding) {
    chosen.layout = compiledText(plan.layout);
    if ((plan.layout.overlap && leavesOverlapOut(options)) || !planCompile(chosen))
      continue;
    if (options.note)
      options.note(noteOf(*found, plan, *inputs));
    chosen.note = options.note;
    return chosen;
  }
  return noneHolds(*found, chosen, *inputs);
}

} // namespace k2c
