//===- BulkCopies.cpp - Copies of the asynchronous proxy ------------------===//
//
// PTX ISA, Bulk copy, Tensor copy: cp.async.bulk, cp.async.bulk.tensor, those of cp.reduce, their groups;
// fence.proxy.async, griddepcontrol. A copy to shared memory is done at a time that is drawn, and completes its bytes
// on an mbarrier. A copy to global memory is read and written no later than its thread waits for its group; a kernel
// may end without waiting.
//
//===----------------------------------------------------------------------===//
#include "Integers.h"
#include "MBarriers.h"
#include "Pieces.h"
#include "Races.h"

#include <algorithm>

namespace k2c::ptx {

namespace {

/// What a copy is, in Operation::target; behind these bits the kind of a tensor's reduction.
enum Form : uint32_t { IsTensor = 1, HasMask = 2, Reduces = 4 };
constexpr uint32_t formBits = 3;

/// Addresses: destination, source, mbarrier; of a tensor's side the map. lists: coordinates; sources: mask, bytes.
std::optional<std::vector<Piece>> piecesAt(Machine &machine, Warp &warp, const Operation &o, int lane,
                                           uint32_t globalSide, uint64_t shared) {
  const uint64_t address = machine.addressAt(warp, o.first + globalSide, lane);
  const auto refuse = [&](std::string what, std::string remedy) {
    machine.fail(warp, o, uint32_t(1) << lane, std::move(what), std::move(remedy));
    return std::nullopt;
  };
  if (!(o.target & IsTensor)) {
    const uint32_t bytes = warp.source<uint32_t>(o.sources[1])[lane];
    if (bytes % 16 != 0 || shared % 16 != 0 || address % 16 != 0)
      return refuse("it copies " + std::to_string(bytes) +
                        " bytes from or to addresses of which one is no multiple of 16",
                    "give multiples of 16");
    std::vector<Piece> pieces;
    for (uint32_t begin = 0; begin < bytes; begin += 16)
      pieces.push_back({shared + begin, reinterpret_cast<std::byte *>(address + begin), 16});
    return pieces;
  }
  std::byte object[tensorMapBytes];
  for (uint32_t half = 0; half < 2; ++half) {
    const std::byte *read = machine.reach(warp, o, address + half * 64, lane, 64, Access::Read);
    if (!read)
      return std::nullopt;
    std::memcpy(object + half * 64, read, 64);
  }
  const std::optional<TensorMap> map = decodeTensorMap(object);
  if (!map)
    return refuse("what its address names is no tensor map", "encode one with the driver");
  if (map->rank != o.count)
    return refuse("it copies a tensor of " + std::to_string(o.count) + " dimensions, and its map has " +
                      std::to_string(map->rank),
                  "let them agree");
  if (shared % 128 != 0)
    return refuse("it copies a tensor at shared address " + std::to_string(shared) + ", which is no multiple of 128",
                  "align it");
  int32_t coordinates[TensorMap::maxRank] = {};
  for (uint32_t axis = 0; axis < o.count; ++axis)
    coordinates[axis] = static_cast<int32_t>(warp.source<uint32_t>(machine.program.lists[o.immediate + axis])[lane]);
  return piecesOf(*map, coordinates, shared);
}

/// A copy for one CTA of the cluster.
bool load(Machine &machine, Warp &warp, const Operation &o, int lane, Cta &cta,
          const std::shared_ptr<const std::vector<Piece>> &pieces, uint64_t barrier) {
  MBarrier *object = mbarrierOf(machine, warp, o, cta, barrier, lane);
  if (!object)
    return false;
  const auto time = static_cast<uint32_t>(object->phase + 1);
  if (!mayCopy(machine, warp, o, lane, cta, *pieces, {true, true, object->agent, object->agent, time}))
    return false;
  machine.defer(warp, [&machine, &warp, &o, &cta, object, lane, time, pieces] {
    object->bytes -= static_cast<int64_t>(fill(cta, *pieces));
    if (machine.races)
      object->given.add(object->agent, 1, time);
    if (const std::string wrong = advance(*object); !wrong.empty())
      machine.fail(warp, o, uint32_t(1) << lane, wrong);
  });
  return true;
}

Outcome copyIn(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    uint64_t shared = machine.addressAt(warp, o.first, lane), barrier = machine.addressAt(warp, o.first + 2, lane);
    Cta *cta = machine.sharedAt(warp, shared);
    machine.sharedAt(warp, barrier);
    if (!cta)
      return machine.fail(warp, o, uint32_t(1) << lane, "it copies to a CTA that the cluster does not have");
    std::vector<Cta> &ctas = cta->cluster->ctas;
    const uint32_t mask =
        o.target & HasMask ? warp.source<uint32_t>(o.sources[0])[lane] & 0xffff : uint32_t(1) << cta->rank;
    if (mask == 0 || mask >> ctas.size() != 0)
      return machine.fail(warp, o, uint32_t(1) << lane,
                          "its mask names CTAs that the cluster of " + std::to_string(ctas.size()) + " does not have");
    std::optional<std::vector<Piece>> made = piecesAt(machine, warp, o, lane, 1, shared);
    if (!made)
      return Outcome::Failed;
    const auto pieces = std::make_shared<const std::vector<Piece>>(std::move(*made));
    for (uint32_t rank = 0; rank < ctas.size(); ++rank)
      if ((mask >> rank & 1) && !load(machine, warp, o, lane, ctas[rank], pieces, barrier))
        return Outcome::Failed;
  }
  machine.quiet = 0;
  return Outcome::Next;
}

void readPieces(const Cta &cta, Outgoing &copy) {
  if (copy.isRead)
    return;
  for (const Piece &piece : copy.pieces) {
    const std::byte *from = cta.shared.data() + (piece.shared - firstSharedAddress);
    copy.read.insert(copy.read.end(), from, from + piece.bytes);
  }
  copy.isRead = true;
}

void writePieces(Machine &machine, const Cta &cta, Outgoing &copy) {
  readPieces(cta, copy);
  const std::byte *from = copy.read.data();
  for (const Piece &piece : copy.pieces) {
    if (piece.global) {
      copy.combine ? copy.combine(piece.global, from, piece.bytes) : (void)std::memcpy(piece.global, from, piece.bytes);
      if (GlobalMemory::Range *range = machine.globalAt(piece.global, piece.bytes))
        range->written.add(static_cast<uint64_t>(piece.global - range->data), piece.bytes);
    }
    from += piece.bytes;
  }
}

/// What a copy of `lane` does with what is there, element by element of the bytes that are set; null: it overwrites, or
/// a finding has been recorded.
Combine combineOf(Machine &machine, Warp &warp, const Operation &o, int lane, uint32_t &bytes) {
  bytes = o.bytes;
  if (!(o.target & IsTensor) || !(o.target & Reduces))
    return o.combine;
  const std::byte *object = machine.reach(warp, o, machine.addressAt(warp, o.first, lane), lane, 64, Access::Read);
  if (!object)
    return nullptr;
  const Type type = decodeTensorMap(object)->type; // piecesAt() has found it to be one
  const bool isLogic = !reductionOf(o.target >> formBits, type);
  bytes = static_cast<uint32_t>(bytesOf(type));
  const Combine made = reductionOf(o.target >> formBits, isLogic ? (bytes == 8 ? Type::B64 : Type::B32) : type);
  if (!made || (isLogic && (bytes < 4 || kindOf(type) == TypeKind::Float)))
    machine.fail(warp, o, uint32_t(1) << lane,
                 "its map has elements of ." + std::string(spellingOf(type)) + ", which it cannot reduce",
                 "encode one with their type");
  return made;
}

Outcome copyOut(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    uint64_t shared = machine.addressAt(warp, o.first + 1, lane);
    Cta *cta = machine.sharedAt(warp, shared);
    if (cta != warp.cta)
      return machine.fail(warp, o, uint32_t(1) << lane, "it copies from a CTA that is not its own");
    std::optional<std::vector<Piece>> pieces = piecesAt(machine, warp, o, lane, 0, shared);
    if (!pieces)
      return Outcome::Failed;
    uint32_t reduced = 0;
    const Combine combine = combineOf(machine, warp, o, lane, reduced);
    if (!combine && reduced != 0)
      return Outcome::Failed;
    BulkGroups &groups = warp.bulk[lane];
    if (machine.races && groups.reads.number == 0) {
      groups.reads = machine.races->addAgent(warp);
      groups.writes = machine.races->addAgent(warp);
    }
    if (!mayCopy(machine, warp, o, lane, *cta, *pieces,
                 {false, true, groups.reads, groups.writes, groups.count + 1, reduced}))
      return Outcome::Failed;
    groups.open.push_back({std::move(*pieces), {}, false, combine});
  }
  return Outcome::Next;
}

Outcome commit(Machine &machine, Warp &warp, const Operation &, uint32_t active) {
  for (uint32_t left = active; left != 0; left &= left - 1) {
    BulkGroups &groups = warp.bulk[__builtin_ctz(left)];
    groups.closed.push_back(std::move(groups.open));
    groups.open.clear();
    ++groups.count;
    const uint32_t number = groups.count;
    machine.defer(warp, [&machine, &warp, &groups, number] { // unless it has been waited for
      const size_t done = groups.count - groups.closed.size();
      for (size_t i = done; i < number; ++i)
        for (Outgoing &copy : groups.closed[i - done])
          writePieces(machine, *warp.cta, copy);
      groups.closed.erase(groups.closed.begin(),
                          groups.closed.begin() + static_cast<ptrdiff_t>(number > done ? number - done : 0));
    });
  }
  return Outcome::Next;
}

/// `immediate`: groups that may be open; `isSigned`: only their reads are waited for.
Outcome waitForGroups(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    BulkGroups &groups = warp.bulk[lane];
    const size_t open = groups.closed.size() > o.immediate ? groups.closed.size() - o.immediate : 0;
    for (size_t i = 0; i < open; ++i)
      for (Outgoing &copy : groups.closed[i])
        o.isSigned ? readPieces(*warp.cta, copy) : writePieces(machine, *warp.cta, copy);
    if (!o.isSigned)
      groups.closed.erase(groups.closed.begin(), groups.closed.begin() + static_cast<ptrdiff_t>(open));
    const uint32_t complete = groups.count > o.immediate ? groups.count - static_cast<uint32_t>(o.immediate) : 0;
    if (!machine.races || complete == 0 || groups.reads.number == 0)
      continue;
    machine.races->learn(warp, uint32_t(1) << lane, groups.reads, complete);
    if (!o.isSigned)
      machine.races->learn(warp, uint32_t(1) << lane, groups.writes, complete);
  }
  machine.quiet = 0;
  return Outcome::Next;
}

/// cp[.reduce].async.bulk[.tensor.Nd].shared::cluster.global.. or .global.shared::cta..
void decodeCopy(Decoder &d, bool isReduction) {
  Operation &made = d.operation();
  const bool isTensor = d.accept("tensor");
  if (isTensor)
    made.target = IsTensor;
  if (isTensor) {
    const int rank = d.acceptOneOf({"1d", "2d", "3d", "4d", "5d"});
    if (rank < 0)
      return decodeForm(d, nullptr, {});
    made.count = static_cast<uint8_t>(rank + 1);
  }
  const bool isIn = !isReduction && d.acceptOneOf({"shared::cluster", "shared::cta"}) >= 0;
  if (isIn ? !d.accept("global") : !d.accept("global") || !d.accept("shared::cta"))
    return decodeForm(d, nullptr, {});
  if (isTensor && isReduction) {
    const std::optional<uint32_t> kind = takeReductionKind(d);
    if (!kind)
      return decodeForm(d, nullptr, {});
    made.target |= Reduces | *kind << formBits;
  }
  if (isTensor)
    d.accept("tile");
  if (!d.accept(isIn ? "mbarrier::complete_tx::bytes" : "bulk_group"))
    return decodeForm(d, nullptr, {});
  if (isIn && d.accept("multicast::cluster"))
    made.target |= HasMask;
  const bool hasPolicy = d.accept("L2::cache_hint");
  if (isReduction && !isTensor && !(made.combine = takeReduction(d)))
    return decodeForm(d, nullptr, {});
  const size_t count = 2 + !isTensor + isIn + ((made.target & HasMask) != 0) + hasPolicy;
  d.expectOperands(count, count);
  if (d.hasFailed())
    return;
  made.run = isIn ? copyIn : copyOut;
  made.window = Window::Generic; // of the map
  made.first = d.addAddress(d.operandAt(0));
  d.addAddress(d.operandAt(1));
  size_t next = 2;
  if (isTensor) {
    const Operand &map = d.operandAt(isIn ? 1 : 0);
    if (map.parts.size() != 2 || map.parts[1].kind != Operand::Kind::Vector || map.parts[1].parts.size() != made.count)
      return d.fail("'" + d.instruction().spelling() + "' needs a map and " + std::to_string(made.count) +
                    " coordinates");
    std::vector<Slot> coordinates;
    for (const Operand &one : map.parts[1].parts)
      coordinates.push_back(d.sourceOf(one, Type::B32));
    made.immediate = d.addList(coordinates);
  } else {
    made.sources[1] = d.source(next++, Type::B32);
  }
  if (isIn)
    d.addAddress(d.operandAt(next++));
  if (made.target & HasMask)
    made.sources[0] = d.source(next++, Type::B16);
  if (hasPolicy)
    d.source(next, Type::B64);
}

void decodeCp(Decoder &d) {
  const bool isReduction = d.accept("reduce");
  if (!d.accept("async"))
    return decodeForm(d, nullptr, {});
  if (!d.accept("bulk") || (isReduction && d.nextModifier() != "global" && d.nextModifier() != "tensor"))
    return isReduction ? decodeForm(d, nullptr, {}) : decodeAsyncCopy(d);
  Operation &made = d.operation();
  if (d.accept("commit_group")) {
    d.expectOperands(0, 0);
    made.run = commit;
    return;
  }
  if (d.accept("wait_group")) {
    made.isSigned = d.accept("read");
    d.expectOperands(1, 1);
    made.immediate = d.constant(d.operandAt(0), "the number of groups");
    made.run = waitForGroups;
    return;
  }
  decodeCopy(d, isReduction);
}

} // namespace

Outcome fenceProxy(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  for (const Proxied where : {Proxied::Shared, Proxied::Global})
    if (machine.races && (o.target >> static_cast<uint32_t>(where) & 1))
      machine.races->fenceProxy(warp, active, where);
  return Outcome::Next;
}

void addBulkCopies(Opcodes &opcodes) {
  opcodes["cp"] = decodeCp;
  opcodes["griddepcontrol"] = [](Decoder &d) { // a launch begins when those before it have ended
    if (d.acceptOneOf({"launch_dependents", "wait"}) < 0)
      return decodeForm(d, nullptr, {});
    d.expectOperands(0, 0);
    d.operation().run = [](Machine &, Warp &, const Operation &, uint32_t) { return Outcome::Next; };
  };
}

} // namespace k2c::ptx
