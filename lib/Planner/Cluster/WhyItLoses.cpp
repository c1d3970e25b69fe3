//===- WhyItLoses.cpp - What plans are ranked by, and why one loses -----------===//

#include "Ranking.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace k2c;
using namespace k2c::planner;

double planner::tokensPerSecond(const ClusterPlan &plan) {
  if (plan.phase == PlanPhase::Train)
    return plan.figure("tokens_per_s").value_or(0);
  return plan.figure(plan.layout.role == PoolRole::Prefill ? "input_tokens_per_s" : "output_tokens_per_s").value_or(0);
}
double planner::latencyOf(const ClusterPlan &plan) {
  if (plan.phase == PlanPhase::Train)
    return plan.figure("step_s").value_or(0);
  const std::optional<double> each = plan.figure("tpot_s"); // none: no request has a second token
  return each ? *each : plan.figure("ttft_s").value_or(0);
}

double planner::objectiveOf(const Merits &merits, Objective objective) {
  switch (objective) {
  case Objective::Throughput:
    return -merits.tokens;
  case Objective::Latency:
    return merits.latency;
  case Objective::Devices:
    return merits.devices;
  case Objective::ExpertParallel:
    return merits.ep;
  case Objective::Cost:
    return merits.cost;
  }
  return 0;
}

double planner::objectiveOf(const ClusterPlan &plan, Objective objective) {
  return objectiveOf({tokensPerSecond(plan), latencyOf(plan), double(plan.devices),
                      double(std::max(plan.layout.ep, plan.layoutOf("prefill").ep)),
                      plan.figure("dollars_per_million_tokens").value_or(0)},
                     objective);
}

std::vector<double> planner::searchRank(const ClusterPlan &plan, Objective objective) {
  const ParallelLayout &l = plan.layout;
  return {double(!plan.whyNotCompilable.empty()),
          objectiveOf(plan, objective),
          -tokensPerSecond(plan),
          double(plan.devices),
          double(l.prefill != nullptr),
          double(l.pp),
          double(l.tp),
          double(l.cp),
          double(l.etp),
          double(l.overlap),
          double(l.ep),
          double(l.redundantExperts)};
}

namespace {

std::string number(double value) { return formatNumber(value, 3); }

/// Device-seconds that each part of a step costs for a token that users get: a phase's parts share the time that its
/// devices spend on it. A transfer between pools costs none.
std::map<std::string, double> costs(const ClusterPlan &plan) {
  const bool serves = plan.phase == PlanPhase::Serve, pools = plan.layout.prefill != nullptr;
  const double tokens = std::max(1e-9, tokensPerSecond(plan));
  auto phaseOf = [&](const StepPart &part) { return serves ? part.phase : ""; };
  auto devicesOf = [&](const std::string &phase) {
    const int64_t prompts = pools ? plan.layout.prefill->devices() : plan.devices;
    if (phase == "prefill")
      return double(prompts) * plan.figure("prefill_busy").value_or(0);
    if (phase == "decode")
      return double(pools ? plan.devices - prompts : plan.devices) * plan.figure("decode_busy").value_or(0);
    return serves ? 0 : double(plan.devices);
  };
  std::map<std::string, double> all, each;
  for (const StepPart &part : plan.steps)
    all[phaseOf(part)] += part.exposed().value;
  for (const StepPart &part : plan.steps)
    if (const double seconds = all[phaseOf(part)]; seconds > 0)
      each[part.phase + ": " + part.name] += part.exposed().value / seconds * devicesOf(phaseOf(part)) / tokens;
  return each;
}

/// "1.8 times fewer tokens/s", "3 % fewer tokens/s".
std::string fewerTokens(double ratio) {
  return (ratio < 1.095 ? number(100 * (1 - 1 / ratio)) + " %" : number(ratio) + " times") + " fewer tokens/s";
}

} // namespace

std::string planner::whyItLoses(const ClusterPlan &plan, const ClusterPlan &best, Objective objective) {
  if (best.whyNotCompilable.empty() && !plan.whyNotCompilable.empty())
    return "k2c compile does not accept it: " + plan.whyNotCompilable;
  const double mine = objectiveOf(plan, objective), theirs = objectiveOf(best, objective);
  std::string text;
  if (objective == Objective::Throughput)
    text = fewerTokens(theirs / mine);
  else if (objective == Objective::Latency)
    text = number(mine / theirs) + " times longer " + (plan.phase == PlanPhase::Serve ? "for a token" : "for a step");
  else if (objective == Objective::Cost)
    text = number(mine / theirs) + " times the dollars";
  else
    text =
        number(mine) + " against " + number(theirs) + (objective == Objective::Devices ? " devices" : " expert ranks");
  // Sums in another order are equal.
  if (std::abs(mine - theirs) <= 1e-9 * std::abs(theirs))
    text = tokensPerSecond(plan) < tokensPerSecond(best) * (1 - 1e-9)
               ? "as good, " + fewerTokens(tokensPerSecond(best) / tokensPerSecond(plan))
           : plan.devices > best.devices ? "as good, with more devices"
                                         : "as good, less simple";
  const std::map<std::string, double> ours = costs(plan), other = costs(best);
  std::string where;
  double most = 0;
  for (const auto &[part, cost] : ours) {
    auto found = other.find(part);
    const double more = cost - (found == other.end() ? 0 : found->second);
    if (more > most) {
      most = more;
      where = part;
    }
  }
  if (where.empty())
    return text;
  auto found = other.find(where);
  auto spent = [](double seconds) { return format(Seconds(seconds)); };
  return text + "; " + where + " takes " + spent(ours.at(where)) + " of a device for a token, there " +
         (found == other.end() ? "nothing" : spent(found->second));
}
