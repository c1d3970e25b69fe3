// manifest.json: what the compiler proved and decided about a bundle. Read once, checked field by field.
#ifndef K2RT_PROGRAM_MANIFEST_H
#define K2RT_PROGRAM_MANIFEST_H

#include "base/Error.h"
#include "k2rt/reserve.h"
#include "k2rt/share.h"
#include "program/DeviceFacts.h"
#include "program/RankFacts.h"
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace k2c::runtime {

/// One plane of the paged cache; pages of 64 tokens of one layer.
struct CachePlane {
  std::string name;
  int64_t layers = 0;
  int64_t width = 0;
  int64_t bytesPerElement = 0;
  int64_t pages = 0; ///< per layer
  int64_t group = 0; ///< of Manifest::groups

  int64_t layerBytes() const { return pages * 64 * width * bytesPerElement; }
  int64_t bytes() const { return layers * layerBytes(); }
};

/// How many pages `tokens` tokens occupy.
inline int64_t pagesFor(int64_t tokens) { return (tokens + K2RT_PAGE_TOKENS - 1) / K2RT_PAGE_TOKENS; }

/// Planes that one block table and one list of lengths address.
struct CacheGroup {
  int64_t pages = 0; ///< per layer

  /// Of a sequence's first `tokens` tokens, those that the group holds: all. Nothing else says so; pages, lengths and
  /// append slots follow from it.
  int64_t length(int64_t tokens) const { return tokens; }
};

/// The certificate: bytes per rank. Anonymous memory is all but `weights` and `code`.
struct MemoryCertificate {
  int64_t weights = 0;
  int64_t code = 0; ///< mapped of run, program.so and their libraries
  int64_t cache = 0;
  int64_t arena = 0;
  int64_t scratchPerWorker = 0;
  int64_t collectives = 0;
  int64_t logits = 0;
  int64_t reserve = 0;     ///< without what workers add
  k2rt_limits limits = {}; ///< what the reserve is of

  int64_t reserveBytes(int64_t threads) const { return reserve + k2rt_worker_bytes(&limits, threads); }
  int64_t anonymousBytes(int64_t threads) const {
    return cache + arena + threads * scratchPerWorker + collectives + logits + reserveBytes(threads);
  }
  int64_t peakBytes(int64_t threads) const { return weights + code + anonymousBytes(threads); }
};

/// A kernel of the program, in the order of its kernel ids.
struct KernelEntry {
  std::string name;
  std::string hash;
  std::vector<std::string> variants;
  int64_t arguments = 0; ///< of a launch on a GPU
};

/// Which stages of ranks have a weight: of a layer that which has the layer, of no layer all, or the first or last.
enum class SlotStage : uint8_t { all, first, last };

/// `slots` weight slots, one after another, that are read alike.
struct SlotShares {
  int64_t slots = 0;
  k2rt_share share = {};
  SlotStage stage = SlotStage::all;
  int64_t parts = 1; ///< of each weight, a slot for each: slot i is part i modulo parts
};

/// MLA forms (numerics N4): one form everywhere, or by phase.
enum class MlaForm { phased, absorbed, expanded };

/// Weights that the source has in few bits, and the program in f32.
struct WidenedWeights {
  std::string format;
  int64_t tensors = 0, storedBytes = 0, widenedBytes = 0;
};

/// Everything the runtime uses of manifest.json. Sizes fit each other: checkManifest was successful.
struct Manifest {
  std::string modelName, family;
  int64_t layers = 0, hidden = 0, vocab = 0, heads = 0, experts = 0, topK = 0, maxPosition = 0;
  std::vector<int64_t> moeLayers; ///< indices in the checkpoint, ascending
  std::string numericsId;
  std::string expertNodes;            ///< of routers that are bound to nodes: ExpertNodes::hash of every placement
  std::string compute, computeReason; ///< type of activations, and why it is that one; either may be ""
  MlaForm mla = MlaForm::phased;
  std::string cpu;
  std::vector<std::string> cpuFeatures;
  std::optional<DeviceFacts> device; ///< none: kernels are code of the processor
  std::string topology;
  int64_t cores = 0;         ///< of the topology, of a rank; 0: not stated
  std::vector<int64_t> numa; ///< its cores by NUMA node; empty: one node
  RankFacts ranks;
  k2rt_limits limits = {};
  int64_t pages = 0; ///< limits.pages
  std::vector<CachePlane> planes;
  std::vector<CacheGroup> groups;
  MemoryCertificate memory;
  int64_t promptExpandedAtLeast = -1; ///< 0: always expanded, -1: never
  std::vector<int32_t> eos;
  int32_t bos = -1;                          ///< -1: none
  std::vector<std::string> tiktokenPatterns; ///< how a tiktoken.model finds words; empty: not known
  int64_t tiktokenReserved = 0;              ///< ids behind its ranks that are special tokens
  std::vector<KernelEntry> kernels;
  std::vector<SlotShares> shares; ///< of all slots in their order; empty: not stated
  /// Of plane `plane`, which layers a rank has, in the order of the plane's.
  std::array<int64_t, 2> planeLayers(int64_t rank, size_t plane) const {
    return ranks.stages.empty() ? std::array<int64_t, 2>{0, planes[plane].layers}
                                : ranks.stages[static_cast<size_t>(ranks.stageOf(rank))].cache[plane];
  }
  int64_t bytesPerToken = 0;
  std::string weightsIndex;
  std::vector<WidenedWeights> widened;
  /// JSON texts handed through to `info` and `bench`.
  std::string modelJson, targetJson, numericsJson, topologyJson, limitsJson, kernelsJson, predictedJson, dispersionJson,
      ignoredKeysJson;

  /// Output rows of a step, at most.
  int64_t outputRows() const { return memory.logits / (vocab * 4); }
  /// What launches on a GPU write beside the arena: scratch of all workers, logits.
  int64_t workspaceBytes() const { return (device ? device->workers() * memory.scratchPerWorker : 0) + memory.logits; }
  /// Of all planes, what a rank has.
  int64_t cacheBytes(int64_t rank) const;
  /// The form of a prompt segment with `newTokens` tokens: K2RT_FORM_*.
  int32_t promptForm(int64_t newTokens) const;
  /// The form of generated tokens.
  int32_t generatedForm() const;
};

/// Parses and checks the text of manifest.json. `place` is the file's path; tokenizerBytes: the size of the bundle's
/// tokenizer file, which the reserve must cover (0: none).
Expected<Manifest> parseManifest(std::string_view text, const std::string &place, int64_t tokenizerBytes);

} // namespace k2c::runtime

#endif
