#include "run/CountersFile.h"
#include "run/JsonWriter.h"

namespace k2c::runtime {

namespace {

/// Those that a pair of ranks has.
void printTiers(JsonWriter &json, const Counters &counters, const RankFacts &ranks) {
  std::array<TierCounters, tierCount> sums;
  for (const auto &[key, site] : counters.sites())
    for (size_t tier = 0; tier < tierCount; ++tier)
      sums[tier].add(site.tiers[tier]);
  json.key("tiers").beginObject();
  const bool has[tierCount] = {ranks.count > ranks.nodes, ranks.nodes > 1};
  for (size_t tier = 0; tier < tierCount; ++tier) {
    if (!has[tier])
      continue;
    json.key(ranks.tiers[tier]).beginObject().key("payload_bytes").value(sums[tier].payloadBytes);
    json.key("messages").value(sums[tier].messages).key("control_bytes").value(sums[tier].controlBytes).endObject();
  }
  json.endObject();
}

void printSpread(JsonWriter &json, const char *name, const Spread &spread) {
  json.key(name).beginObject().key("mean").value(spread.mean()).key("max").value(spread.most).endObject();
}

/// As the manifest names it; of a site behind the program's as the exchange does.
std::string nameOfSite(const RankFacts &ranks, int64_t site, Op op) {
  const bool isOfProgram = site < static_cast<int64_t>(ranks.collectives.size());
  return isOfProgram ? ranks.collectives[static_cast<size_t>(site)].name : nameOf(op);
}

void printSites(JsonWriter &json, const Counters &counters, const RankFacts &ranks) {
  json.key("sites").beginList();
  for (const auto &[key, site] : counters.sites()) {
    json.beginObject().key("site").value(key.first);
    json.key("op").value(nameOfSite(ranks, key.first, site.op)).key("layer");
    if (key.second >= 0)
      json.value(key.second);
    else
      json.raw("null");
    json.key("group").value(nameOf(site.axis)).key("calls").value(site.calls);
    const TierCounters sent = site.total();
    json.key("payload_bytes").value(sent.payloadBytes).key("control_bytes").value(sent.controlBytes);
    json.key("seconds").value(site.seconds).key("waited_s").value(site.waitedSeconds);
    json.key("waited_for").beginObject();
    for (size_t rank = 0; rank < site.waitedFor.size(); ++rank)
      if (site.waitedFor[rank] > 0)
        json.key(std::to_string(rank)).value(site.waitedFor[rank]);
    json.endObject().endObject();
  }
  json.endList();
}

void printRanks(JsonWriter &json, const RouteTraffic &routes, const Manifest &manifest) {
  json.key("ranks").beginList();
  for (int32_t rank = 0; rank < manifest.ranks.count; ++rank) {
    json.beginObject().key("rank").value(rank).key("tokens").value(routes.tokens(rank));
    json.key("expert_rows").value(routes.expertRows(rank));
    json.key("dead_experts").value(routes.deadExperts(rank)).endObject();
  }
  json.endList().key("layers").beginObject();
  for (size_t layer = 0; layer < manifest.moeLayers.size(); ++layer) {
    json.key(std::to_string(manifest.moeLayers[layer])).beginObject();
    json.key("balancedness").value(routes.balancedness(layer)).endObject();
  }
  json.endObject();
}

} // namespace

void writeCounters(const RunCounters &counters, const Manifest &manifest, FILE *file) {
  const RouteTraffic &routes = *counters.routes;
  JsonWriter json(file);
  json.beginObject().key("format").value(1).key("steps").value(counters.steps);
  json.key("tokens").value(routes.bytesBetweenNodes().numbers);
  printTiers(json, counters.exchanged, manifest.ranks);
  printSpread(json, "nodes_per_token", routes.nodes());
  printSpread(json, "inter_node_bytes_per_token", routes.bytesBetweenNodes());
  json.key("rounds").beginObject().key("1").value(counters.steps - counters.halved);
  if (counters.halved > 0)
    json.key("2").value(counters.halved);
  json.endObject();
  json.key("prompt_rows").beginObject().key("steps").value(counters.prompts.steps).key("fullest_over_mean");
  json.beginObject().key("mean").value(counters.prompts.mean()).key("max").value(counters.prompts.most).endObject();
  json.endObject();
  printSites(json, counters.exchanged, manifest.ranks);
  printRanks(json, routes, manifest);
  json.endObject().endLine();
}

} // namespace k2c::runtime
