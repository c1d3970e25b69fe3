//===- Table.cpp - A plan on a terminal -----------------------------------===//
//
// From what everyone asks to what few do: six figures, the summary, then tables of all figures, of the memory of each
// class of ranks, of the parts of each phase, of links, and of the plans that a search compared. A column is as wide as
// its widest cell, and what does not apply is an empty cell.
//
//===----------------------------------------------------------------------===//

#include "Bands.h"
#include "Derived.h"

#include <algorithm>
#include <cmath>

using namespace k2c;
using namespace k2c::report;

namespace {

/// Characters of UTF-8 text, each one column wide.
size_t columns(const std::string &text) {
  return size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

/// Rows of cells, printed with each column as wide as its widest cell; numbers to the right.
class Rows {
public:
  /// `toTheRight`: a letter for each column, '>' where it is a number. `heads` may be empty.
  Rows(std::string toTheRight, std::vector<std::string> heads) : toTheRight(std::move(toTheRight)) {
    if (!heads.empty())
      list.push_back(std::move(heads));
  }
  void add(std::vector<std::string> cells) { list.push_back(std::move(cells)); }
  std::string text() const {
    std::vector<size_t> widths(toTheRight.size());
    for (const auto &row : list)
      for (size_t i = 0; i < row.size(); ++i)
        widths[i] = std::max(widths[i], columns(row[i]));
    std::string out;
    for (const auto &row : list) {
      std::string line = " ";
      for (size_t i = 0; i < row.size(); ++i) {
        const std::string gap(widths[i] - columns(row[i]), ' ');
        line += toTheRight[i] == '>' ? " " + gap + row[i] + " " : " " + row[i] + gap + " ";
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

private:
  std::string toTheRight;
  std::vector<std::vector<std::string>> list;
};

std::string printSummary(const PlanSummary &summary) {
  std::string out = summary.fit.empty() ? "" : summary.fit + "\n";
  for (const std::string &bound : summary.bounds)
    out += bound + "\n";
  for (const std::string &advice : summary.advice)
    out += "  -> " + advice + "\n";
  return out + "\n";
}

std::string printHeadline(const PlanReport &report) {
  Rows rows("<><", {});
  for (const Headline &figure : headlineOf(report))
    rows.add({figure.label, figure.value, figure.beside});
  return rows.text() + "\n";
}

std::string printFigures(const PlanReport &report) {
  Rows rows("<>", {"figure", "value"});
  for (const Figure &figure : otherFigures(report))
    rows.add({figure.label, printFigure(figure.value, figure.unit)});
  return rows.text() + "\n";
}

} // namespace

std::string report::memoryText(const ClusterPlan &plan) {
  Rows rows("<<>>", {"ranks", "part", "bytes", "share"});
  for (const RankMemory &ranks : plan.memory) {
    const double capacity = double(std::max<int64_t>(1, ranks.capacity.value));
    std::string name = ranks.ranks;
    for (const MemoryPart &part : ranks.parts) {
      rows.add({name, part.name, format(part.bytes), printShare(double(part.bytes.value) / capacity)});
      name.clear();
    }
    rows.add({name, "all", format(ranks.total()), printShare(double(ranks.total().value) / capacity)});
    if (plan.host)
      rows.add({"", "in the host", format(ranks.host), ""});
  }
  if (plan.host)
    rows.add({"a node's host", "of its ranks", format(plan.host->bytes),
              printShare(double(plan.host->bytes.value) / double(std::max<int64_t>(1, plan.host->capacity.value)))});
  return rows.text() + "\n";
}

namespace {

std::string printSteps(const ClusterPlan &plan) {
  auto bytes = [](double value) { return value > 0 ? printFigure(value, "B") : ""; };
  Rows rows("<<>>>>>><", {"phase", "part", "time", "hidden", "share", "FLOP", "memory", "links", "bound by"});
  for (const PhaseParts &phase : phasesOf(plan))
    for (const StepPart *part : phase.parts)
      rows.add({phase.phase, part->name, format(part->seconds), part->hidden.value > 0 ? format(part->hidden) : "",
                printShare(phase.seconds() > 0 ? part->exposed().value / phase.seconds() : 0),
                part->flops.value > 0 ? format(part->flops) : "", bytes(part->memoryBytes), bytes(part->linkBytes),
                std::string(nameOf(part->bound)) + (part->tier.empty() ? "" : " (" + part->tier + ")")});
  return rows.text() + "\n";
}

std::string printTraffic(const PlanReport &report) {
  const ClusterPlan &plan = report.plan;
  Rows rows("<<>>>", {"phase", "tier", "received per " + wordOf(report.topology.device.kind), "link", "time"});
  for (const TierTraffic &tier : plan.traffic)
    rows.add({tier.phase, tier.tier + (tier.link.empty() ? "" : " (" + tier.link + ")"), printFigure(tier.bytes, "B"),
              format(tier.available), format(tier.seconds)});
  return plan.traffic.empty() ? "" : rows.text() + "\n";
}

std::string printSearch(const PlanSearch &search, const std::string &device) {
  const Tradeoff tradeoff = tradeoffOf(search.best);
  // Plans of one layout may differ in the sequences that decode at once.
  const char *fourth = search.best.phase == PlanPhase::Serve ? "sequences" : "micro-batches alive";
  Rows rows("<>>>><<", {"plan", device + "s", tradeoff.rate ? tradeoff.rate->label : "rate",
                        tradeoff.latency ? tradeoff.latency->label : "latency", fourth, "layout", "why not"});
  auto add = [&](const std::string &what, const ClusterPlan &plan, const std::string &why) {
    const Tradeoff own = tradeoffOf(plan);
    const std::optional<double> held = plan.figure(plan.phase == PlanPhase::Serve ? "batch" : "live_microbatches");
    rows.add({what, std::to_string(plan.devices), own.rate ? printFigure(own.rate->value, own.rate->unit) : "-",
              own.latency ? printFigure(own.latency->value, own.latency->unit) : "-",
              held ? formatCount(std::llround(*held)) : "-", format(plan.layout, plan.phase), why});
  };
  add("best", search.best, "");
  for (const ClusterPlan &plan : search.frontier)
    add("frontier", plan, "");
  for (const RunnerUp &runnerUp : search.runnersUp)
    add("runner-up", runnerUp.plan, runnerUp.loses);
  std::string out =
      "search: best " + std::string(nameOf(search.objective)) + " of " + formatCount(search.candidates) + " layouts" +
      (search.compiling > 0 ? "; k2c compile accepts " + formatCount(search.compiling) + " of them, which come first"
                            : std::string()) +
      "\n" + rows.text();
  for (const Refused &refused : search.refused)
    out += "  refused for " + refused.reason + ": " + formatCount(refused.count) + ", for example " + refused.example +
           "\n";
  return out + "\n";
}

} // namespace

std::string k2c::planTable(const PlanReport &report) {
  const ClusterPlan &plan = report.plan;
  std::string out = cleanText(plan.model) + " on " + cleanText(plan.topology) + ", " +
                    (plan.phase == PlanPhase::Serve ? "serving" : "training") + ", workload " + plan.workload +
                    "\nlayout " + format(plan.layout, plan.phase) + "; compute " + wordOf(plan.compute) + ", weights " +
                    plan.weightFormat + ", cache " + wordOf(plan.cache) + "\n\n";
  out += printHeadline(report) + printSummary(summarize(report)) + printFigures(report) + memoryText(plan) +
         printSteps(plan) + printTraffic(report);
  if (report.search)
    out += printSearch(*report.search, wordOf(report.topology.device.kind));
  for (const Band &band : bandsOf(report))
    out += band.name + ": " + band.text + "\n";
  for (const std::string &note : plan.notes)
    out += "note: " + note + "\n";
  return out + (plan.whyNotCompilable.empty()
                    ? "k2c compile accepts this plan\n"
                    : "k2c compile does not accept this plan: " + plan.whyNotCompilable + "\n");
}
