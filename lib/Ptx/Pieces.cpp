//===- Pieces.cpp - What a bulk copy moves --------------------------------===//
#include "Pieces.h"
#include "Races.h"

#include <algorithm>

namespace k2c::ptx {

constexpr uint64_t chunkBytes = 16;

/// Where the swizzle puts what belongs at `address`: bits of the line number are added to those of the chunk.
static uint64_t swizzled(uint64_t address, uint32_t swizzleBytes) {
  return swizzleBytes == 0 ? address : address ^ (address >> 3 & (swizzleBytes - chunkBytes));
}

std::vector<Piece> piecesOf(const TensorMap &map, const int32_t *coordinates, uint64_t shared) {
  uint64_t lines = 1;
  for (uint32_t axis = 1; axis < map.rank; ++axis)
    lines *= map.box[axis];
  const uint64_t lineBytes = uint64_t(map.box[0]) * map.elementBytes;
  std::vector<Piece> pieces;
  for (uint64_t line = 0; line < lines; ++line) {
    bool isInside = true;
    uint64_t left = line, global = map.base;
    for (uint32_t axis = 1; axis < map.rank; ++axis) {
      const int64_t at = int64_t(coordinates[axis]) + static_cast<int64_t>(left % map.box[axis]);
      left /= map.box[axis];
      isInside &= at >= 0 && static_cast<uint64_t>(at) < map.extents[axis];
      global += static_cast<uint64_t>(at) * map.strides[axis];
    }
    for (uint64_t begin = 0; begin < lineBytes; begin += chunkBytes) {
      const uint64_t bytes = std::min(chunkBytes, lineBytes - begin);
      const uint64_t to = swizzled(shared + line * lineBytes + begin, map.swizzleBytes);
      const int64_t first = int64_t(coordinates[0]) + static_cast<int64_t>(begin / map.elementBytes);
      if (isInside && first >= 0 && static_cast<uint64_t>(first) + bytes / map.elementBytes <= map.extents[0]) {
        auto *const from = reinterpret_cast<std::byte *>(global + static_cast<uint64_t>(first) * map.elementBytes);
        pieces.push_back({to, from, static_cast<uint32_t>(bytes)});
        continue;
      }
      for (uint64_t byte = 0; byte < bytes; byte += map.elementBytes) { // the first axis may end within a chunk
        const int64_t at = int64_t(coordinates[0]) + static_cast<int64_t>((begin + byte) / map.elementBytes);
        const bool isElement = isInside && at >= 0 && static_cast<uint64_t>(at) < map.extents[0];
        std::byte *from =
            isElement ? reinterpret_cast<std::byte *>(global + static_cast<uint64_t>(at) * map.elementBytes) : nullptr;
        if (byte > 0 && (pieces.back().global ? from == pieces.back().global + pieces.back().bytes : !from))
          pieces.back().bytes += map.elementBytes;
        else
          pieces.push_back({to + byte, from, map.elementBytes});
      }
    }
  }
  return pieces;
}

bool mayCopy(Machine &machine, Warp &warp, const Operation &operation, int lane, Cta &cta,
             const std::vector<Piece> &pieces, const Copier &copier) {
  const bool isToShared = copier.isToShared;
  const auto refuse = [&](std::string what, std::string remedy) {
    machine.fail(warp, operation, uint32_t(1) << lane, std::move(what), std::move(remedy));
    return false;
  };
  const auto isRace = [&](auto where, const Touched &at, bool isWrite) {
    const std::string other = machine.races->copy(warp, operation, lane, isWrite ? copier.writtenBy : copier.readBy,
                                                  copier.time, copier.isProxy, at, isWrite);
    if (!other.empty())
      machine.failRace(warp, operation, uint32_t(1) << lane, "it copies bytes " + where(), other, copier.isProxy);
    return !other.empty();
  };
  for (const Piece &piece : pieces) {
    const uint64_t offset = piece.shared - firstSharedAddress, size = cta.shared.size();
    const auto at = [&] { return "shared address " + std::to_string(piece.shared); };
    if (piece.shared < firstSharedAddress || offset > size || piece.bytes > size - offset)
      return refuse("it copies " + std::to_string(piece.bytes) + " bytes at " + at() + ", and there are " +
                        std::to_string(size) + " from " + std::to_string(firstSharedAddress) + " on",
                    "stay within what the launch gives");
    if (cta.holdsMBarrier(piece.shared, piece.bytes))
      return refuse("it copies " + std::to_string(piece.bytes) + " bytes at " + at() + ", and an mbarrier is there",
                    "use mbarrier.inval before");
    if (!isToShared && piece.global && !cta.sharedWritten.has(offset, piece.bytes))
      return refuse("it copies bytes at " + at() + " that were never written", "write them first");
    if (machine.races && isRace([&] { return "at " + at(); },
                                {cta.shared.data(), size, Proxied::Shared, offset, piece.bytes}, isToShared))
      return false;
    if (!piece.global)
      continue;
    GlobalMemory::Range *range = machine.globalAt(piece.global, piece.bytes);
    if (!range) {
      machine.symptom = Symptom::IllegalAddress;
      return refuse("it copies " + std::to_string(piece.bytes) + " bytes of global memory that no allocation holds",
                    "stay within what the launch gives");
    }
    const auto first = static_cast<uint64_t>(piece.global - range->data);
    if ((isToShared || copier.reduced != 0) && !range->written.has(first, piece.bytes))
      return refuse("it copies bytes of '" + range->name + "' that were never written", "write them first");
    if (machine.races &&
        isRace([&] { return "of '" + range->name + "'"; },
               {range->data, range->bytes, Proxied::Global, first, piece.bytes, copier.reduced}, !isToShared))
      return false;
  }
  return true;
}

uint64_t fill(Cta &cta, const std::vector<Piece> &pieces) {
  uint64_t bytes = 0;
  for (const Piece &piece : pieces) {
    std::byte *to = cta.shared.data() + (piece.shared - firstSharedAddress);
    if (piece.global)
      std::memcpy(to, piece.global, piece.bytes);
    else
      std::memset(to, 0, piece.bytes);
    cta.sharedWritten.add(piece.shared - firstSharedAddress, piece.bytes);
    bytes += piece.bytes;
  }
  return bytes;
}

} // namespace k2c::ptx
