//===- Headline.cpp - The figures that people ask for first ---------------===//

#include "Derived.h"

#include <algorithm>
#include <cmath>

using namespace k2c;
using namespace k2c::report;

namespace {

const Figure *find(const ClusterPlan &plan, const std::string &key) {
  for (const Figure &figure : plan.figures)
    if (figure.key == key)
      return &figure;
  return nullptr;
}

/// What the fullest rank's device has left; of a plan that does not fit, what it lacks. GiB, with GB beside it.
Headline headRoom(const ClusterPlan &plan, const std::string &device) {
  const RankMemory &full = plan.fullest();
  const Bytes left = full.capacity - full.total();
  if (!full.fits())
    return {"head room", "none", format(Bytes(-left.value)) + " too much", "", double(left.value)};
  const std::string sizes = format(left), share = printShare(double(left.value) / double(full.capacity.value));
  const size_t decimal = std::min(sizes.find(" ("), sizes.size());
  return {"head room", sizes.substr(0, decimal), share + " of the fullest " + device + sizes.substr(decimal), "",
          double(left.value)};
}

} // namespace

std::vector<Headline> report::headlineOf(const PlanReport &report) {
  const ClusterPlan &plan = report.plan;
  const std::string device = wordOf(report.topology.device.kind), rate = "tok/s per " + device;
  std::vector<Headline> headline = {
      {device + "s", formatCount(plan.devices), "of " + formatCount(plan.available), "", double(plan.devices)}};
  // `beside` is what else is said of the figure: words, and another figure.
  auto add = [&](const std::string &label, const char *key, const std::string &words, const char *beside) {
    const Figure *main = find(plan, key), *other = find(plan, beside);
    if (!main)
      return false;
    std::string value = printFigure(main->value, main->unit);
    if (main->unit == "tokens/s" || main->unit == "$") // which the label says
      value.erase(value.rfind(' '));
    headline.push_back(
        {label, value, other ? words + " " + printFigure(other->value, other->unit) : "", key, main->value});
    return true;
  };
  auto none = [&](const std::string &label, const std::string &why) { headline.push_back({label, "-", why, "", {}}); };
  if (plan.phase == PlanPhase::Serve) {
    // Served tokens of which some are cache hits, which no device computes; null: there are none.
    const Figure *hits = find(plan, "computed_input_tokens_per_s") ? find(plan, "input_tokens_per_s") : nullptr;
    if (!add("TTFT", "ttft_s", "95th percentile", "ttft_p95_s") && plan.layout.role == PoolRole::Decode)
      none("TTFT", "phase=decode computes no prompts");
    if (!add("TPOT", "tpot_s", "per user", "tokens_per_s_per_user"))
      none("TPOT", plan.layout.role == PoolRole::Prefill ? "phase=prefill generates no tokens"
                                                         : "no second token is generated");
    add(rate, "output_tokens_per_s_per_device", "generated; all", "output_tokens_per_s") ||
        add(rate, "output_tokens_per_s", "", "") ||
        add(rate, "prefill_tokens_per_s_per_device", "while computing; all served",
            hits ? "computed_input_tokens_per_s" : "input_tokens_per_s");
    if (plan.layout.role == PoolRole::Prefill && hits)
      headline.back().beside += ", " + printFigure(hits->value, hits->unit) + " with cache hits counted";
  } else {
    add("step time", "step_s", "for", "tokens_per_step");
    add(rate, "tokens_per_s_per_device", "all", "tokens_per_s");
    add("MFU", "mfu", "bubble", "bubble");
  }
  if (!add("$ per million tokens", "dollars_per_million_tokens", "per hour", "dollars_per_hour") &&
      !add("$ per million prompt tokens", "dollars_per_million_input_tokens", "per hour", "dollars_per_hour"))
    none("$ per million tokens", "the workload states no dollars_per_device_hour");
  const Figure *hours = find(plan, "total_device_hours"), *dollars = find(plan, "total_dollars");
  if (hours && add("all tokens", "total_days", "", ""))
    headline.back().beside = formatCount(std::llround(hours->value)) + " " + device + "-hours" +
                             (dollars ? ", " + printFigure(dollars->value, dollars->unit) : "");
  if (!plan.memory.empty())
    headline.push_back(headRoom(plan, device));
  return headline;
}

std::vector<Figure> report::otherFigures(const PlanReport &report) {
  const std::vector<Headline> headline = headlineOf(report);
  std::vector<Figure> figures;
  for (const Figure &figure : report.plan.figures)
    if (std::none_of(headline.begin(), headline.end(), [&](const Headline &h) { return h.key == figure.key; }))
      figures.push_back(figure);
  return figures;
}
