// The order of allocation is that of the certificate's lines: step arrays, cache planes, arena.
#include "engine/Rank.h"
#include "engine/StepRows.h"
#include "k2rt/Sampler.h"

namespace k2c::runtime {

Rank::Rank(const Bundle &bundle, StepArrays arrays)
    : bundle(bundle), serve(bundle.program.entry(serveEntry)), serveHalves(bundle.program.entry(halvesEntry)),
      stepArrays(std::move(arrays)) {
  if (bundle.manifest.ranks.halves.rows > 0)
    halves.emplace(bundle.manifest);
}

/// All ranks of a sequence have its rows. They enter at the first stage, and logits are of the last.
void Rank::upload(const k2rt_ir_step &step, bool wantsLogits, bool inHalves) {
  k2rt_ir_step own = step;
  own.entering_rows = bundle.manifest.ranks.isFirstStage(bundle.rank) ? step.token_rows : 0;
  if (!bundle.manifest.ranks.isLastStage(bundle.rank)) {
    own.output_rows = 0;
    own.sampling = nullptr;
  }
  entry = inHalves ? serveHalves : serve;
  const k2rt_ir_step &next = inHalves ? halves->cut(own) : own;
  device->upload(bundle.manifest.ranks.tp > 1 ? sliced(next) : next, wantsLogits);
}

const k2rt_ir_step &Rank::sliced(const k2rt_ir_step &whole) {
  const RankFacts &ranks = bundle.manifest.ranks;
  const auto *half = &whole;
  for (size_t number = 0; half; ++number, half = static_cast<const k2rt_ir_step *>(half->second)) {
    gathered[number] = *half;
    slices[number] = takeSlice(gathered[number], bundle.manifest, ranks.sliceOf(bundle.rank), ranks.tp);
    if (number > 0)
      slices[0].second = &slices[1];
  }
  return slices[0];
}

void Rank::logProbabilities(const int32_t *targets, int64_t rows, float *to) const {
  const int64_t vocab = bundle.manifest.vocab;
  const float *logits = results().logits;
  for (int64_t row = 0; row < rows; ++row, logits += vocab)
    to[row] = targets[row] < 0 ? 0 : runtime::logProbabilities(logits, vocab, targets[row], /*top=*/0)[0].value;
}

/// Where a plane would begin if it had the layers before those of the rank: programs count layers from the first.
static std::byte *planeBase(std::byte *own, const CachePlane &plane, int64_t firstLayer) {
  return reinterpret_cast<std::byte *>(reinterpret_cast<uintptr_t>(own) -
                                       static_cast<uintptr_t>(firstLayer * plane.layerBytes()));
}

Expected<std::unique_ptr<Rank>> Rank::create(const Bundle &bundle, std::unique_ptr<Device> device, Trace *trace,
                                             Exchange *exchange) {
  const Manifest &manifest = bundle.manifest;
  Expected<StepArrays> arrays = StepArrays::allocate(manifest, *device);
  if (!arrays)
    return arrays.takeError();
  std::unique_ptr<Rank> rank(new Rank(bundle, std::move(*arrays)));
  for (size_t number = 0; number < manifest.planes.size(); ++number) {
    const CachePlane &plane = manifest.planes[number];
    const std::array<int64_t, 2> layers = manifest.planeLayers(bundle.rank, number);
    Expected<std::byte *> base =
        device->allocate((layers[1] - layers[0]) * plane.layerBytes(), "cache", MemoryUse::program);
    if (!base)
      return base.takeError();
    rank->memory.planes.push_back(planeBase(*base, plane, layers[0]));
  }
  Expected<std::byte *> arena = device->allocate(manifest.memory.arena, "arena", MemoryUse::program);
  if (!arena)
    return arena.takeError();
  rank->memory.arena = *arena;
  rank->memory.weights = bundle.weights.slots();
  for (const CacheGroup &group : manifest.groups)
    rank->freePages.emplace_back(group.pages);
  if (exchange && bundle.program.description().n_collectives > 0) {
    const Group experts = exchange->group(Axis::ep), nodes = exchange->group(Axis::rail);
    const std::array<int64_t, 2> layers = manifest.ranks.layersOf(bundle.rank, manifest.layers);
    rank->facts = {exchange->rank(),
                   exchange->group(Axis::world).size,
                   experts.self,
                   experts.size,
                   nodes.self,
                   static_cast<int32_t>(manifest.ranks.placeOf(bundle.rank)),
                   layers[0],
                   layers[1],
                   const_cast<int32_t *>(bundle.placement.entries(0))};
    rank->memory.rank = &rank->facts;
    rank->memory.exchange = exchange;
  }
  if (Status loaded = device->load(rank->memory, trace); !loaded)
    return loaded.takeError();
  rank->device = std::move(device);
  return rank;
}

void Rank::goBy(size_t next) {
  if (next == table)
    return;
  table = next;
  facts.placement = const_cast<int32_t *>(bundle.placement.entries(table));
  memory.weights = bundle.weights.slots(table);
  device->use(memory.weights);
}

} // namespace k2c::runtime
