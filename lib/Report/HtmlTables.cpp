//===- HtmlTables.cpp - The numbers beside the drawings -------------------===//
//
// Each drawing of a report has its numbers beside it, for readers who copy them, who cannot see the drawing, or who
// check it. So a table is built from the same plan and the same helpers (phasesOf, pipelineRanks) as the drawing that
// it is of, and a number is in it twice: as printed for people, and exactly, for programs.
//
//   <td class="n" data-value="17179869184">16 GiB</td>
//
// All text passes escapeHtml in the Table class, as names of models and topologies come from files. No table is wider
// than a page: what many rows share is a row of its own above them, and each plan of a search has its figures as tiles.
// What does not apply is an empty cell, which is not the number zero.
//
//===----------------------------------------------------------------------===//

#include "Html.h"

#include <algorithm>
#include <nlohmann/json.hpp>

using namespace k2c;
using namespace k2c::report;

Table::Table(const std::string &caption, const std::vector<std::string> &heads) : heads(heads) {
  out = std::string("<table") + (heads.size() > 4 ? " class=\"many\"" : "") + ">\n<caption>" + escapeHtml(caption) +
        "</caption>\n<thead><tr>";
  for (const std::string &head : heads)
    out += "<th scope=\"col\">" + escapeHtml(head) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
}

Table &Table::group(const std::string &name) {
  row();
  out += "<th class=\"group\" scope=\"rowgroup\" colspan=\"" + std::to_string(heads.size()) + "\">" + escapeHtml(name) +
         "</th>";
  return *this;
}

Table &Table::row() {
  out += open ? "</tr>\n<tr>" : "<tr>";
  open = true;
  column = 0;
  return *this;
}

Table &Table::cell(const std::string &attributes, const std::string &printed) {
  const std::string head = column < heads.size() ? heads[column] : "";
  ++column;
  out += "<td" + (head.empty() ? "" : " data-head=\"" + escapeHtml(head) + "\"") + attributes + ">" +
         escapeHtml(printed) + "</td>";
  return *this;
}

Table &Table::text(const std::string &text) { return cell("", text); }

Table &Table::number(double value, const std::string &printed) {
  return cell(" class=\"n\" data-value=\"" + nlohmann::json(value).dump() + "\"", printed);
}

Table &Table::number(int64_t value, const std::string &printed) {
  return cell(" class=\"n\" data-value=\"" + std::to_string(value) + "\"", printed);
}

std::string Table::finish() { return out + (open ? "</tr>\n" : "") + "</tbody></table>\n"; }

std::string report::tiles(const std::vector<Figure> &figures) {
  std::string out = "<dl class=\"tiles\">\n";
  for (const Figure &figure : figures)
    out += "<div><dt>" + escapeHtml(figure.label) + "</dt><dd data-key=\"" + escapeHtml(figure.key) +
           "\" data-value=\"" + nlohmann::json(figure.value).dump() + "\">" +
           escapeHtml(printFigure(figure.value, figure.unit)) + "</dd></div>\n";
  return out + "</dl>\n";
}

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
  if (l.role != PoolRole::Both)
    word("phase", nameOf(l.role), "what this pool of devices does; the other one is not planned");
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
    add("vocab", l.vocab, "ranks that have parts of embedding and head");
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
  word("compute", wordOf(plan.compute), "");
  word("weights", plan.weightFormat, "");
  word("cache", wordOf(plan.cache), "");
  return table.finish();
}

std::string report::memoryTable(const ClusterPlan &plan) {
  Table table("Bytes of a rank", {"part", "bytes", "share"});
  auto bytes = [&](const std::string &name, Bytes size, Bytes of) {
    table.row().text(name).number(size.value, format(size));
    table.text(of.value > 0 ? printShare(double(size.value) / double(of.value)) : "");
  };
  for (const RankMemory &ranks : plan.memory) {
    table.group((ranks.count > 1 ? "each of ranks " : "rank ") + ranks.ranks);
    count(table.row().text("ranks that hold the same"), ranks.count).text("");
    count(table.row().text("pipeline stage"), ranks.stage).text("");
    count(table.row().text("parameters"), ranks.parameters).text("");
    for (const MemoryPart &part : ranks.parts)
      bytes(part.name, part.bytes, ranks.capacity);
    bytes("all", ranks.total(), ranks.capacity);
    bytes("memory of the device", ranks.capacity, Bytes(0));
    if (plan.host)
      bytes("in the host", ranks.host, Bytes(0));
  }
  if (plan.host) {
    table.group("a node's host");
    bytes("of its ranks", plan.host->bytes, plan.host->capacity);
    bytes("memory of the host", plan.host->capacity, Bytes(0));
  }
  return table.finish();
}

std::string report::stepTable(const ClusterPlan &plan) {
  Table table("Parts of a step on one device",
              {"#", "part", "time", "hidden", "share", "FLOP", "memory moved", "received", "FLOP/byte", "bound by"});
  size_t number = 0;
  for (const PhaseParts &phase : phasesOf(plan)) {
    table.group(phase.phase + ", " + format(Seconds(phase.seconds())));
    for (const StepPart *part : phase.parts) {
      table.row().text(std::to_string(++number)).text(part->name);
      table.number(part->seconds.value, format(part->seconds));
      table.number(part->hidden.value, part->hidden.value > 0 ? format(part->hidden) : "");
      table.text(printShare(phase.seconds() > 0 ? part->exposed().value / phase.seconds() : 0));
      table.number(part->flops.value, part->flops.value > 0 ? format(part->flops) : "");
      table.number(part->memoryBytes, part->memoryBytes > 0 ? printFigure(part->memoryBytes, "B") : "");
      table.number(part->linkBytes, part->linkBytes > 0 ? printFigure(part->linkBytes, "B") : "");
      table.text(part->memoryBytes > 0 && part->flops.value > 0 ? formatNumber(part->flops.value / part->memoryBytes, 4)
                                                                : "");
      table.text(nameOf(part->bound) + (part->tier.empty() ? "" : " (" + part->tier + ")"));
    }
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
  Table table("Received by one device in a step", {"phase", "tier", "link", "bytes", "bandwidth", "time"});
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

/// A plan of a search: its row in a table of few columns, its figures as tiles that unfold below.
static std::string addCandidate(Table &table, const std::string &what, const ClusterPlan &plan,
                                const std::string &why) {
  const Tradeoff tradeoff = tradeoffOf(plan);
  const std::string layout = format(plan.layout, plan.phase);
  auto print = [](const Figure *figure) { return figure ? printFigure(figure->value, figure->unit) : ""; };
  count(table.row().text(what).text(layout), plan.devices);
  table.text(print(tradeoff.rate)).text(print(tradeoff.latency));
  if (plan.memory.empty())
    table.text("");
  else
    table.number(plan.fullest().total().value, format(plan.fullest().total()));
  table.text(why);
  return "<details><summary>" + escapeHtml(what + ": " + layout) + "</summary>\n" + tiles(plan.figures) +
         "</details>\n";
}

std::string report::searchTables(const PlanSearch &search, const std::string &device) {
  const Tradeoff tradeoff = tradeoffOf(search.best);
  Table plans("Plans that were compared",
              {"plan", "layout", device + "s", tradeoff.rate ? tradeoff.rate->label : "rate",
               tradeoff.latency ? tradeoff.latency->label : "latency", "fullest rank", "loses to the best"});
  std::string figures = addCandidate(plans, "best " + std::string(nameOf(search.objective)), search.best, "");
  for (const ClusterPlan &plan : search.frontier)
    figures += addCandidate(plans, "frontier", plan, "");
  for (const RunnerUp &runnerUp : search.runnersUp)
    figures += addCandidate(plans, "runner-up", runnerUp.plan, runnerUp.loses);
  Table refused("Layouts", {"outcome", "layouts", "for example"});
  count(refused.row().text("evaluated"), search.candidates).text("");
  if (search.compiling > 0)
    count(refused.row().text("accepted by k2c compile"), search.compiling)
        .text(format(search.best.layout, search.best.phase));
  for (const Refused &reason : search.refused)
    count(refused.row().text("refused for " + reason.reason), reason.count).text(reason.example);
  return plans.finish() + refused.finish() + "<p class=\"lead\">Figures of each plan:</p>\n" + figures;
}
