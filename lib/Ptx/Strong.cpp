//===- Strong.cpp - What strong accesses see and publish ------------------===//
//
// PTX ISA, Memory Consistency Model. Bytes that strong accesses share have versions. A strong write publishes what its
// thread knows if it releases, or what a fence before it released; a strong read sees what its version published: at
// once if it acquires, else at the next fence. Which version it is may be any that neither the thread nor anyone of
// whom it knows has seen to be overwritten: the last write in the order of this machine is one of them. So stores that
// wait in a buffer, and readers that disagree on the order of two writes, are found where fence.sc is missing.
//
//===----------------------------------------------------------------------===//
#include "Races.h"

#include <algorithm>

namespace k2c::ptx {

constexpr size_t maxVersions = 4;

static uint64_t levelOf(Scope scope) { return std::min<uint64_t>(static_cast<uint64_t>(scope), 2); }

void Races::forgetVersions(Memory &memory, uint64_t offset, uint64_t bytes) {
  if (memory.locations.empty())
    return;
  for (uint64_t at = offset < 8 ? 0 : offset - 8; at < offset + bytes; ++at)
    if (const auto found = memory.locations.find(at);
        found != memory.locations.end() && at + found->second.bytes > offset)
      memory.locations.erase(found);
}

Races::Location &Races::locationAt(Memory &memory, uint64_t offset, uint32_t bytes, const std::byte *value) {
  Location &location = memory.locations[offset];
  if (location.bytes == 0) {
    location.bytes = bytes;
    for (uint64_t at = offset < 8 ? 0 : offset - 7; at < offset + bytes; ++at)
      if (const auto other = memory.locations.find(at);
          at != offset && other != memory.locations.end() && at + other->second.bytes > offset)
        other->second.isMixed = location.isMixed = true;
    Version &first = location.versions.emplace_back();
    std::memcpy(first.value, value, std::min<size_t>(bytes, sizeof first.value));
  }
  location.isMixed |= location.bytes != bytes;
  return location;
}

void Races::publish(Location &location, Warp &warp, const Operation &operation, int lane, Access access,
                    const std::byte *from) {
  WarpClocks &own = *warp.clocks;
  Version made{};
  made.writer = agentOf(own.number, lane);
  made.time = own.time;
  if (access == Access::ReadWrite) // part of the release sequence of the one before
    made.published = location.versions.back().published;
  const auto add = [&](const Knowledge &given, Scope scope) {
    for (Published &other : made.published)
      if (other.scope == scope && (levelOf(scope) == 2 || other.warp == own.number))
        return other.knowledge.join(given);
    made.published.push_back({given, scope, own.number});
  };
  if (operation.strength == Strength::Release || operation.strength == Strength::AcquireRelease) {
    Knowledge given = own.known[lane];
    given.add(agentOf(own.number, 0), uint32_t(1) << lane, own.time);
    add(given, operation.scope);
  }
  for (uint64_t level = 0; level <= levelOf(operation.scope); ++level)
    if ((own.isFenced[level] >> lane & 1) &&
        !(level < levelOf(operation.scope) && own.fenced[level][lane].isSame(own.fenced[level + 1][lane])))
      add(own.fenced[level][lane], static_cast<Scope>(level));
  location.versions.push_back(std::move(made));
  if (location.versions.size() > maxVersions)
    location.versions.pop_front();
  ++location.newest;
  fresh.push_back({from, &location, location.newest});
}

void Races::settle() {
  for (const Fresh &one : fresh) {
    Location &location = *one.location;
    const uint64_t behind = location.newest - one.version;
    if (behind < location.versions.size())
      std::memcpy(location.versions[location.versions.size() - 1 - behind].value, one.from,
                  std::min<size_t>(location.bytes, sizeof(Version::value)));
  }
  fresh.clear();
}

const std::byte *Races::older(Warp &warp, const Operation &operation, int lane, const Touched &at, uint64_t draw) {
  Memory &memory = memoryAt(at);
  const WarpClocks &own = *warp.clocks;
  const Agent reader = agentOf(own.number, lane);
  const bool isScalar = operation.count == 1 && at.bytes <= sizeof(Version::value);
  for (uint64_t offset = at.offset; offset < at.offset + at.bytes; offset += operation.bytes) {
    Location &location = memory.locations.find(offset)->second;
    const uint64_t first = location.newest + 1 - location.versions.size();
    uint64_t least = isScalar && !location.isMixed ? first : location.newest;
    Sight *sight = nullptr;
    for (Sight &one : location.sights) {
      const bool isOwn = one.reader.cluster == reader.cluster && one.reader.number == reader.number;
      if (isOwn)
        sight = &one;
      if (isOwn || own.known[lane].all.covers(one.reader, 1, one.time))
        least = std::max(least, one.version);
    }
    for (uint64_t version = location.newest; version > least; --version) {
      const Version &one = location.versions[version - first];
      if ((one.writer.cluster == reader.cluster && one.writer.number == reader.number) ||
          own.known[lane].all.covers(one.writer, 1, one.time))
        least = version;
    }
    uint64_t chosen = location.newest;
    if (least < chosen && draw % 4 == 0)
      chosen = least + draw / 4 % (chosen - least);
    if (!sight && chosen > first) // what has seen the first of them keeps nobody from any
      sight = &location.sights.emplace_back();
    if (sight)
      *sight = {reader, own.time, chosen};
    const Version &version = location.versions[chosen - first];
    see(version, warp, operation, lane);
    if (chosen != location.newest)
      return version.value;
  }
  return nullptr;
}

void Races::see(const Version &version, Warp &warp, const Operation &operation, int lane) {
  WarpClocks &own = *warp.clocks;
  const bool isAcquire = operation.strength == Strength::Acquire || operation.strength == Strength::AcquireRelease;
  for (const Published &one : version.published) {
    if (!isInScope(one.warp, own.number, one.scope) || !isInScope(own.number, one.warp, operation.scope))
      continue;
    if (isAcquire)
      own.known[lane].join(one.knowledge);
    else if (operation.destinations[0] != noSlot || operation.bytes != 0) // what nobody gets acquires nothing
      own.pending[lane].push_back({isInScope(own.number, one.warp, Scope::Cta)       ? Scope::Cta
                                   : isInScope(own.number, one.warp, Scope::Cluster) ? Scope::Cluster
                                                                                     : Scope::Gpu,
                                   one.knowledge});
  }
}

void Races::release(Warp &warp, uint32_t lanes, Knowledge &given) {
  WarpClocks &own = *warp.clocks;
  const Knowledge *before = nullptr;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const Knowledge &known = own.known[__builtin_ctz(left)];
    if (!before || !before->isSame(known))
      given.join(known);
    before = &known;
  }
  given.add(agentOf(own.number, 0), lanes, own.time);
}

void Races::acquire(Warp &warp, uint32_t lanes, const Knowledge &given) {
  Knowledge before, behind;
  bool isFirst = true;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    Knowledge &known = warp.clocks->known[__builtin_ctz(left)];
    if (isFirst || !known.isSame(before)) {
      before = known;
      known.join(given);
      behind = known;
      isFirst = false;
    } else {
      known = behind;
    }
  }
}

void Races::meet(Warp &warp, uint32_t lanes) {
  Knowledge all;
  release(warp, lanes, all);
  acquire(warp, lanes, all);
}

void Races::releaseFenced(Warp &warp, uint32_t lanes, Scope scope, Knowledge &given) {
  WarpClocks &own = *warp.clocks;
  for (uint64_t level = levelOf(scope); level < 3; ++level)
    for (uint32_t left = lanes & own.isFenced[level]; left != 0; left &= left - 1)
      given.join(own.fenced[level][__builtin_ctz(left)]);
}

void Races::acquireLater(Warp &warp, uint32_t lanes, Scope scope, const Knowledge &given) {
  for (uint32_t left = lanes; left != 0; left &= left - 1)
    warp.clocks->pending[__builtin_ctz(left)].push_back({scope, given});
}

void Races::fence(Warp &warp, const Operation &operation, uint32_t lanes) {
  WarpClocks &own = *warp.clocks;
  const uint64_t level = levelOf(operation.scope);
  const uint64_t domains[] = {own.number / warpsOfCta, clusterOf(own.number), 0};
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    auto &pending = own.pending[lane];
    if (operation.target & Acquires)
      for (size_t i = 0; i < pending.size();) {
        if (levelOf(pending[i].first) > level) {
          ++i;
          continue;
        }
        own.known[lane].join(pending[i].second);
        pending.erase(pending.begin() + static_cast<ptrdiff_t>(i));
      }
    Knowledge given;
    for (uint64_t i = 0; (operation.target & IsSequential) && i <= level; ++i)
      own.known[lane].join(sequential[i][domains[i]]);
    given = own.known[lane];
    given.add(agentOf(own.number, 0), uint32_t(1) << lane, own.time);
    for (uint64_t i = 0; i <= level; ++i) {
      if (operation.target & IsSequential)
        sequential[i][domains[i]] = given;
      if (!(operation.target & Releases))
        continue;
      own.fenced[i][lane] = given;
      own.isFenced[i] |= uint32_t(1) << lane;
    }
  }
}

void Races::fenceProxy(Warp &warp, uint32_t lanes, Proxied where) {
  WarpClocks &own = *warp.clocks;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    Knowledge &known = own.known[__builtin_ctz(left)];
    Clock &async = known.async[static_cast<size_t>(where)];
    async = known.all;
    async.add(agentOf(own.number, 0), left & -left, own.time);
  }
}

void Races::learn(Warp &warp, uint32_t lanes, const Agent &agent, uint32_t time) {
  Knowledge what;
  what.add(agent, 1, time);
  acquire(warp, lanes, what);
}

void Races::make(Warp &warp, int lane, const Agent &object) {
  warp.clocks->known[lane].add(object, 1, 1);
  warp.clocks->made[lane].push_back(object);
}

/// What was made is published, and seen by the asynchronous proxy; nothing else is.
void Races::fenceMade(Warp &warp, uint32_t lanes) {
  WarpClocks &own = *warp.clocks;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    for (const Agent &object : own.made[lane]) {
      own.known[lane].async[static_cast<size_t>(Proxied::Shared)].add(object, 1, 1);
      for (uint64_t level = 0; level <= levelOf(Scope::Cluster); ++level) {
        own.fenced[level][lane].add(object, 1, 1);
        own.fenced[level][lane].async[static_cast<size_t>(Proxied::Shared)].add(object, 1, 1);
        own.isFenced[level] |= uint32_t(1) << lane;
      }
    }
    own.made[lane].clear();
  }
}

bool Races::isMade(const Warp &warp, int lane, const Agent &object, bool isProxy) const {
  const Knowledge &known = warp.clocks->known[lane];
  return (isProxy ? known.async[static_cast<size_t>(Proxied::Shared)] : known.all).covers(object, 1, 1);
}

} // namespace k2c::ptx
