// The order of allocation is that of the certificate's lines: step arrays, cache planes, arena.
#include "engine/Rank.h"

namespace k2c::runtime {

Expected<std::unique_ptr<Rank>> Rank::create(const Bundle &bundle, std::unique_ptr<Device> device, Trace *trace) {
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
  rank->memory.weights = bundle.weights.slots().data();
  for (const CacheGroup &group : manifest.groups)
    rank->freePages.emplace_back(group.pages);
  if (Status loaded = device->load(rank->memory, trace); !loaded)
    return loaded.takeError();
  rank->device = std::move(device);
  return rank;
}

Expected<StepResults> Rank::run(const k2rt_ir_step &step) {
  device->upload(step);
  if (Status ran = device->run(serve); !ran)
    return ran.takeError();
  return device->results();
}

} // namespace k2c::runtime
