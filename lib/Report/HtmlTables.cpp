//===- HtmlTables.cpp - The numbers beside the drawings -------------------===//
//
// Each drawing of a report has its numbers beside it, for readers who copy them, who cannot see the drawing, or who
// check it. So a table is built from the same plan and the same helpers (phasesOf, pipelineRanks) as the drawing that
// it is of, and a number is in it twice: as printed for people, and exactly, for programs.
//
//   <td class="n" data-value="17179869184">16 GiB</td>
//
// All text passes escapeHtml in the Table class, as names of models and topologies come from files. Columns of the
// search's table are the figures that any of the plans has, those of the best one first; a plan without a figure has
// an empty cell, which is not the number zero.
//
//===----------------------------------------------------------------------===//

#include "Html.h"

#include <algorithm>
#include <nlohmann/json.hpp>

using namespace k2c;
using namespace k2c::report;

Table::Table(const std::string &caption, const std::vector<std::string> &heads) {
  out = "<div class=\"scroll\" tabindex=\"0\"><table>\n<caption>" + escapeHtml(caption) + "</caption>\n<thead><tr>";
  for (const std::string &head : heads)
    out += "<th scope=\"col\">" + escapeHtml(head) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
}

Table &Table::row() {
  out += open ? "</tr>\n<tr>" : "<tr>";
  open = true;
  return *this;
}

Table &Table::text(const std::string &text) {
  out += "<td>" + escapeHtml(text) + "</td>";
  return *this;
}

Table &Table::cell(const std::string &value, const std::string &printed) {
  out += "<td class=\"n\" data-value=\"" + value + "\">" + escapeHtml(printed) + "</td>";
  return *this;
}

Table &Table::number(double value, const std::string &printed) { return cell(nlohmann::json(value).dump(), printed); }
Table &Table::number(int64_t value, const std::string &printed) { return cell(std::to_string(value), printed); }

std::string Table::finish() { return out + (open ? "</tr>\n" : "") + "</tbody></table></div>\n"; }

static Table &count(Table &table, int64_t value) { return table.number(value, formatCount(value)); }

std::string report::countTable(const nlohmann::ordered_json &counts) {
  Table table("The model", {"", ""});
  for (const auto &[key, entry] : counts.items()) {
    table.row().text(entry["label"].get<std::string>());
    if (entry["value"].is_string())
      table.text(entry["value"].get<std::string>());
    else if (entry["unit"] == "B")
      table.number(entry["value"].get<int64_t>(), format(Bytes(entry["value"].get<int64_t>())));
    else
      count(table, entry["value"].get<int64_t>());
  }
  return table.finish();
}

/// Rows of one layout's keys, each after `prefix`.
static void addKeys(Table &table, const ParallelLayout &l, PlanPhase phase, const std::string &prefix) {
  auto add = [&](const char *key, int64_t value, const char *meaning) {
    count(table.row().text(prefix + key), value).text(meaning);
  };
  auto word = [&](const char *key, const std::string &value, const char *meaning) {
    table.row().text(prefix + key).text(value).text(meaning);
  };
  add("tp", l.tp, "tensor parallel ranks");
  add("ep", l.ep, "ranks that share a layer's experts");
  add("etp", l.etp, "ranks that share an expert");
  add("pp", l.pp, "pipeline stages");
  add("dp", l.dp, "data-parallel ranks");
  add("cp", l.cp, "context-parallel ranks");
  word("sp", l.sp ? "yes" : "no", "sequence parallelism over the tp ranks");
  word("overlap", l.overlap ? "yes" : "no", "transfers beside work");
  if (phase == PlanPhase::Serve) {
    add("replicas", l.replicas, "copies of the whole model");
    add("step", l.stepTokens, "most new tokens of a data-parallel rank in a step");
    add("redundant", l.redundantExperts, "expert slots of a layer beyond its experts");
  } else {
    word("schedule", nameOf(l.schedule), "of the pipeline");
    add("chunks", l.chunks, "model chunks of a rank");
    add("microbatches", l.microbatches, "of a step, for each data-parallel rank");
    add("microbatch", l.microbatchSize, "sequences of a micro-batch");
    word("recompute", nameOf(l.recompute), "activations computed again in the backward pass");
    word("zero", nameOf(l.zero), "states divided among data-parallel ranks");
  }
}

std::string report::layoutTable(const ClusterPlan &plan) {
  Table table("Layout and precision", {"", "", ""});
  addKeys(table, plan.layout, plan.phase, "");
  if (plan.layout.prefill)
    addKeys(table, *plan.layout.prefill, plan.phase, "prefill.");
  auto word = [&](const char *key, const std::string &value, const char *meaning) {
    table.row().text(key).text(value).text(meaning);
  };
  word("compute", std::string(name(plan.compute)), "");
  word("weights", plan.weightFormat, "");
  word("cache", std::string(name(plan.cache)), "");
  return table.finish();
}

std::string report::memoryTable(const ClusterPlan &plan) {
  Table table("Bytes of a rank", {"ranks", "equal ranks", "stage", "parameters", "part", "bytes", "share"});
  for (const RankMemory &ranks : plan.memory) {
    const double capacity = double(std::max<int64_t>(1, ranks.capacity.value));
    table.row().text(ranks.ranks);
    count(table, ranks.count);
    count(table, ranks.stage);
    count(table, ranks.parameters);
    table.text("all").number(ranks.total().value, format(ranks.total()));
    table.text(printShare(double(ranks.total().value) / capacity));
    for (const MemoryPart &part : ranks.parts)
      table.row()
          .text("")
          .text("")
          .text("")
          .text("")
          .text(part.name)
          .number(part.bytes.value, format(part.bytes))
          .text(printShare(double(part.bytes.value) / capacity));
    table.row().text("").text("").text("").text("").text("memory of the device");
    table.number(ranks.capacity.value, format(ranks.capacity)).text("");
    if (plan.host) {
      table.row().text("").text("").text("").text("").text("in the host");
      table.number(ranks.host.value, format(ranks.host)).text("");
    }
  }
  if (plan.host) {
    const HostMemory &host = *plan.host;
    table.row().text("a node's host").text("").text("").text("").text("of its ranks");
    table.number(host.bytes.value, format(host.bytes));
    table.text(printShare(double(host.bytes.value) / double(std::max<int64_t>(1, host.capacity.value))));
    table.row().text("").text("").text("").text("").text("memory of the host");
    table.number(host.capacity.value, format(host.capacity)).text("");
  }
  return table.finish();
}

std::string report::stepTable(const ClusterPlan &plan) {
  Table table("Parts of a step on one device", {"#", "phase", "part", "time", "of it hidden", "share", "work",
                                                "memory moved", "received", "FLOP/byte", "waits for", "tier"});
  size_t number = 0;
  for (const PhaseParts &phase : phasesOf(plan))
    for (const StepPart *part : phase.parts) {
      table.row().text(std::to_string(++number)).text(part->phase).text(part->name);
      table.number(part->seconds.value, format(part->seconds)).number(part->hidden.value, format(part->hidden));
      table.text(printShare(phase.seconds() > 0 ? part->exposed().value / phase.seconds() : 0));
      table.number(part->flops.value, format(part->flops));
      table.number(part->memoryBytes, printFigure(part->memoryBytes, "B"));
      table.number(part->linkBytes, printFigure(part->linkBytes, "B"));
      table.text(part->memoryBytes > 0 && part->flops.value > 0
                     ? printFigure(part->flops.value / part->memoryBytes, "FLOP/B")
                     : "");
      table.text(nameOf(part->bound)).text(part->tier);
    }
  return table.finish();
}

std::string report::pipelineTable(const ClusterPlan &plan) {
  if (plan.timeline.empty())
    return "";
  Table table("Busy and idle time of a step", {"rank", "busy", "idle"});
  for (const PipelineRank &rank : pipelineRanks(plan)) {
    count(table.row(), rank.rank);
    table.number(rank.busy, format(Seconds(rank.busy))).number(rank.idle, format(Seconds(rank.idle)));
  }
  table.row().text("tasks, and seconds of all");
  count(table, int64_t(plan.timeline.size()));
  table.number(pipelineSeconds(plan), format(Seconds(pipelineSeconds(plan))));
  return table.finish();
}

std::string report::trafficTable(const ClusterPlan &plan) {
  Table table("Received by one device in a step", {"phase", "tier", "link", "bytes", "bandwidth of a device", "time"});
  for (const TierTraffic &tier : plan.traffic)
    table.row()
        .text(tier.phase)
        .text(tier.tier)
        .text(tier.link)
        .number(tier.bytes, printFigure(tier.bytes, "B"))
        .number(tier.available.value, format(tier.available))
        .number(tier.seconds.value, format(tier.seconds));
  return table.finish();
}

/// The figures that any of the plans has, those of the best one first.
static std::vector<Figure> columnsOf(const PlanSearch &search) {
  std::vector<Figure> columns = search.best.figures;
  auto add = [&](const ClusterPlan &plan) {
    for (const Figure &figure : plan.figures)
      if (std::none_of(columns.begin(), columns.end(), [&](const Figure &known) { return known.key == figure.key; }))
        columns.push_back(figure);
  };
  for (const ClusterPlan &plan : search.frontier)
    add(plan);
  for (const RunnerUp &runnerUp : search.runnersUp)
    add(runnerUp.plan);
  return columns;
}

static void addCandidate(Table &table, const std::string &what, const ClusterPlan &plan,
                         const std::vector<Figure> &columns, const std::string &why) {
  count(table.row().text(what).text(format(plan.layout, plan.phase)), plan.devices);
  if (plan.memory.empty())
    table.text("");
  else
    table.number(plan.fullest().total().value, format(plan.fullest().total()));
  table.text(why);
  for (const Figure &column : columns)
    if (std::optional<double> value = plan.figure(column.key))
      table.number(*value, printFigure(*value, column.unit));
    else
      table.text("");
}

std::string report::searchTables(const PlanSearch &search) {
  std::vector<std::string> heads = {"plan", "layout", "devices", "fullest rank", "loses to the best"};
  const std::vector<Figure> columns = columnsOf(search);
  for (const Figure &figure : columns)
    heads.push_back(figure.label);
  Table plans("Plans that were compared", heads);
  addCandidate(plans, "best " + std::string(nameOf(search.objective)), search.best, columns, "");
  for (const ClusterPlan &plan : search.frontier)
    addCandidate(plans, "frontier", plan, columns, "");
  for (const RunnerUp &runnerUp : search.runnersUp)
    addCandidate(plans, "runner-up", runnerUp.plan, columns, runnerUp.loses);
  Table refused("Layouts", {"outcome", "layouts", "for example"});
  count(refused.row().text("evaluated"), search.candidates).text("");
  for (const Refused &reason : search.refused)
    count(refused.row().text("refused for " + reason.reason), reason.count).text(reason.example);
  return plans.finish() + refused.finish();
}
