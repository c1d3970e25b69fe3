// The layout decides what the rest must say: "ep=R,dp=R" is R ranks that divide experts and sequences, and nothing
// else. Each rank is listed with what it has, each site with what may arrive there. Programs whose steps may go in two
// halves say of how many rows one is, as the program has buffers for no more: together they must hold the largest step
// that the limits allow.
#include "program/RankFacts.h"
#include "base/File.h"
#include "base/Utf8.h"
#include "k2rt/program.h"
#include <algorithm>
#include <charconv>
#include <map>

namespace k2c::runtime {

namespace {

constexpr int64_t maxRanks = 4096;
constexpr int64_t maxSlots = int64_t(1) << 24;
constexpr int64_t maxRows = int64_t(1) << 24;
constexpr int64_t maxRowBytes = int64_t(1) << 26; // with the rows of all ranks below 2^62
constexpr int64_t maxBytes = int64_t(1) << 50;
constexpr size_t maxSites = 1 << 17;

/// "ep=2,dp=2" as numbers by key; what is not of that form is refused.
std::map<std::string, int64_t> readLayout(const JsonFields &root, const std::string &text) {
  std::map<std::string, int64_t> axes;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size()), equals = text.find('=', begin);
    int64_t value = -1;
    const char *const last = text.data() + end;
    const bool isWhole = equals < end && std::from_chars(text.data() + equals + 1, last, value).ptr == last;
    if (!isWhole || value < 0)
      root.fail("layout", "is \"" + shortened(text) + "\", must be a list such as ep=2,dp=2");
    axes[text.substr(begin, equals - begin)] = value;
    begin = end + 1;
  }
  return axes;
}

void checkLayout(const JsonFields &root, const RankFacts &facts) {
  const std::map<std::string, int64_t> axes = readLayout(root, facts.layout);
  const auto expect = [&](const char *axis, int64_t wanted) {
    const auto found = axes.find(axis);
    const int64_t value = found == axes.end() ? 1 : found->second;
    if (value != wanted)
      root.fail("layout", std::string("has ") + axis + "=" + std::to_string(value) + ", this runtime runs " + axis +
                              "=" + std::to_string(wanted) + " on " + std::to_string(facts.count) + " ranks");
  };
  for (const char *axis : {"ep", "dp"})
    expect(axis, facts.count);
  for (const char *axis : {"tp", "etp", "pp", "replicas"})
    expect(axis, 1);
}

void readPlacement(const JsonFields &root, int64_t experts, RankFacts &facts) {
  const JsonFields placement = root.object("placement");
  facts.placement.file = placement.string("file");
  facts.placement.hash = placement.string("hash", "");
  if (!isInsidePath(facts.placement.file))
    placement.fail("file", "is not a path inside the bundle");
  facts.placement.experts = placement.integer("experts", 1, maxSlots);
  facts.placement.slots = placement.integer("slots", 1, maxSlots);
  if (facts.placement.experts != experts)
    placement.fail("experts",
                   "is " + std::to_string(facts.placement.experts) + ", the model has " + std::to_string(experts));
  if (facts.placement.slots % facts.count != 0 || facts.placement.slots < experts)
    placement.fail("slots", "is " + std::to_string(facts.placement.slots) + ", must be a multiple of the " +
                                std::to_string(facts.count) + " ranks and hold " + std::to_string(experts) +
                                " experts");
}

/// The group of a site.
CollectiveFacts groupOf(const JsonFields &site, const RankFacts &facts) {
  const std::string group = site.string("group");
  for (const CollectiveFacts &known : {CollectiveFacts{"ep", K2RT_AXIS_EP, facts.count},
                                       CollectiveFacts{"node", K2RT_AXIS_NODE, facts.count / facts.nodes},
                                       CollectiveFacts{"rail", K2RT_AXIS_RAIL, facts.nodes}})
    if (group == known.group)
      return known;
  site.fail("group", "is \"" + shortened(group) + "\", this runtime knows ep, node and rail");
}

void readCollectives(const JsonFields &root, RankFacts &facts) {
  for (const JsonFields &entry : root.objects("collectives", maxSites)) {
    const auto site = static_cast<int64_t>(facts.collectives.size());
    entry.integer("site", site, site);
    if (const std::string op = entry.string("op"); op != "all_to_all_rows")
      entry.fail("op", "is \"" + shortened(op) + "\", this runtime knows all_to_all_rows");
    CollectiveFacts collective = groupOf(entry, facts);
    collective.quotaRows = entry.integer("quota_rows", 0, maxRows);
    collective.rowBytes = entry.integer("row_bytes", 1, maxRowBytes);
    facts.collectives.push_back(std::move(collective));
  }
  facts.collectivesJson = root.raw("collectives");
}

void readEach(const JsonFields &root, int64_t layers, RankFacts &facts) {
  for (const JsonFields &entry : root.objects("ranks", maxRanks)) {
    const auto rank = static_cast<int64_t>(facts.each.size());
    entry.integer("rank", rank, rank);
    OneRankFacts one;
    const int64_t node = rank / (facts.count / facts.nodes); // each node has the next ranks
    one.node = entry.integer("node", node, node);
    one.stage = entry.integer("stage", 0, 0, 0);
    const std::vector<int64_t> range = entry.integers("layers", 0, layers, 2);
    if (range.size() != 2 || range[0] != 0 || range[1] != layers)
      entry.fail("layers", "must be [0, " + std::to_string(layers) + "]: every rank has all layers");
    one.endLayer = layers;
    const int64_t slots = facts.placement.slots / facts.count;
    one.slots = entry.integer("slots", slots, slots);
    one.weights = entry.integer("weights", 0, maxBytes);
    facts.each.push_back(one);
  }
  if (static_cast<int64_t>(facts.each.size()) != facts.count)
    root.fail("ranks", "has " + std::to_string(facts.each.size()) + " entries, topology.ranks is " +
                           std::to_string(facts.count));
}

/// Together the halves have room for the largest step.
void readHalves(const JsonFields &root, RankFacts &facts) {
  if (!root.has("halves"))
    return;
  const JsonFields halves = root.object("halves");
  const int64_t most = root.object("limits").integer("step_tokens", 1, maxRows);
  facts.halves.rows = halves.integer("rows", (most + 1) / 2, most);
  facts.halves.from = halves.integer("from", 1, facts.halves.rows + 1);
}

} // namespace

RankFacts readRankFacts(const JsonFields &root, int64_t layers, int64_t experts) {
  RankFacts facts;
  const JsonFields topology = root.object("topology");
  facts.count = topology.integer("ranks", 1, maxRanks);
  facts.nodes = topology.integer("nodes", 1, facts.count, 1);
  if (facts.count % facts.nodes != 0)
    topology.fail("nodes", "is " + std::to_string(facts.nodes) + ", must divide the " + std::to_string(facts.count) +
                               " ranks: each node has as many");
  if (topology.has("tiers")) {
    const std::vector<std::string> tiers = topology.strings("tiers", facts.tiers.size());
    if (tiers.size() != facts.tiers.size() || tiers[0] == tiers[1])
      topology.fail("tiers", "must be two names: of links within a node, and between nodes");
    std::copy(tiers.begin(), tiers.end(), facts.tiers.begin());
  }
  facts.layout = root.string("layout", "dp=1");
  if (facts.areSeveral() || root.has("layout"))
    checkLayout(root, facts);
  if (facts.areSeveral()) {
    readPlacement(root, experts, facts);
    readCollectives(root, facts);
    readEach(root, layers, facts);
    readHalves(root, facts);
  } else if (root.has("collectives") && !root.objects("collectives", maxSites).empty()) {
    root.fail("collectives", "are of several ranks, topology.ranks is 1");
  }
  return facts;
}

} // namespace k2c::runtime
