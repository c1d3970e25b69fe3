// Reads the fields (readX), then checks what they must say of each other (checkX).
//
// The manifest decides how much memory is allocated and where code reads, so it is read as if it were hostile. Each
// number has a range, chosen so that no product further on overflows: bytes stay under 2^62. What single ranges cannot
// say is checked afterwards: planes add up to the cache that memory states, the reserve is at least what this
// runtime's formula gives (k2rt/reserve.h), each cache group holds one sequence of max_context, shares of weights
// count no more bytes than there are. The page size and the numerics version must be those this runtime was built
// with; anything else would run and give other bits. Sections that are only passed on to reports are kept as text.
#include "program/Manifest.h"
#include "base/File.h"
#include "base/JsonFields.h"
#include "base/Utf8.h"
#include "k2rt/numerics.h"
#include "k2rt/program.h"

namespace k2c::runtime {

namespace {

// Bounds that no product below can overflow with: bytes stay under 2^62.
constexpr int64_t maxBytes = int64_t(1) << 50;
constexpr int64_t maxLayers = 65536;
constexpr int64_t maxWidth = int64_t(1) << 20;
constexpr int64_t maxTokens = int64_t(1) << 24;
constexpr int64_t maxVocab = int64_t(1) << 24;
constexpr int64_t maxPages = int64_t(1) << 24;
constexpr size_t maxKernels = 1 << 16;
constexpr size_t maxSlotRuns = 1 << 20;
constexpr size_t maxFormats = 256;
constexpr int64_t maxReservedTokens = 1 << 16;

void readModel(const JsonFields &model, Manifest &manifest) {
  manifest.modelName = model.string("name");
  manifest.family = model.string("family", "");
  manifest.layers = model.integer("layers", 1, maxLayers);
  manifest.hidden = model.integer("hidden", 1, maxWidth);
  manifest.vocab = model.integer("vocab", 1, maxVocab);
  manifest.heads = model.integer("heads", 0, maxWidth, 0);
  manifest.experts = model.integer("experts", 0, maxWidth, 0);
  manifest.topK = model.integer("top_k", 0, 1024, 0);
  manifest.maxPosition = model.integer("max_position", 0, INT64_MAX, 0);
  if (model.has("moe_layers"))
    manifest.moeLayers = model.integers("moe_layers", 0, maxLayers - 1, maxLayers);
  for (size_t i = 1; i < manifest.moeLayers.size(); ++i)
    if (manifest.moeLayers[i] <= manifest.moeLayers[i - 1])
      model.fail("moe_layers", "is not in ascending order");
  if (!manifest.moeLayers.empty() && manifest.topK == 0)
    model.fail("top_k", "is 0, but moe_layers names " + std::to_string(manifest.moeLayers.size()) + " layers");
}

void readTopology(const JsonFields &topology, Manifest &manifest) {
  constexpr int64_t maxCores = 1 << 20;
  manifest.topology = topology.string("name", "host");
  manifest.cores = topology.integer("cores", 0, maxCores, 0);
  if (topology.has("numa"))
    manifest.numa = topology.integers("numa", 1, maxCores, 1024);
}

/// How launches read each weight slot: runs of slots that are read alike.
void readShares(const JsonFields &root, Manifest &manifest) {
  if (!root.has("shares"))
    return;
  for (const JsonFields &run : root.objects("shares", maxSlotRuns)) {
    SlotShares shares;
    shares.slots = run.integer("slots", 1, maxSlotRuns);
    shares.share.experts = run.integer("experts", 1, maxWidth, 0);
    shares.share.items = run.integer("items", 0, maxWidth, 0);
    shares.share.item_bytes = run.integer("item_bytes", shares.share.items > 0 ? 1 : 0, maxBytes, 0);
    const std::string stage = run.string("stage", "");
    if (!stage.empty() && stage != "first" && stage != "last")
      run.fail("stage", "is \"" + shortened(stage) + "\", must be first or last");
    shares.stage = stage.empty() ? SlotStage::all : stage == "first" ? SlotStage::first : SlotStage::last;
    const RankFacts &ranks = manifest.ranks;
    const bool isOfExperts = shares.share.experts > 0;
    shares.parts = run.integer("parts", 1, std::max({ranks.tp, ranks.vocab, ranks.etp}), 1);
    if (isOfExperts && shares.parts != ranks.etp)
      run.fail("parts", "is " + std::to_string(shares.parts) +
                            " of experts, must be the etp=" + std::to_string(ranks.etp) + " of the layout");
    if (!isOfExperts && shares.parts != 1 && shares.parts != ranks.tp && shares.parts != ranks.vocab)
      run.fail("parts", "is " + std::to_string(shares.parts) + ", must be 1, the tp=" + std::to_string(ranks.tp) +
                            " or the vocab=" + std::to_string(ranks.vocab) + " of the layout");
    if (shares.slots % shares.parts != 0)
      run.fail("parts", "is " + std::to_string(shares.parts) + ", must divide the " + std::to_string(shares.slots) +
                            " slots of the run");
    manifest.shares.push_back(shares);
    // The sum stays below 2^51, so that it does not overflow; an index lists fewer experts, so more are refused there.
    manifest.limits.experts = std::min(manifest.limits.experts + shares.slots * shares.share.experts, maxBytes);
  }
}

void readNumerics(const JsonFields &numerics, Manifest &manifest) {
  manifest.numericsId = numerics.string("id", "");
  manifest.compute = numerics.string("compute", "");
  manifest.computeReason = numerics.string("compute_reason", "");
  const int64_t version = numerics.integer("version", 1, INT64_MAX);
  if (version != K2RT_NUMERICS_VERSION)
    numerics.fail("version",
                  "is " + std::to_string(version) + ", this runtime knows " + std::to_string(K2RT_NUMERICS_VERSION));
  const std::string mla = numerics.string("mla", "phased");
  if (mla == "absorbed")
    manifest.mla = MlaForm::absorbed;
  else if (mla == "expanded")
    manifest.mla = MlaForm::expanded;
  else if (mla != "phased")
    numerics.fail("mla", "is \"" + shortened(mla) + "\", must be phased, absorbed or expanded");
  manifest.expertNodes = numerics.string("expert_nodes", "");
  const std::string id = manifest.numericsId, ending = "-" + manifest.expertNodes;
  if (numerics.has("expert_nodes") &&
      (id.size() < ending.size() || id.compare(id.size() - ending.size(), ending.size(), ending) != 0))
    numerics.fail("id", "is \"" + shortened(id, maxQuoted / 2) +
                            "\", and ends with the hash of the nodes of experts, \"" +
                            shortened(manifest.expertNodes, maxQuoted / 2) + "\"");
}

void readWidened(const JsonFields &root, Manifest &manifest) {
  if (!root.has("spec") || !root.object("spec").has("widened"))
    return;
  for (const JsonFields &of : root.object("spec").objects("widened", maxFormats))
    manifest.widened.push_back({of.string("format"), of.integer("tensors", 1, maxBytes),
                                of.integer("stored_bytes", 0, maxBytes), of.integer("widened_bytes", 0, maxBytes)});
}

void readLimits(const JsonFields &limits, Manifest &manifest) {
  manifest.limits.step_tokens = limits.integer("step_tokens", 1, maxTokens);
  manifest.limits.max_sequences = limits.integer("max_sequences", 1, 1 << 16);
  manifest.limits.max_context = limits.integer("max_context", 1, maxTokens);
  manifest.limits.vocab = manifest.vocab;
  manifest.pages = limits.integer("pages", 1, maxPages, 0);
  limits.integer("page", K2RT_PAGE_TOKENS, K2RT_PAGE_TOKENS);
}

void readCache(const JsonFields &root, Manifest &manifest) {
  for (const JsonFields &entry : root.objects("cache", 256)) {
    CachePlane plane;
    plane.name = entry.string("plane");
    plane.layers = entry.integer("layers", 1, maxLayers);
    plane.width = entry.integer("width", 1, maxWidth);
    plane.bytesPerElement = entry.integer("bytes_per_element", 1, 8);
    plane.pages = entry.integer("pages", 1, maxPages);
    plane.group = entry.integer("group", 0, K2RT_MAX_CACHE_GROUPS - 1, 0);
    // Layers, pages, width and element size are bounded one by one; their product may still be absurd.
    if (plane.layers * plane.pages > maxBytes / (64 * plane.width * plane.bytesPerElement))
      entry.fail("pages", "makes the plane larger than 2^50 bytes");
    manifest.groups.resize(std::max<size_t>(manifest.groups.size(), plane.group + 1));
    int64_t &pages = manifest.groups[plane.group].pages;
    if (pages != 0 && pages != plane.pages)
      entry.fail("pages", "is " + std::to_string(plane.pages) + ", another plane of group " +
                              std::to_string(plane.group) + " has " + std::to_string(pages));
    pages = plane.pages;
    manifest.planes.push_back(std::move(plane));
  }
  manifest.limits.cache_groups = static_cast<int64_t>(manifest.groups.size());
}

void readMemory(const JsonFields &memory, Manifest &manifest) {
  manifest.memory.weights = memory.integer("weights", 0, maxBytes);
  manifest.memory.code = memory.integer("code", 0, maxBytes);
  manifest.memory.cache = memory.integer("cache", 0, maxBytes);
  manifest.memory.arena = memory.integer("arena", 0, maxBytes);
  manifest.memory.scratchPerWorker = memory.integer("scratch_per_worker", 0, maxBytes / 4096);
  manifest.memory.collectives = memory.integer("collectives", 0, maxBytes, 0);
  manifest.memory.logits = memory.integer("logits", 0, maxBytes);
  manifest.memory.reserve = memory.integer("reserve_bytes", 0, maxBytes);
  manifest.memory.limits = manifest.limits;
}

void readKernels(const JsonFields &root, Manifest &manifest) {
  for (const JsonFields &entry : root.objects("kernels", maxKernels)) {
    KernelEntry kernel{entry.string("name"), entry.string("hash", ""), {}, 0};
    if (entry.has("variants"))
      kernel.variants = entry.strings("variants", 256);
    if (manifest.device)
      readLaunch(entry, kernel.arguments);
    manifest.kernels.push_back(std::move(kernel));
  }
}

void readTokens(const JsonFields &root, Manifest &manifest) {
  if (root.has("eos"))
    for (int64_t id : root.integers("eos", 0, manifest.vocab - 1, 256))
      manifest.eos.push_back(static_cast<int32_t>(id));
  manifest.bos = static_cast<int32_t>(root.integer("bos", 0, manifest.vocab - 1, -1));
  if (root.has("forms"))
    manifest.promptExpandedAtLeast = root.object("forms").integer("prompt_expanded_at_least", -1, maxTokens);
}

void readTiktoken(const JsonFields &root, Manifest &manifest) {
  if (!root.has("tiktoken"))
    return;
  const JsonFields tiktoken = root.object("tiktoken");
  manifest.tiktokenPatterns = tiktoken.strings("pattern", 64);
  manifest.tiktokenReserved = tiktoken.integer("reserved", 0, maxReservedTokens);
}

/// Of a stage, each plane has the layers behind those of the stage before.
void checkStages(const JsonFields &root, const Manifest &manifest) {
  const std::vector<StageFacts> &stages = manifest.ranks.stages;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    if (stages[stage].cache.size() != manifest.planes.size())
      return root.fail("stages", "have " + std::to_string(stages[stage].cache.size()) +
                                     " planes of the cache, \"cache\" " + std::to_string(manifest.planes.size()));
    for (size_t plane = 0; plane < manifest.planes.size(); ++plane) {
      const std::array<int64_t, 2> &own = stages[stage].cache[plane];
      const int64_t begin = stage == 0 ? 0 : stages[stage - 1].cache[plane][1], layers = manifest.planes[plane].layers;
      if (own[0] != begin || own[1] < own[0] || own[1] > layers || (stage + 1 == stages.size() && own[1] != layers))
        return root.fail("stages", "have layers " + std::to_string(own[0]) + " to " + std::to_string(own[1]) +
                                       " of a plane of " + std::to_string(layers) + " in stage " +
                                       std::to_string(stage) + ", the stages before end with " + std::to_string(begin));
    }
  }
}

/// Of stages, the certificate is of that which has most of weights and cache together.
void checkCache(const JsonFields &memory, const Manifest &manifest) {
  const int64_t cache = manifest.memory.cache, weights = manifest.memory.weights;
  if (manifest.ranks.stages.empty() && manifest.cacheBytes(0) != cache)
    memory.fail("cache", "is " + std::to_string(cache) + " bytes, the planes of \"cache\" need " +
                             std::to_string(manifest.cacheBytes(0)));
  for (int64_t rank = 0; !manifest.ranks.stages.empty() && rank < manifest.ranks.count; ++rank)
    if (const int64_t own = manifest.cacheBytes(rank) + manifest.ranks.each[static_cast<size_t>(rank)].weights;
        own > cache + weights)
      memory.fail("cache", "is " + std::to_string(cache) + " bytes beside " + std::to_string(weights) +
                               " of weights, rank " + std::to_string(rank) + " has " + std::to_string(own) +
                               " of both");
}

void checkMemory(const JsonFields &root, const Manifest &manifest) {
  const JsonFields memory = root.object("memory");
  checkCache(memory, manifest);
  const int64_t row = manifest.vocab * 4;
  if (manifest.memory.logits < row)
    memory.fail("logits", "is " + std::to_string(manifest.memory.logits) + " bytes, one row of " +
                              std::to_string(manifest.vocab) + " logits needs " + std::to_string(row));
  const int64_t reserve = k2rt_reserve_bytes(&manifest.limits);
  if (manifest.memory.reserve < reserve)
    memory.fail("reserve_bytes", "is " + std::to_string(manifest.memory.reserve) + ", this runtime needs " +
                                     std::to_string(reserve) + " (k2rt/reserve.h)");
}

/// Groups are numbered from 0 without gaps. One sequence of max_context tokens must fit each, or the bundle could not
/// run what it promises.
void checkGroups(const JsonFields &root, const Manifest &manifest) {
  for (size_t group = 0; group < manifest.groups.size(); ++group) {
    const CacheGroup &own = manifest.groups[group];
    const std::string name = "group " + std::to_string(group);
    const int64_t needed = pagesFor(own.length(manifest.limits.max_context));
    if (own.pages == 0)
      root.fail("cache",
                "has no plane of " + name + ", but one of group " + std::to_string(manifest.groups.size() - 1));
    if (own.pages < needed)
      root.fail("cache", name + " has " + std::to_string(own.pages) +
                             " pages per layer, one sequence of max_context needs " + std::to_string(needed));
  }
}

/// Shares count no more bytes than there are weights of all stages and parts: no sum of them overflows.
void checkShares(const JsonFields &root, const Manifest &manifest) {
  int64_t left = (manifest.memory.weights + (manifest.ranks.stages.empty() ? 0 : manifest.memory.cache)) *
                 manifest.ranks.stageCount() *
                 std::max({manifest.ranks.tp, manifest.ranks.vocab,
                           manifest.ranks.etp}); // no stage or part has more than the fullest
  for (const SlotShares &run : manifest.shares) {
    const int64_t items = run.slots * k2rt_share_blocks(&run.share) * run.share.items;
    if (items == 0)
      continue;
    if (run.share.item_bytes > left / items)
      root.fail("shares", "count more bytes than memory.weights, " + std::to_string(manifest.memory.weights));
    left -= items * run.share.item_bytes;
  }
}

Manifest readRoot(const JsonFields &root, int64_t tokenizerBytes) {
  root.integer("format", 1, 1);
  Manifest manifest;
  readModel(root.object("model"), manifest);
  readNumerics(root.object("numerics"), manifest);
  const JsonFields target = root.object("target");
  manifest.cpu = target.string("cpu", "");
  if (target.has("features_required"))
    manifest.cpuFeatures = target.strings("features_required", 256);
  readTopology(root.object("topology"), manifest);
  manifest.ranks = readRankFacts(root, manifest.layers, manifest.experts);
  if (manifest.heads % manifest.ranks.tp != 0)
    root.fail("layout", "has tp=" + std::to_string(manifest.ranks.tp) + ", which does not divide the " +
                            std::to_string(manifest.heads) + " heads of the model");
  readLimits(root.object("limits"), manifest);
  readCache(root, manifest);
  manifest.limits.tokenizer_bytes = tokenizerBytes;
  readShares(root, manifest);
  readMemory(root.object("memory"), manifest);
  manifest.device = readDevice(root, manifest.ranks.count, manifest.memory.scratchPerWorker, manifest.limits);
  readTokens(root, manifest);
  readTiktoken(root, manifest);
  readKernels(root, manifest);
  manifest.bytesPerToken = root.integer("bytes_per_token", 0, maxBytes, 0);
  manifest.weightsIndex = root.string("weights_index", "weights/index.json");
  if (!isInsidePath(manifest.weightsIndex))
    root.fail("weights_index", "is not a path inside the bundle");
  checkGroups(root, manifest);
  checkStages(root, manifest);
  checkMemory(root, manifest);
  checkShares(root, manifest);
  readWidened(root, manifest);
  manifest.modelJson = root.raw("model");
  manifest.targetJson = root.raw("target");
  manifest.numericsJson = root.raw("numerics");
  manifest.topologyJson = root.raw("topology");
  manifest.limitsJson = root.raw("limits");
  manifest.kernelsJson = root.raw("kernels");
  manifest.predictedJson = root.raw("predicted");
  manifest.dispersionJson = root.raw("dispersion");
  manifest.ignoredKeysJson = root.has("ignored_keys") ? root.raw("ignored_keys") : "[]";
  return manifest;
}

} // namespace

int64_t Manifest::cacheBytes(int64_t rank) const {
  int64_t bytes = 0;
  for (size_t plane = 0; plane < planes.size(); ++plane) {
    const std::array<int64_t, 2> layers = planeLayers(rank, plane);
    bytes += (layers[1] - layers[0]) * planes[plane].layerBytes();
  }
  return bytes;
}

int32_t Manifest::promptForm(int64_t newTokens) const {
  if (mla != MlaForm::phased)
    return generatedForm();
  const bool expanded = promptExpandedAtLeast >= 0 && newTokens >= promptExpandedAtLeast;
  return expanded ? K2RT_FORM_EXPANDED : K2RT_FORM_ABSORBED;
}

int32_t Manifest::generatedForm() const { return mla == MlaForm::expanded ? K2RT_FORM_EXPANDED : K2RT_FORM_ABSORBED; }

Expected<Manifest> parseManifest(std::string_view text, const std::string &place, int64_t tokenizerBytes) {
  return readJsonFields(text, place, [&](const JsonFields &root) { return readRoot(root, tokenizerBytes); });
}

} // namespace k2c::runtime
