//===- RefusedPlan.cpp - A refused plan on a terminal and as JSON -----------------===//

#include "Derived.h"

using namespace k2c;
using namespace k2c::report;
using nlohmann::ordered_json;

namespace {

/// "--topology 2x8-h100 --layout ep=16,dp=16", "in the workload routing: mean"
std::string changesOf(const Remedy &remedy) {
  std::string text;
  for (const auto &[flag, value] : remedy.flags)
    text += (text.empty() ? "" : " ") + flag + " " + value;
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
          {"devices", plan.devices},
          {"topology", plan.topology},
          {"layout", format(plan.layout, plan.phase)},
          {"total_bytes", plan.fullest().total().value},
          {"room_bytes", plan.fullest().capacity.value}};
}

} // namespace

std::string k2c::refusedText(const RefusedPlan &refused) {
  std::string out;
  if (const MemoryPart *part = refused.tooLarge()) {
    const RankMemory &full = refused.plan->fullest();
    out += "too large: " + part->name + ", " + format(part->bytes) + " of " + format(full.total()) + "; a device has " +
           format(full.capacity) + "\n";
  }
  const std::string where = refused.plan ? " on " + cleanText(refused.plan->topology) : "";
  out += refused.remedy ? "cheapest remedy: " + remedyText(*refused.remedy) + "\n" : "no remedy" + where + "\n";
  if (refused.fewest)
    out += "fewest devices: " + formatCount(refused.fewest->plan.devices) + ", " + remedyText(*refused.fewest) + "\n";
  return out + (refused.plan ? "\n" + memoryText(*refused.plan) : "");
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
  if (refused.plan)
    json["memory"] = memoryJson(*refused.plan);
  return {{"format", 1}, {"refused", std::move(json)}};
}
