//===- Place.cpp - k2c place: a placement from statistics ---------------------===//
//
// Which program it is for is said by its bundle, whose placement is the one before, or by topology and layout, whose
// experts are in order before. Load and nodes do not depend on what a row has, so no model is needed: rows count.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "base/File.h"
#include "base/JsonFields.h"
#include "base/JsonText.h"
#include "k2c/Planner/Evaluate.h"
#include "k2c/Planner/PlaceExperts.h"
#include "k2c/Support/WriteFile.h"
#include <array>
#include <cstdio>
#include <iostream>

using namespace k2c;

namespace {

constexpr int64_t maxManifestBytes = int64_t(64) << 20;
constexpr int64_t maxSlots = int64_t(1) << 26; // of all layers
constexpr int64_t maxExperts = 4096;           // of a layer: their pairs are a table
constexpr const char *eachPhase = "each";      // of --phase: a table for each

struct PlaceFlags {
  std::string statistics, bundle, topology, layout, phase = "both", objective = "balance", output;
  std::optional<int64_t> redundant;
  bool json = false;
};

/// A program, and where its experts are now.
struct Placed {
  ExpertDivision division;
  ExpertPlacement before;
};

std::vector<int64_t> layersOf(const RouteStatistics &statistics) {
  std::vector<int64_t> layers;
  for (const auto &[layer, choices] : statistics.layers)
    layers.push_back(layer);
  return layers;
}

/// The ranks and nodes of a stage, of a program on `nodes` nodes. What crosses stages is the same for any placement.
void divide(ExpertDivision &division, const ParallelLayout &layout, int64_t nodes) {
  division.model.ranks = layout.ep;
  division.etp = layout.etp;
  division.nodes = nodesOfStage(layout, nodes);
  division.hops.assign(static_cast<size_t>(layout.replicas), {});
}

/// Of manifest.json, what places experts.
ExpertDivision readManifest(const JsonFields &root) {
  ExpertDivision division;
  const JsonFields model = root.object("model"), topology = root.object("topology");
  division.model.name = model.string("name");
  division.topK = model.integer("top_k", 0, int64_t(1) << 20);
  division.model.layers = model.integers("moe_layers", 0, 65535, 65536);
  division.model.ranks = topology.integer("ranks", 1, maxCompiledRanks);
  division.nodes = topology.integer("nodes", 1, division.model.ranks);
  if (division.model.ranks % division.nodes != 0)
    topology.fail("nodes", "must divide the " + std::to_string(division.model.ranks) + " ranks");
  const std::optional<ParallelLayout> layout =
      readCompiledLayout(root.string("layout"), division.model.ranks, model.integer("layers", 1, 65536));
  if (!layout)
    root.fail("layout", "is none of a program of " + std::to_string(division.model.ranks) + " ranks");
  if (!layout->dividesExperts())
    topology.fail("ranks",
                  division.model.ranks > 1 ? "are one a stage: each has all experts of its layers"
                                           : "is 1: the program of one rank has all experts there",
                  "compile it for several ranks that share experts: --topology T --layout ep=R,dp=R");
  divide(division, *layout, division.nodes);
  if (const JsonFields numerics = root.object("numerics"); numerics.has("expert_nodes"))
    numerics.fail("expert_nodes", "says that tokens are bound to nodes, on which experts have to stay",
                  "compile it without --route-limit and --locality-penalty");
  const JsonFields placement = root.object("placement");
  division.model.experts = placement.integer("experts", 1, int64_t(1) << 20);
  const int64_t slots = placement.integer("slots", division.model.experts, int64_t(1) << 24);
  if (slots % division.model.ranks != 0)
    placement.fail("slots", "must be a multiple of the " + std::to_string(division.model.ranks) + " ranks");
  division.model.slotsOfRank = slots / division.model.ranks;
  for (const JsonFields &site : root.objects("collectives", 1 << 17))
    division.isTwoHop |= site.string("group") == "rail";
  return division;
}

Expected<Placed> ofBundle(const PlaceFlags &flags) {
  Expected<std::string> text = readBundleFile(flags.bundle, "manifest.json", maxManifestBytes);
  if (!text)
    return text.takeError();
  Expected<ExpertDivision> division = readJsonFields(*text, flags.bundle + "/manifest.json", readManifest);
  if (!division)
    return division.takeError();
  const int64_t spare = division->slots() - division->model.experts;
  if (flags.redundant.value_or(spare) != spare)
    return Error{"--redundant",
                 "is " + std::to_string(*flags.redundant) + ", the program has " + std::to_string(spare) +
                     " slots beyond its experts",
                 "leave it out, or compile with redundant=" + std::to_string(*flags.redundant) + " in --layout"};
  const std::string place = flags.bundle + "/placement.json";
  Expected<std::string> placement = readBundleFile(flags.bundle, "placement.json", maxPlacementBytes);
  if (!placement)
    return placement.takeError();
  Expected<ExpertPlacement> before = readExpertPlacement(*placement, place, division->model, compileAgain);
  if (!before)
    return before.takeError();
  return Placed{std::move(*division), std::move(*before)};
}

/// The model is that of the statistics.
Expected<Placed> ofLayout(const PlaceFlags &flags, const RouteStatistics &statistics) {
  Expected<Topology> topology = loadTopology(flags.topology);
  if (!topology)
    return topology.takeError();
  Expected<ParallelLayout> layout = parseLayout(flags.layout, PlanPhase::Serve);
  if (!layout)
    return layout.takeError();
  layout = withReplicas(*layout, /*hasExperts=*/true, topology->ranks());
  const int64_t ofNode = topology->ranks() / topology->nodes();
  if (!isOfProgram(*layout, topology->ranks(), /*layers=*/maxCompiledRanks) || !layout->dividesExperts() ||
      ofNode % layout->tp != 0 || ofNode % layout->etp != 0)
    return Error{"--layout",
                 "'" + shortened(flags.layout) + "' is none of a program of the " + std::to_string(topology->ranks()) +
                     " ranks of topology '" + shortened(topology->name) + "'",
                 "use the layout that `info` says of the program"};
  const int64_t ranks = layout->ep, redundant = flags.redundant.value_or(layout->redundantExperts);
  const int64_t sources = layout->devicesOfStage() * layout->replicas;
  if (statistics.ranks != sources)
    return Error{flags.statistics + ": ranks",
                 "is " + std::to_string(statistics.ranks) + ", " + std::to_string(sources) +
                     " ranks of this layout carry rows",
                 "use the layout of the program that wrote them"};
  const int64_t most = (ranks - 1) * statistics.experts;
  const int64_t filled = statistics.experts + std::clamp<int64_t>(redundant, 0, most);
  if (redundant < 0 || redundant > most || (redundant > 0 && filled % ranks != 0))
    return Error{flags.redundant ? "--redundant" : "--layout",
                 "redundant is " + std::to_string(redundant) + ", must be 0 to " + std::to_string(most) + " and make " +
                     std::to_string(statistics.experts) + " experts slots that " + std::to_string(ranks) +
                     " ranks divide",
                 "choose " + std::to_string(nearestRedundant(statistics.experts, ranks, redundant))};
  if (filled > maxSlots / std::max<int64_t>(1, int64_t(statistics.layers.size())))
    return Error{flags.statistics, "asks for more than " + std::to_string(maxSlots) + " slots in all layers", ""};
  Placed placed;
  placed.division.model = {statistics.model, layersOf(statistics), statistics.experts, ranks,
                           (filled + ranks - 1) / ranks};
  divide(placed.division, *layout, topology->nodes());
  placed.division.isTwoHop = placed.division.nodes > 1 && placed.division.nodes < ranks;
  placed.before = defaultPlacement(placed.division.model, /*routeLimit=*/0);
  return placed;
}

nlohmann::ordered_json jsonOf(const PlacementFigures &figures) {
  return {{"fullest_over_mean", {{"mean", figures.loadMean}, {"max", figures.loadMost}}},
          {"nodes_per_token", figures.nodesPerToken},
          {"inter_node_rows", figures.rowsBetweenNodes.value()}};
}

/// Both placements of the tokens of a phase, and what they are compared by.
struct Comparison {
  ExpertPlacement made;
  PlacementFigures before, after;
};

void print(const char *phase, const PlacementFigures &before, const PlacementFigures &after) {
  std::printf("%-46s%12s%12s\n", phase, "before", "after");
  std::printf("%-46s%12.3f%12.3f\n", "rows of the fullest rank over the mean", before.loadMean, after.loadMean);
  std::printf("%-46s%12.3f%12.3f\n", "  in the worst layer", before.loadMost, after.loadMost);
  std::printf("%-46s%12.3f%12.3f\n", "nodes a token, in a layer", before.nodesPerToken, after.nodesPerToken);
  std::printf("%-46s%12lld%12lld\n", "rows between nodes", static_cast<long long>(before.rowsBetweenNodes.value()),
              static_cast<long long>(after.rowsBetweenNodes.value()));
}

/// One table, or that of prompts and that of generated tokens.
void print(const std::vector<Comparison> &tables, bool isJson) {
  constexpr std::array<const char *, 2> phases = {"prefill", "decode"};
  nlohmann::ordered_json all = {{"format", 1}};
  for (size_t i = 0; i < tables.size(); ++i) {
    const Comparison &of = tables[i];
    const nlohmann::ordered_json figures = {{"before", jsonOf(of.before)}, {"after", jsonOf(of.after)}};
    if (!isJson)
      print(tables.size() > 1 ? phases[i] : "", of.before, of.after);
    else if (tables.size() > 1)
      all[phases[i]] = figures;
    else
      all.update(figures);
  }
  if (isJson)
    std::cout << jsonText(all) << "\n";
}

Expected<Comparison> compare(const RouteStatistics &statistics, const Placed &placed, const PlaceOptions &options) {
  Comparison of;
  Expected<PlacementFigures> before = placementFigures(statistics, placed.before, placed.division, options.phase);
  if (!before)
    return before.takeError();
  of.made = placeExperts(statistics, placed.division, placed.before, options);
  Expected<PlacementFigures> after = placementFigures(statistics, of.made, placed.division, options.phase);
  if (!after)
    return after.takeError();
  of.before = *before, of.after = *after;
  return of;
}

/// Placing by nodes may cost bytes between them where ranks were less even than it allows.
void noteMoreRows(const Comparison &of) {
  const int64_t before = of.before.rowsBetweenNodes.value(), after = of.after.rowsBetweenNodes.value();
  if (after > before)
    std::fprintf(stderr,
                 "k2c: note: rows between nodes rise from %lld to %lld: placing by nodes allows the fullest rank %.2f "
                 "times the mean rows, and the placement before has more in some layer\n",
                 static_cast<long long>(before), static_cast<long long>(after), maxLoadByNodes);
}

/// A table for prompts and one for generated tokens, where `phase` is "each"; else one for both.
std::vector<RoutedPhase> tablesOf(const std::string &phase) {
  if (phase == eachPhase)
    return {RoutedPhase::Prefill, RoutedPhase::Decode};
  return {parseRoutedPhase(phase).value_or(RoutedPhase::Both)};
}

int place(const PlaceFlags &flags) {
  Expected<RouteStatistics> statistics = readStatistics(flags.statistics);
  if (!statistics)
    return fail(statistics.error());
  Expected<Placed> placed = flags.bundle.empty() ? ofLayout(flags, *statistics) : ofBundle(flags);
  if (!placed)
    return fail(placed.error());
  ExpertDivision &division = placed->division;
  division.messageBytes = division.rowBytes = 1;
  if (Status right = checkStatistics(*statistics, flags.statistics, division.model, division.sources(), division.topK);
      !right)
    return fail(right.error());
  if (statistics->experts > maxExperts)
    return fail(flags.statistics + ": experts: is " + std::to_string(statistics->experts) +
                ", experts are placed of layers with at most " + std::to_string(maxExperts));
  PlaceOptions options;
  options.objective = parsePlacementObjective(flags.objective).value_or(PlacementObjective::Balance);
  std::vector<Comparison> tables;
  for (const RoutedPhase phase : tablesOf(flags.phase)) {
    options.phase = phase;
    Expected<Comparison> of = compare(*statistics, *placed, options);
    if (!of)
      return fail(of.error());
    if (options.objective == PlacementObjective::Nodes)
      noteMoreRows(*of);
    tables.push_back(std::move(*of));
  }
  ExpertPlacement made = tables.front().made;
  for (auto &[layer, experts] : made.layers)
    experts.decode = tables.back().made.layers.at(layer).decode;
  if (Status status = writeFile(flags.output, placementText(division.model, made), "name a file in an existing folder");
      !status)
    return fail(status.error());
  print(tables, flags.json);
  return 0;
}

} // namespace

void k2c::addPlace(CLI::App &app, std::function<int()> &run) {
  auto flags = std::make_shared<PlaceFlags>();
  CLI::App *c = app.add_subcommand("place", "Where experts are best, by what tokens chose in a run");
  c->footer("examples:\n  out/run perplexity TEXT --transport local --expert-stats s.json && k2c place s.json --bundle "
            "out -o p.json\n  k2c place s.json --topology cpu4x2 --layout ep=8,dp=8 --objective nodes -o p.json");
  c->add_option("STATS", flags->statistics, "what run --expert-stats wrote")->required();
  CLI::Option *bundle = c->add_option("--bundle", flags->bundle, "of the program that the placement is for");
  CLI::Option *topology = c->add_option("--topology", flags->topology, "or its topology")->excludes(bundle);
  CLI::Option *layout = c->add_option("--layout", flags->layout, "and its layout: ep=8,dp=8")->excludes(bundle);
  topology->needs(layout);
  layout->needs(topology);
  c->add_option("--redundant", flags->redundant, "slots beyond the experts, for copies (default: those of the program)")
      ->transform(whole(0, 1 << 24));
  c->add_option("--phase", flags->phase, "whose tokens count; each: a table for prompts, one for generated tokens")
      ->check(CLI::IsMember({"both", "prefill", "decode", eachPhase}))
      ->capture_default_str();
  c->add_option("--objective", flags->objective, "what is looked at first: even rows of ranks, or bytes between nodes")
      ->check(CLI::IsMember({"balance", "nodes"}))
      ->capture_default_str();
  c->add_flag("--json", flags->json, "print JSON");
  c->add_option("-o,--output", flags->output, "the placement")->required();
  c->callback([=, &run] {
    run = [=] {
      if (flags->bundle.empty() && flags->topology.empty())
        return failUsage("name the program: --bundle DIR, or --topology T --layout L; see k2c place --help");
      return place(*flags);
    };
  });
}
