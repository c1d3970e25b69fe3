// The layout decides what the rest must say: "ep=R,dp=R,pp=S,replicas=N" is N copies of S stages of R ranks that divide
// experts and sequences, "tp=T,ep=R,dp=D" of T D = R ranks in groups of T, "etp=P,ep=Q" of P Q = R ranks of which P
// have parts of the same experts, each with "vocab=R", and nothing else. Each rank is listed with what it has, each
// site with what may arrive there. Programs whose steps may go in two halves say of how many rows one is, as the
// program has buffers for no more: together they must hold the largest step that the limits allow.
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
std::map<std::string, int64_t> readAxes(const JsonFields &root, const std::string &text) {
  std::map<std::string, int64_t> axes;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size()), equals = text.find('=', begin);
    const std::string axis = text.substr(begin, std::min(equals, end) - begin);
    int64_t value = -1;
    const char *const last = text.data() + end;
    const bool isWhole = equals < end && std::from_chars(text.data() + equals + 1, last, value).ptr == last;
    if ((!isWhole || value < 0) && axis != "layers") // which "stages" has
      root.fail("layout", "is \"" + shortened(text) + "\", must be a list such as ep=2,dp=2");
    if (!axes.emplace(axis, value).second)
      root.fail("layout", "is \"" + shortened(text) + "\", which has " + shortened(axis) + " twice");
    begin = end + 1;
  }
  return axes;
}

/// Of stages that are known.
void readLayout(const JsonFields &root, int64_t experts, RankFacts &facts) {
  const std::map<std::string, int64_t> axes = readAxes(root, facts.layout);
  if (const auto found = axes.find("replicas"); found != axes.end())
    facts.replicas = found->second;
  const int64_t parts = facts.stageCount() * std::clamp<int64_t>(facts.replicas, 1, maxRanks);
  const int64_t ofNode = facts.count / facts.nodes, ofStage = std::max<int64_t>(facts.count / parts, 1);
  if (facts.replicas < 1 || facts.replicas > maxRanks || facts.count % parts != 0 ||
      (ofStage % ofNode != 0 && ofNode % ofStage != 0))
    root.fail("layout", "has replicas=" + std::to_string(facts.replicas) + ", which with " +
                            std::to_string(facts.stageCount()) + " stages must divide the " +
                            std::to_string(facts.count) + " ranks and fill nodes, or divide these");
  const auto expect = [&](const char *axis, int64_t wanted) {
    const auto found = axes.find(axis);
    const int64_t value = found == axes.end() ? 1 : found->second;
    if (value != wanted)
      root.fail("layout", std::string("has ") + axis + "=" + std::to_string(value) + ", this runtime runs " + axis +
                              "=" + std::to_string(wanted) + " on " + std::to_string(facts.count) + " ranks");
  };
  if (const auto found = axes.find("tp"); found != axes.end())
    facts.tp = found->second;
  if (facts.tp < 1 || facts.tp > ofStage || ofStage % facts.tp != 0 || ofNode % facts.tp != 0)
    root.fail("layout", "has tp=" + std::to_string(facts.tp) + ", which must divide the " + std::to_string(ofStage) +
                            " ranks of a stage and the " + std::to_string(ofNode) + " of a node");
  if (const auto found = axes.find("vocab"); found != axes.end())
    facts.vocab = found->second;
  if (facts.vocab != 1 && facts.vocab != ofStage)
    root.fail("layout", "has vocab=" + std::to_string(facts.vocab) + ", which must be 1 or the " +
                            std::to_string(ofStage) + " ranks of a stage");
  if (const auto found = axes.find("etp"); found != axes.end())
    facts.etp = found->second;
  const int64_t most = experts > 0 ? std::min(ofStage, ofNode) : 1; // next to each other on one node
  if (facts.etp < 1 || facts.etp > most || most % facts.etp != 0)
    root.fail("layout", "has etp=" + std::to_string(facts.etp) + ", which must divide " + std::to_string(most) +
                            (experts > 0 ? ", the ranks of a stage on a node" : ", as there are no experts"));
  facts.divideExperts = experts > 0 && ofStage > 1;
  expect("ep", facts.divideExperts ? ofStage / facts.etp : 1);
  expect("dp", ofStage / facts.tp);
  expect("pp", facts.stageCount());
  expect("cp", 1);
}

/// [first, end) with 0 <= first < end <= `most`; `begin`: what the first must be.
std::array<int64_t, 2> readRange(const JsonFields &entry, const char *key, int64_t begin, int64_t most) {
  const std::vector<int64_t> range = entry.integers(key, 0, most, 2);
  if (range.size() != 2 || range[0] != begin || range[1] <= range[0])
    entry.fail(key, "must be [" + std::to_string(begin) + ", end] with an end of at most " + std::to_string(most));
  return {range[0], range[1]};
}

/// Stages have the layers one after another.
void readStages(const JsonFields &root, int64_t layers, RankFacts &facts) {
  if (!root.has("stages"))
    return;
  int64_t begin = 0;
  for (const JsonFields &entry : root.objects("stages", maxRanks)) {
    const std::array<int64_t, 2> range = readRange(entry, "layers", begin, layers);
    StageFacts stage{range[0], range[1], {}};
    begin = stage.endLayer;
    for (const JsonFields &plane : entry.objects("cache", 256))
      stage.cache.push_back({plane.integer("first", 0, layers), plane.integer("end", 0, layers)});
    facts.stages.push_back(std::move(stage));
  }
  const auto count = static_cast<int64_t>(facts.stages.size());
  if (count < 2 || begin != layers)
    root.fail("stages", "are " + std::to_string(count) + " up to layer " + std::to_string(begin) +
                            ", must be two or more with all " + std::to_string(layers) + " layers");
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
  if (facts.placement.slots % facts.expertRanks() != 0 || facts.placement.slots < experts)
    placement.fail("slots", "is " + std::to_string(facts.placement.slots) + ", must be a multiple of the " +
                                std::to_string(facts.expertRanks()) + " ranks and hold " + std::to_string(experts) +
                                " experts");
}

/// The group of a site.
CollectiveFacts groupOf(const JsonFields &site, const RankFacts &facts) {
  const std::string group = site.string("group"), op = site.string("op");
  const int64_t ofStage = facts.stageRanks(), experts = facts.expertRanks(), nodes = facts.stageNodes();
  const std::vector<CollectiveFacts> all = {
      {K2RT_ALL_TO_ALL_ROWS, "ep", K2RT_AXIS_EP, experts, 0, 0, "all_to_all_rows"},
      {K2RT_ALL_TO_ALL_ROWS, "etp", K2RT_AXIS_ETP, facts.etp, 0, 0, "all_to_all_rows"},
      {K2RT_ALL_TO_ALL_ROWS, "node", K2RT_AXIS_NODE, experts / nodes, 0, 0, "all_to_all_rows"},
      {K2RT_ALL_TO_ALL_ROWS, "rail", K2RT_AXIS_RAIL, nodes, 0, 0, "all_to_all_rows"},
      {K2RT_ALL_TO_ALL_ROWS, "stage", K2RT_AXIS_STAGE, ofStage, 0, 0, "all_to_all_rows"},
      {K2RT_GATHER_SLICES, "tp", K2RT_AXIS_TP, facts.tp, 0, 0, "gather_slices"},
      {K2RT_SCATTER_SLICES, "tp", K2RT_AXIS_TP, facts.tp, 0, 0, "scatter_slices"},
      {K2RT_SEND, "pp", K2RT_AXIS_PP, facts.stageCount(), 0, 0, "send"},
      {K2RT_RECEIVE, "pp", K2RT_AXIS_PP, facts.stageCount(), 0, 0, "receive"},
  };
  std::string groups;
  for (const CollectiveFacts &each : all) {
    if (each.name == op && each.group == group)
      return each;
    if (each.name == op)
      groups += (groups.empty() ? "" : ", ") + each.group;
  }
  if (groups.empty())
    site.fail("op", "is \"" + shortened(op) +
                        "\", this runtime knows all_to_all_rows, gather_slices, scatter_slices, send and receive");
  site.fail("group", "is \"" + shortened(group) + "\", of " + op + " this runtime knows " + groups);
}

void readCollectives(const JsonFields &root, RankFacts &facts) {
  for (const JsonFields &entry : root.objects("collectives", maxSites)) {
    const auto site = static_cast<int64_t>(facts.collectives.size());
    entry.integer("site", site, site);
    CollectiveFacts collective = groupOf(entry, facts);
    collective.quotaRows = entry.integer("quota_rows", 0, maxRows);
    collective.rowBytes = entry.integer("row_bytes", 1, maxRowBytes);
    facts.collectives.push_back(std::move(collective));
  }
  facts.collectivesJson = root.raw("collectives");
}

void readEach(const JsonFields &root, int64_t layers, int64_t experts, RankFacts &facts) {
  for (const JsonFields &entry : root.objects("ranks", maxRanks)) {
    const auto rank = static_cast<int64_t>(facts.each.size());
    entry.integer("rank", rank, rank);
    OneRankFacts one;
    const int64_t node = rank / (facts.count / facts.nodes); // each node has the next ranks
    one.node = entry.integer("node", node, node);
    one.stage = facts.stageOf(rank);
    entry.integer("stage", one.stage, one.stage, one.stage);
    const std::array<int64_t, 2> own = facts.layersOf(one.stage * facts.stageRanks(), layers);
    const std::vector<int64_t> range = entry.integers("layers", 0, layers, 2);
    if (range.size() != 2 || range[0] != own[0] || range[1] != own[1])
      entry.fail("layers", "must be [" + std::to_string(own[0]) + ", " + std::to_string(own[1]) +
                               "], as of all ranks of stage " + std::to_string(one.stage));
    one.firstLayer = own[0], one.endLayer = own[1];
    const int64_t slots = facts.divideExperts ? facts.placement.slots / facts.expertRanks() : experts;
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

/// Names of tiers, and of the topology's tiers that each of them stands for.
void readTiers(const JsonFields &topology, RankFacts &facts) {
  if (topology.has("tiers")) {
    const std::vector<std::string> tiers = topology.strings("tiers", facts.tiers.size());
    if (tiers.size() != facts.tiers.size() || tiers[0] == tiers[1])
      topology.fail("tiers", "must be two names: of links within a node, and between nodes");
    std::copy(tiers.begin(), tiers.end(), facts.tiers.begin());
  }
  if (!topology.has("folded"))
    return;
  constexpr size_t maxTiers = 8; // of a topology
  const JsonFields folded = topology.object("folded");
  folded.onlyKeys({facts.tiers[0].c_str(), facts.tiers[1].c_str()});
  for (size_t tier = 0; tier < facts.tiers.size(); ++tier)
    if (const char *name = facts.tiers[tier].c_str(); folded.has(name))
      facts.foldedTiers[tier] = folded.strings(name, maxTiers);
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
  readTiers(topology, facts);
  facts.layout = root.string("layout", "dp=1");
  readStages(root, layers, facts);
  if (facts.areSeveral() || root.has("layout"))
    readLayout(root, experts, facts);
  if (facts.areSeveral()) {
    if (facts.divideExperts)
      readPlacement(root, experts, facts);
    readCollectives(root, facts);
    readEach(root, layers, experts, facts);
    readHalves(root, facts);
  } else if (root.has("collectives") && !root.objects("collectives", maxSites).empty()) {
    root.fail("collectives", "are of several ranks, topology.ranks is 1");
  }
  return facts;
}

} // namespace k2c::runtime
