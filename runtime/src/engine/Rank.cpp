// The order of allocation is that of the certificate's lines: step arrays, cache planes, arena.
#include "engine/Rank.h"

namespace k2c::runtime {

Rank::Rank(const Bundle &bundle, StepArrays arrays)
    : bundle(bundle), serve(bundle.program.entry(serveEntry)), serveHalves(bundle.program.entry(halvesEntry)),
      stepArrays(std::move(arrays)) {
  if (bundle.manifest.ranks.halves.rows > 0)
    halves.emplace(bundle.manifest);
}

void Rank::upload(const k2rt_ir_step &step, bool inHalves) {
  entry = inHalves ? serveHalves : serve;
  device->upload(inHalves ? halves->cut(step) : step);
}

Expected<std::unique_ptr<Rank>> Rank::create(const Bundle &bundle, std::unique_ptr<Device> device, Trace *trace,
                                             Exchange *exchange) {
  const Manifest &manifest = bundle.manifest;
  Expected<StepArrays> arrays = StepArrays::allocate(manifest, *device);
  if (!arrays)
    return arrays.takeError();
  std::unique_ptr<Rank> rank(new Rank(bundle, std::move(*arrays)));
  for (const CachePlane &plane : manifest.planes) {
    Expected<std::byte *> base = device->allocate(plane.bytes(), "cache", MemoryUse::program);
    if (!base)
      return base.takeError();
    rank->memory.planes.push_back(*base);
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
    rank->facts = {exchange->rank(),
                   exchange->group(Axis::world).size,
                   experts.self,
                   experts.size,
                   nodes.self,
                   0,
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
