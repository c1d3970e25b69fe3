//===- Manifest.cpp - manifest.json: what was proved and decided ----------===//
//
// The manifest is what the runtime knows of a program besides its code: limits, planes of the cache, memory, numerics,
// kernels with a rule of their costs, which worker reads what of the weights. It states and the runtime checks
// (runtime/src/program/Manifest.cpp): both compute the reserve by k2rt/reserve.h, planes must add up to the cache.
//
// Five entries are easily misread. `peak_bytes` is of the memory that has the program's parts: of a GPU's program that
// of the GPU, without the code and reserve of its process. `memory` and `limits` are of one rank, the fullest.
// `reserve_bytes` leaves out what each worker adds, since their number is known when the program starts.
// `features_required` are those the target has of the list that code generation may use. The numerics id is all that
// bits depend on besides checkpoint and tokens (N0): a model without latent attention has the form "none", so that the
// option for it does not make two ids of one program. Objects have their keys in order, so equal programs have equal
// manifests.
//
//===----------------------------------------------------------------------===//
#include "Dispersion.h"
#include "base/Hash.h"
#include "base/JsonText.h"
#include "k2c/Model/Layers.h"
#include "k2c/Model/SpecJson.h"
#include "k2c/Planner/Count.h"
#include "k2c/Target/Package.h"
#include "k2rt/numerics.h"
#include "k2rt/program.h"
#include <algorithm>
#include <nlohmann/json.hpp>

using nlohmann::json;

namespace k2c {

namespace {

/// CPU features the code generator may have used; the runtime names the one a machine lacks.
constexpr const char *checkedFeatures[] = {"avx",        "avx2",       "fma",      "f16c",     "bmi",      "bmi2",
                                           "avx512f",    "avx512bw",   "avx512dq", "avx512vl", "avx512cd", "avx512bf16",
                                           "avx512vnni", "avx512vbmi", "gfni",     "vaes"};

/// What the seconds of a step are of: the rates measured of the machine, or peak rates, which bound them from below.
const char *sourceOf(const Prediction &step) { return step.byRates ? "rates" : "roofline"; }

json modelJson(const ModelSpec &spec) {
  return {{"name", spec.name},
          {"family", spec.family},
          {"layers", spec.layerCount()},
          {"hidden", spec.hidden},
          {"vocab", spec.vocab},
          {"heads", attentionLayers(spec).front().sizes.heads},
          {"experts", spec.moe ? spec.moe->experts : 0},
          {"top_k", spec.moe ? spec.moe->topK : 0},
          {"max_position", spec.maxPosition},
          {"moe_layers", spec.moeLayers()},
          {"parameters", totalParameters(spec).value()},
          {"active_parameters", activeParameters(spec, false).value()}};
}

/// N0: what the bits depend on besides checkpoint and tokens. A model without latent attention has no form, and where
/// experts are matters only to a router that is bound to nodes.
json numericsJson(const ModelSpec &spec, const Plan &plan, const ProgramFacts &program, const BundleFacts &bundle) {
  const bool latent = spec.latentAttention() != nullptr;
  std::string id =
      K2RT_NUMERICS_PREFIX + program.compute + "/" + (latent ? program.mla : "none") + "/" + program.bitClass;
  json numerics = {{"version", K2RT_NUMERICS_VERSION},
                   {"compute", program.compute},
                   {"compute_reason", plan.computeReason},
                   {"mla", program.mla},
                   {"class", program.bitClass}};
  if (program.bound.isBound()) {
    const std::string nodes = expertNodes(bundle.placement, &PlacedExperts::decode, spec.moe->experts,
                                          nodesOfStage(plan.layout, bundle.nodes))
                                  .hash();
    numerics.update(
        {{"route_limit", program.bound.limit}, {"locality_penalty", program.bound.penalty}, {"expert_nodes", nodes}});
    id += boundNumerics(program.bound.limit, program.bound.penalty, nodes);
  }
  numerics["id"] = id;
  return numerics;
}

json cacheJson(const std::vector<CachePlane> &cache) {
  json planes = json::array();
  for (const CachePlane &plane : cache)
    planes.push_back({{"plane", plane.plane},
                      {"layers", plane.layers},
                      {"width", plane.width},
                      {"bytes_per_element", byteWidth(plane.type)},
                      {"pages", plane.pages},
                      {"group", plane.group}});
  return planes;
}

/// What a launch of the kernel computes and moves: count() of k2c/Kernels/Cost.h as the numbers of a CostRule.
json costJson(const CostRule &cost) {
  json text = {{"rows", nameOf(cost.rows)}};
  visitNumbers(cost, /*all=*/false, [&](const char *name, auto number) { text[name] = number; });
  return text;
}

json kernelsJson(const ProgramFacts &program) {
  json list = json::array();
  for (const PackagedKernel &kernel : program.kernels) {
    list.push_back(
        {{"name", kernel.name}, {"hash", kernel.hash}, {"variants", kernel.variants}, {"cost", costJson(kernel.cost)}});
    if (program.gpu)
      list.back()["arguments"] = kernel.arguments;
  }
  return list;
}

/// What runs the kernels, and as how many workers.
json deviceJson(const GpuFacts &gpu, const Plan &plan, const BundleFacts &bundle) {
  return {{"kind", "cuda"},
          {"arch", gpu.arch},
          {"threads", gpu.threads},
          {"workers_per_cta", gpu.workersPerCta},
          {"ctas", gpu.ctas},
          {"code", bundle.ptxas.empty() ? "ptx" : "cubin"},
          {"ptxas", bundle.ptxas},
          {"memory_bytes", bundle.deviceMemory},
          {"reference_bytes", bundle.referenceBytes},
          {"reserve_bytes", plan.memory.reserve.value}};
}

json memoryJson(const Plan &plan, const ProgramFacts &program, const BundleFacts &bundle) {
  return {{"weights", program.weights},
          {"cache", program.cacheBytes},
          {"arena", program.arena},
          {"scratch_per_worker", program.scratchPerWorker},
          {"collectives", plan.memory.collectives.value},
          {"logits", program.logits},
          {"reserve_bytes", program.gpu ? plan.memory.host.value : plan.memory.reserve.value - bundle.workerReserve},
          {"code", bundle.codeBytes}};
}

json topologyJson(const ProgramFacts &program, const BundleFacts &bundle) {
  json topology = {
      {"name", program.topology}, {"ranks", program.ranks}, {"nodes", bundle.nodes}, {"cores", program.cores}};
  if (!program.numa.empty())
    topology["numa"] = program.numa;
  if (program.ranks > 1)
    topology["tiers"] = bundle.tiers;
  for (size_t tier = 0; tier < bundle.tiers.size(); ++tier)
    if (!bundle.foldedTiers[tier].empty())
      topology["folded"][bundle.tiers[tier]] = bundle.foldedTiers[tier];
  return topology;
}

/// What crosses between ranks, and the most bytes that one may receive at a site whose rows are counted on arrival.
json collectivesJson(const ProgramFacts &program) {
  json sites = json::array();
  for (const CollectiveFact &each : program.collectives)
    sites.push_back({{"site", each.site},
                     {"op", each.op},
                     {"group", each.group},
                     {"quota_rows", each.quota},
                     {"row_bytes", each.rowBytes},
                     {"max_bytes", each.quota * each.members * each.rowBytes}});
  return sites;
}

/// The first layers of stages, and the end of the last.
std::vector<int64_t> boundsOf(const ModelSpec &spec, const ProgramFacts &program) {
  return program.stages.empty() ? std::vector<int64_t>{0, spec.layerCount()} : program.stages;
}

/// Of the weights of a rank with layers [from, end), those of its empty slots; `rank`: its place in the stage.
int64_t emptyBytes(const ExpertPlacement &placement, int64_t rank, Bytes ofExpert, int64_t from, int64_t end) {
  int64_t empty = 0;
  for (const auto &[layer, placed] : placement.layers) {
    if (layer < from || layer >= end)
      continue;
    const auto own = placed.decode.begin() + rank * placement.slotsOfRank;
    empty += std::count(own, own + placement.slotsOfRank, -1);
  }
  return empty == 0 ? 0 : empty * (ofExpert.value / static_cast<int64_t>(placement.layers.size()));
}

/// Ranks are numbered node by node. Those with empty slots map fewer weights than the certificate says.
json ranksJson(const ModelSpec &spec, const Plan &plan, const ProgramFacts &program, const BundleFacts &bundle) {
  const std::vector<int64_t> bounds = boundsOf(spec, program);
  const int64_t ofStage = plan.layout.devicesOfStage();
  json ranks = json::array();
  for (int64_t rank = 0; rank < program.ranks; ++rank) {
    const auto stage = static_cast<size_t>(rank / ofStage % plan.layout.pp);
    const int64_t empty = emptyBytes(bundle.placement, rank % ofStage / plan.layout.etp, plan.expertBytes,
                                     bounds[stage], bounds[stage + 1]);
    ranks.push_back({{"rank", rank},
                     {"node", rank * bundle.nodes / program.ranks},
                     {"stage", stage},
                     {"layers", {bounds[stage], bounds[stage + 1]}},
                     {"slots", plan.expertSlots},
                     {"weights", (program.stages.empty() ? program.weights : program.stageWeights[stage]) - empty}});
  }
  return ranks;
}

/// Layers of each stage, and which of each plane's layers these are.
json stagesJson(const ModelSpec &spec, const ProgramFacts &program) {
  json stages = json::array();
  for (size_t stage = 0; stage + 1 < program.stages.size(); ++stage) {
    json planes = json::array();
    for (const CachePool &pool : cachePools(spec))
      for ([[maybe_unused]] const CachedRow &row : pool.rows)
        planes.push_back({{"first", countWithin(pool.layers, {0, program.stages[stage]})},
                          {"end", countWithin(pool.layers, {0, program.stages[stage + 1]})}});
    stages.push_back({{"layers", {program.stages[stage], program.stages[stage + 1]}}, {"cache", planes}});
  }
  return stages;
}

json placementJson(const ModelSpec &spec, const Plan &plan, const BundleFacts &bundle) {
  return {{"file", placementFile},
          {"experts", spec.moe->experts},
          {"slots", plan.expertSlots * plan.layout.ep},
          {"hash", hashText(hashOf(bundle.placementText.data(), bundle.placementText.size()))}};
}

/// k2rt/share.h: which part of a weight each worker reads.
json sharesJson(const std::vector<SlotShares> &shares) {
  json runs = json::array();
  for (const auto &[slots, share, stage, parts] : shares) {
    runs.push_back({{"slots", slots}});
    if (stage != SlotStage::All)
      runs.back()["stage"] = stage == SlotStage::First ? "first" : "last";
    if (parts > 1)
      runs.back()["parts"] = parts;
    if (share.experts > 0)
      runs.back()["experts"] = share.experts;
    if (share.items > 0)
      runs.back().update({{"items", share.items}, {"item_bytes", share.item_bytes}});
  }
  return runs;
}

} // namespace

std::vector<std::string> requiredFeatures(const std::vector<std::string> &all) {
  std::vector<std::string> required;
  for (const char *feature : checkedFeatures)
    if (std::find(all.begin(), all.end(), feature) != all.end())
      required.push_back(feature);
  return required;
}

std::string manifestText(const ModelSpec &spec, const Plan &plan, const ProgramFacts &program,
                         const BundleFacts &bundle) {
  json manifest = {{"format", 1},
                   {"k2c", K2C_VERSION},
                   {"model", modelJson(spec)},
                   {"spec", specJson(spec)},
                   {"numerics", numericsJson(spec, plan, program, bundle)},
                   {"target",
                    {{"cpu", program.cpu},
                     {"features_required", program.features},
                     {"l1_bytes", program.l1Bytes},
                     {"l2_bytes", program.l2Bytes}}},
                   {"topology", topologyJson(program, bundle)},
                   {"layout", program.layout},
                   {"limits",
                    {{"step_tokens", plan.limits.stepTokens},
                     {"max_sequences", program.limits.maxSequences},
                     {"max_context", program.limits.maxContext},
                     {"page", Limits::page},
                     {"pages", program.limits.pages()}}},
                   {"cache", cacheJson(program.cache)},
                   {"memory", memoryJson(plan, program, bundle)},
                   {"ranks", ranksJson(spec, plan, program, bundle)},
                   {"collectives", collectivesJson(program)},
                   {"dispersion", dispersionJson(spec, plan, program, bundle)},
                   {"forms", {{"prompt_expanded_at_least", program.expandedFrom}}},
                   {"eos", spec.eos},
                   {"kernels", kernelsJson(program)},
                   {"shares", sharesJson(program.shares)},
                   {"bytes_per_token", plan.decode.bytes.value},
                   {"predicted",
                    {{"prefill_s", plan.prefill.seconds.value},
                     {"prefill_from", sourceOf(plan.prefill)},
                     {"prefill_tokens", plan.prefill.tokens},
                     {"decode_s", plan.decode.seconds.value},
                     {"decode_from", sourceOf(plan.decode)},
                     {"peak_bytes", plan.memory.total().value + (program.gpu ? 0 : bundle.codeBytes)}}},
                   {"ignored_keys", spec.ignoredKeys},
                   {"weights_index", "weights/index.json"}};
  if (program.gpu)
    manifest["device"] = deviceJson(*program.gpu, plan, bundle);
  if (!program.stages.empty())
    manifest["stages"] = stagesJson(spec, program);
  if (program.halvesFrom > 0)
    manifest["halves"] = {{"rows", program.limits.stepTokens}, {"from", program.halvesFrom}};
  if (!bundle.placementText.empty())
    manifest["placement"] = placementJson(spec, plan, bundle);
  if (spec.bos)
    manifest["bos"] = *spec.bos;
  if (!spec.tiktoken.patterns.empty())
    manifest["tiktoken"] = {{"pattern", spec.tiktoken.patterns}, {"reserved", spec.tiktoken.reserved}};
  return jsonText(manifest, 2) + "\n";
}

} // namespace k2c
