//===- RefusedPlan.cpp - A refused plan on a terminal and as JSON -----------------===//

#include "Derived.h"
#include "k2c/Support/Join.h"

using namespace k2c;
using namespace k2c::report;
using nlohmann::ordered_json;

namespace {

/// "--topology 2x8-h100 --layout ep=16,dp=16", "--layout dp=8 in place of --search", "in the workload routing: mean"
std::string changesOf(const Remedy &remedy) {
  std::string text;
  for (const auto &[flag, value] : remedy.flags)
    text += (text.empty() ? "" : " ") + flag + " " + value;
  if (!remedy.inPlaceOf.empty())
    text += " in place of " + joined(remedy.inPlaceOf);
  auto entries = [&](const Remedy::Entries &list, const std::string &where, const std::string &what) {
    for (const auto &[key, value] : list)
      text += (text.empty() ? "" : ", ") + where + key + what + ": " + value;
  };
  entries(remedy.workload, "in the workload ", "");
  entries(remedy.tiers, "in the topology tier ", "'s count");
  return text;
}

/// What a remedy changes, and what it then takes of the fullest rank.
std::string remedyText(const Remedy &remedy) {
  const RankMemory &full = remedy.plan.fullest();
  const Tradeoff tradeoff = tradeoffOf(remedy.plan);
  return changesOf(remedy) + ": " + format(full.total()) + " of " + format(full.capacity) +
         (tradeoff.rate ? ", " + printFigure(tradeoff.rate->value, tradeoff.rate->unit) : "");
}

ordered_json entriesJson(const Remedy::Entries &entries) {
  ordered_json object = ordered_json::object();
  for (const auto &[key, value] : entries)
    object[key] = value;
  return object;
}

ordered_json remedyJson(const std::optional<Remedy> &remedy) {
  if (!remedy)
    return nullptr;
  const ClusterPlan &plan = remedy->plan;
  return {{"text", changesOf(*remedy)},
          {"flags", entriesJson(remedy->flags)},
          {"workload", entriesJson(remedy->workload)},
          {"tiers", entriesJson(remedy->tiers)},
          {"in_place_of", remedy->inPlaceOf},
          {"devices", plan.devices},
          {"topology", plan.topology},
          {"layout", format(plan.layout, plan.phase)},
          {"total_bytes", plan.fullest().total().value},
          {"room_bytes", plan.fullest().capacity.value}};
}

/// "each token within 1 ms: the best layout, ep=32, takes 9.6 ms"
std::string unmetText(const UnmetTarget &unmet) {
  return std::string(unmet.isFirst ? "the first token of 95 % of the requests within " : "each token within ") +
         format(unmet.asked) + ": the best layout, " + unmet.layout + ", takes " + format(unmet.best);
}

} // namespace

std::vector<std::string> report::refusedLines(const RefusedPlan &refused) {
  std::vector<std::string> lines;
  if (const MemoryPart *part = refused.tooLarge()) {
    const RankMemory &full = refused.plan->fullest();
    lines.push_back("too large: " + part->name + ", " + format(part->bytes) + " of " + format(full.total()) +
                    "; a device has " + format(full.capacity));
  }
  const std::string where = refused.plan ? " on " + cleanText(refused.plan->topology) : "";
  const Remedy::Entries flags = refused.fewest ? refused.fewest->flags : Remedy::Entries();
  const bool isOther = (refused.fewest && !refused.fewest->tiers.empty()) ||
                       (!flags.empty() && flags.front().first == "--topology"); // which comes first
  if (refused.remedy)
    lines.push_back("cheapest remedy: " + remedyText(*refused.remedy));
  else if (refused.unmet)
    lines.push_back("cannot be met" + where + ": " + unmetText(*refused.unmet));
  else if (isOther || (refused.plan && !refused.fewest)) // else the error says all, or these are of the topology
    lines.push_back("no remedy" + where);
  if (refused.fewest)
    lines.push_back("fewest devices: " + formatCount(refused.fewest->plan.devices) + ", " +
                    remedyText(*refused.fewest));
  else if (refused.soughtFewest && !refused.unmet)
    lines.push_back("fewest devices: none that are known, with any layout");
  return lines;
}

std::string k2c::refusedText(const RefusedPlan &refused) {
  std::string out;
  for (const std::string &line : refusedLines(refused))
    out += line + "\n";
  return out + (refused.plan && !refused.plan->fits() ? "\n" + memoryText(*refused.plan) : "");
}

ordered_json k2c::refusedJson(const RefusedPlan &refused) {
  ordered_json json = {
      {"message", refused.error.message}, {"where", refused.error.where}, {"advice", refused.error.remedy}};
  if (const MemoryPart *part = refused.tooLarge()) {
    const RankMemory &full = refused.plan->fullest();
    json.update({{"part", part->name},
                 {"bytes", part->bytes.value},
                 {"total_bytes", full.total().value},
                 {"room_bytes", full.capacity.value}});
  }
  json["remedy"] = remedyJson(refused.remedy);
  json["fewest"] = remedyJson(refused.fewest);
  if (const std::optional<UnmetTarget> &unmet = refused.unmet)
    json["unmet"] = {{"target", unmet->isFirst ? "first_token" : "per_token"},
                     {"asked_s", unmet->asked.value},
                     {"best_s", unmet->best.value},
                     {"layout", unmet->layout}};
  if (refused.plan)
    json["memory"] = memoryJson(*refused.plan);
  return {{"format", 1}, {"refused", std::move(json)}};
}
