//===- Html.cpp - A plan as one page --------------------------------------===//
//
// The page answers from top to bottom: does it fit, what bounds it, what would change that; then shows the numbers that
// the answers rest on. It is one file without scripts, so that it opens from a mail or a build's artefacts.
//
//===----------------------------------------------------------------------===//

#include "Html.h"
#include "Bands.h"
#include "EmbeddedStyle.h"

using namespace k2c;
using namespace k2c::report;

std::string report::legend(const std::vector<Key> &keys) {
  std::string out = "<ul class=\"legend\">";
  for (const Key &key : keys)
    out += "<li><svg class=\"key\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"" + key.classes +
           "\" width=\"12\" height=\"12\"/></svg>" + escapeHtml(key.text) + "</li>";
  return out + "</ul>\n";
}

namespace {

/// Empty where `body` is.
std::string section(const char *id, const std::string &title, const std::string &lead, const std::string &body) {
  if (body.empty())
    return "";
  return std::string("<section id=\"") + id + "\" aria-labelledby=\"" + id + "-title\">\n<h2 id=\"" + id + "-title\">" +
         escapeHtml(title) + "</h2>\n" + (lead.empty() ? "" : "<p class=\"lead\">" + escapeHtml(lead) + "</p>\n") +
         body + "</section>\n";
}

std::string folded(const std::string &summary, const std::string &body) {
  return body.empty() ? "" : "<details><summary>" + escapeHtml(summary) + "</summary>\n" + body + "</details>\n";
}

/// A drawing with its numbers folded below; nothing where nothing is drawn.
std::string drawing(const std::string &chart, const std::string &summary, const std::string &table) {
  return chart.empty() ? "" : chart + folded(summary, table);
}

std::string list(const std::vector<std::string> &items, const char *classes) {
  std::string out = std::string("<ul class=\"") + classes + "\">\n";
  for (const std::string &item : items)
    out += "<li>" + escapeHtml(item) + "</li>\n";
  return out + "</ul>\n";
}

/// The figures that people ask for first, large.
std::string headline(const PlanReport &report) {
  std::string out = "<dl class=\"headline\">\n";
  for (const Headline &figure : headlineOf(report))
    out += "<div><dt>" + escapeHtml(figure.label) + "</dt><dd" +
           (figure.exact ? " data-value=\"" + nlohmann::json(*figure.exact).dump() + "\"" : "") + ">" +
           escapeHtml(figure.value) + "</dd><dd class=\"beside\">" + escapeHtml(figure.beside) + "</dd></div>\n";
  out += "</dl>\n";
  for (const Band &band : bandsOf(report))
    out += "<p class=\"lead\">Published runs, " + escapeHtml(band.name + ": " + band.text) + ".</p>\n";
  return out;
}

/// What refuses the plan, in a few words and in full.
std::pair<std::string, std::string> verdictOf(const PlanReport &report, const PlanSummary &summary) {
  if (report.refused && summary.fits)
    return {"Refused", report.refused->error.text()};
  return {summary.fits ? "Fits" : "Does not fit",
          summary.fit.substr(std::min(summary.fit.size(), summary.fit.find(": ") + 2))};
}

std::string header(const PlanReport &report, const PlanSummary &summary) {
  const ClusterPlan &plan = report.plan;
  const std::string layout = format(plan.layout, plan.phase);
  std::string out = "<header>\n<h1>" + escapeHtml(plan.model) + " on " + escapeHtml(plan.topology) + "</h1>\n<p>" +
                    (plan.phase == PlanPhase::Serve ? "Serving" : "Training") + ", workload " +
                    escapeHtml(plan.workload) + ": <code>" + escapeHtml(layout) + "</code> on <span data-value=\"" +
                    std::to_string(plan.devices) + "\">" + formatCount(plan.devices) +
                    "</span> of <span data-value=\"" + std::to_string(plan.available) + "\">" +
                    formatCount(plan.available) + "</span> " + wordOf(report.topology.device.kind) + "s";
  if (report.search)
    out += std::string(", the best ") + nameOf(report.search->objective) + " of " +
           formatCount(report.search->candidates) + " layouts";
  const auto [word, sentence] = verdictOf(report, summary);
  out += ".</p>\n<p class=\"verdict " + std::string(summary.fits && !report.refused ? "good" : "bad") + "\">" + word +
         "<span>" + escapeHtml(sentence) + "</span></p>\n";
  if (!summary.fits)
    out += "<p class=\"lead\">Figures are those of devices that had the memory.</p>\n";
  return out + headline(report) + "</header>\n";
}

std::string answers(const PlanSummary &summary) {
  auto part = [](const char *title, const std::vector<std::string> &sentences) {
    return sentences.empty() ? ""
                             : std::string("<div><h3>") + title + "</h3>\n" + list(sentences, "plain") + "</div>\n";
  };
  return "<div class=\"two\">\n" + part("What bounds it", summary.bounds) +
         part("What would change it", summary.advice) + "</div>\n";
}

std::string notes(const ClusterPlan &plan) {
  std::string out =
      plan.whyNotCompilable.empty()
          ? "<p><code>k2c compile</code> accepts this plan.</p>\n"
          : "<p><code>k2c compile</code> does not accept this plan: " + escapeHtml(plan.whyNotCompilable) + ".</p>\n";
  return out + list(plan.notes, "notes");
}

} // namespace

std::string k2c::planHtml(const PlanReport &report) {
  const ClusterPlan &plan = report.plan;
  const PlanSummary summary = summarize(report);
  std::string out = "<!doctype html>\n<html lang=\"en\" data-format=\"1\" data-value=\"1\">\n<head>\n"
                    "<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                    "\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>k2c plan: " +
                    escapeHtml(plan.model) + " on " + escapeHtml(plan.topology) + "</title>\n<style>\n" +
                    embeddedStyle().front().text + "</style>\n</head>\n<body>\n<main>\n" + header(report, summary);
  if (report.refused)
    out += section("refused", "Why it is refused, and what would help", report.refused->error.text(),
                   list(refusedLines(*report.refused), "plain"));
  out += section("summary", "Summary", "",
                 answers(summary) + tiles(otherFigures(report)) + folded("Layout and precision", layoutTable(plan)) +
                     (report.counts ? folded("The model", countTable(*report.counts)) : ""));
  out += section("memory", "Memory of each rank",
                 plan.layout.prefill
                     ? "Ranks that hold the same share a bar, of each pool: those that compute prompts, and those that "
                       "generate tokens. The dashed line is what the device has."
                     : "Ranks that hold the same share a bar. The dashed line is what the device has.",
                 drawing(memoryChart(plan), "Bytes of every part", memoryTable(plan)));
  out += section("step", "What a step is bound by",
                 plan.phase == PlanPhase::Train && plan.layout.overlap
                     ? "Parts of each phase alone; the schedule runs transfers beside the work of another micro-batch."
                 : plan.layout.prefill
                     ? "Each phase from its first to its last part, on a device of its pool; between them the KV cache "
                       "of a request moves."
                     : "Each phase from its first to its last part.",
                 drawing(stepChart(plan), "Time, FLOP and bytes of every part", stepTable(plan)));
  out +=
      section("roofline", "Roofline",
              "A part on the slope is bound by memory, one on a flat line by arithmetic; the distance to them is what "
              "the planner takes off for real kernels.",
              rooflineChart(report));
  out += section("timeline", "Pipeline", "", drawing(timelineChart(plan), "Busy and idle time", pipelineTable(plan)));
  out += section("traffic", "Link traffic",
                 "What one device receives over each tier in a step, and how long its link is busy with it.",
                 drawing(trafficChart(plan), "Bytes and bandwidth", trafficTable(plan)));
  if (report.search)
    out += section(
        "frontier", "What else was possible",
        "To the left is faster for one user, above is more for all; the number is the devices used.",
        scatterChart(*report.search) +
            folded("Every plan with its figures", searchTables(*report.search, wordOf(report.topology.device.kind))));
  out += section("notes", "Notes", "", notes(plan));
  return out + "</main>\n</body>\n</html>\n";
}
