//===- WritePlan.cpp - Where a plan goes --------------------------------------===//
#include "WritePlan.h"
#include "base/JsonText.h"
#include "k2c/Support/WriteFile.h"

#include <iostream>

using namespace k2c;
using nlohmann::ordered_json;

void k2c::declareOutput(CLI::App &command, OutputFlags &flags) {
  command.add_flag("--json", flags.json, "print JSON (docs/PlanOutput.md) instead of tables");
  command.add_option("--html", flags.html, "write one self-contained page; - prints it")->type_name("FILE");
  command.add_option("--trace", flags.trace, "write the predicted step for Perfetto; - prints it")->type_name("FILE");
}

Status k2c::checkOutput(const OutputFlags &flags) {
  if (flags.json + (flags.html == "-") + (flags.trace == "-") > 1)
    return Error{flags.html == "-" ? "--html -" : "--trace -",
                 flags.json ? "standard output has the JSON of --json already"
                            : "standard output has --trace - already",
                 "name a file"};
  return Status::success();
}

static Status write(const char *flag, const std::string &path, const std::string &text) {
  if (path == "-") {
    std::cout << text;
    return Status::success();
  }
  Status status = writeFile(path, text, "name a file in an existing folder");
  if (status)
    return status;
  Error error = status.takeError();
  error.where = std::string(flag) + " " + error.where;
  return error;
}

std::string k2c::countsText(const ordered_json &counts) {
  std::string text;
  for (const auto &[key, count] : counts.items()) {
    const std::string value = count["value"].is_string() ? count["value"].get<std::string>()
                              : count["unit"] == "B"     ? format(Bytes(count["value"].get<int64_t>()))
                                                         : formatCount(count["value"].get<int64_t>());
    const std::string label = count["label"];
    text += label + std::string(34 - std::min<size_t>(33, label.size()), ' ') + value + "\n";
  }
  return text;
}

Status k2c::writeFiles(const PlanReport &report, const OutputFlags &flags) {
  if (!flags.html.empty())
    if (Status status = write("--html", flags.html, planHtml(report)); !status)
      return status;
  if (!flags.trace.empty())
    if (Status status = write("--trace", flags.trace, planTrace(report)); !status)
      return status;
  return Status::success();
}

Status k2c::writeRefused(const RefusedPlan &refused, const Topology &topology, const OutputFlags &flags) {
  if (refused.plan)
    if (Status status = writeFiles({*refused.plan, topology, nullptr, nullptr, &refused}, flags); !status)
      return status;
  for (const auto &[flag, path] : {std::pair{"--html ", flags.html}, std::pair{"--trace ", flags.trace}})
    if (!refused.plan && !path.empty())
      std::cerr << "k2c: " << flag << path << ": is not written, there is no plan to draw: " << refused.error.where
                << ": " << refused.error.message << "\n";
  if (flags.html == "-" && refused.plan) // the page says it
    return Status::success();
  std::ostream &out = flags.html == "-" || flags.trace == "-" ? std::cerr : std::cout;
  out << (flags.json ? jsonText(refusedJson(refused)) + "\n" : refusedText(refused));
  return Status::success();
}

Status k2c::writePlan(const PlanReport &report, const OutputFlags &flags) {
  if (Status status = writeFiles(report, flags); !status)
    return status;
  if (flags.html == "-" || flags.trace == "-")
    return Status::success();
  if (flags.json)
    std::cout << jsonText(planJson(report)) << "\n";
  else
    std::cout << (report.counts ? countsText(*report.counts) + "\n" : "") << planTable(report);
  return Status::success();
}
