//===- PrintPlan.cpp - A plan on the terminal ---------------------------------===//
#include "PrintPlan.h"

#include <cstdio>

using namespace k2c;

namespace {

/// Columns of fixed width; the last one is free.
std::string row(std::initializer_list<std::string> cells, std::initializer_list<size_t> widths) {
  std::string line = "  ";
  auto width = widths.begin();
  for (const std::string &cell : cells) {
    line += cell;
    if (width != widths.end()) {
      if (cell.size() < *width)
        line.append(*width - cell.size(), ' ');
      line += ' ';
      ++width;
    }
  }
  while (!line.empty() && line.back() == ' ')
    line.pop_back();
  return line + "\n";
}

std::string number(double value, const char *form = "%.4g") {
  char text[48];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

std::string bytes(double count) { return format(Bytes(int64_t(count))); }

std::string valueOf(const Figure &figure) {
  if (figure.unit == "s")
    return format(Seconds(figure.value));
  if (figure.unit.empty())
    return number(figure.value, "%.3g");
  if (figure.unit == "$")
    return "$" + number(figure.value);
  const bool isCount = figure.value >= 1000 && figure.value < 1e15;
  return (isCount ? formatCount(int64_t(figure.value + 0.5)) : number(figure.value)) + " " + figure.unit;
}

std::string head(const ClusterPlan &plan) {
  std::string text = plan.model + " on " + plan.topology + ", " +
                     (plan.phase == PlanPhase::Train ? "training" : "serving") + ", workload " + plan.workload + "\n";
  text += row({"layout", format(plan.layout, plan.phase)}, {12});
  text += row({"devices", std::to_string(plan.devices) + " of " + std::to_string(plan.available)}, {12});
  text += row({"compile", plan.compilable ? "accepts this plan" : "not yet: " + plan.whyNotCompilable}, {12});
  return text;
}

std::string memoryText(const ClusterPlan &plan) {
  std::string text = "memory of a rank\n";
  const RankMemory &full = plan.fullest();
  for (const RankMemory &ranks : plan.memory)
    if (&ranks == &full || plan.memory.size() <= 4)
      text += row({"ranks " + ranks.ranks, bytes(double(ranks.total().value)),
                   "of " + bytes(double(ranks.capacity.value)) + ", " +
                       number(100 * double(ranks.total().value) / double(ranks.capacity.value), "%.1f") + " %" +
                       (&ranks == &full && plan.memory.size() > 1 ? ", the fullest" : "")},
                  {28, 26});
  for (const MemoryPart &part : full.parts)
    text += row({"  " + part.name, bytes(double(part.bytes.value))}, {28});
  return text;
}

std::string stepText(const ClusterPlan &plan) {
  std::string text = "parts of a step, on one device\n";
  for (const StepPart &part : plan.steps)
    text += row(
        {part.phase, part.name, format(part.seconds), nameOf(part.bound),
         part.linkBytes > 0 ? bytes(part.linkBytes) + (part.tier.empty() ? "" : ", slowest over " + part.tier) : ""},
        {9, 22, 10, 8});
  bool links = false;
  for (const TierTraffic &tier : plan.traffic)
    links = links || tier.bytes > 0;
  if (!links)
    return text;
  text += "traffic into one device in a step\n";
  for (const TierTraffic &tier : plan.traffic)
    text += row({tier.phase, tier.tier + (tier.link.empty() ? "" : " (" + tier.link + ")"), bytes(tier.bytes),
                 format(tier.available), format(tier.seconds)},
                {9, 22, 24, 11});
  return text;
}

/// One line of a list of plans.
std::string line(const ClusterPlan &plan) {
  const bool serves = plan.phase == PlanPhase::Serve;
  auto value = [&](const char *key) { return plan.figure(key).value_or(0); };
  return row({std::to_string(plan.devices) + " devices",
              number(value(serves ? "output_tokens_per_s" : "tokens_per_s"), "%.0f") + " tokens/s",
              format(Seconds(value(serves ? "tpot_s" : "step_s"))), format(plan.layout, plan.phase)},
             {13, 18, 10});
}

} // namespace

std::string k2c::planText(const ClusterPlan &plan) {
  std::string text = head(plan) + memoryText(plan) + stepText(plan) + "figures\n";
  for (const Figure &figure : plan.figures)
    text += row({figure.label, valueOf(figure)}, {44});
  if (!plan.notes.empty())
    text += "assumptions\n";
  for (const std::string &note : plan.notes)
    text += "  " + note + "\n";
  return text;
}

std::string k2c::searchText(const PlanSearch &search) {
  std::string text = planText(search.best);
  const bool serves = search.best.phase == PlanPhase::Serve;
  text += std::string("frontier (no other is better in tokens/s, ") + (serves ? "time of a token" : "memory") +
          " and devices at once)\n";
  for (const ClusterPlan &plan : search.frontier)
    text += line(plan);
  if (!search.runnersUp.empty())
    text += "next by " + std::string(nameOf(search.objective)) + "\n";
  for (const RunnerUp &runner : search.runnersUp)
    text += line(runner.plan) + "      " + runner.loses + "\n";
  text += "searched " + formatCount(search.candidates) + " layouts\n";
  for (const Refused &refused : search.refused)
    text += row({std::to_string(refused.count), refused.reason, refused.example}, {8, 12});
  return text;
}
