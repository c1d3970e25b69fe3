//===- MatrixMoves.cpp - ldmatrix and stmatrix ----------------------------===//
//
// PTX ISA, ldmatrix and stmatrix: one, two or four matrices of 8 x 8 elements of 16 bits. Lanes 8 i to 8 i + 7 name
// the rows of matrix i; lane l holds two neighbours of row l / 4, or of column l / 4 if the matrix is transposed.
//
//===----------------------------------------------------------------------===//
#include "Integers.h"
#include "Races.h"

namespace k2c::ptx {

namespace {

constexpr int rowBytes = 16, rows = 8;

/// The rows of a matrix as the lanes reach them whose elements they have, not those that name them; false: a
/// finding has been recorded.
bool rowsInLanes(Machine &machine, Warp &warp, const Operation &o, const uint64_t *addresses, Access access,
                 std::byte **found) {
  const uint32_t bytes = o.isSigned ? 2 : 4; // that lie together
  for (int i = 0; i < (o.isSigned ? 2 : 1); ++i) {
    uint64_t own[warpLanes];
    for (int lane = 0; lane < warpLanes; ++lane)
      own[lane] =
          addresses[o.isSigned ? lane % 4 * 2 + i : lane / 4] + bytes * uint32_t(o.isSigned ? lane / 4 : lane % 4);
    const Place place = machine.reachTogether(warp, o, own, allLanes, bytes, access);
    for (int lane = 0; lane < warpLanes; ++lane) {
      std::byte *at =
          place.data ? place.data + (own[lane] - place.first) : machine.reach(warp, o, own[lane], lane, bytes, access);
      if (!at)
        return false;
      if (o.isSigned ? lane / 4 == 0 : lane % 4 == 0)
        found[o.isSigned ? lane % 4 * 2 + i : lane / 4] = at;
    }
  }
  return true;
}

/// The rows of matrix `number`; false: a finding has been recorded.
bool rowsOf(Machine &machine, Warp &warp, const Operation &o, int number, Access access, std::byte **found) {
  uint64_t addresses[rows], bits = 0;
  for (int row = 0; row < rows; ++row)
    bits |= addresses[row] = machine.addressAt(warp, o.target, number * rows + row);
  if (machine.races && bits % rowBytes == 0)
    return rowsInLanes(machine, warp, o, addresses, access, found);
  for (int row = 0; row < rows; ++row) {
    found[row] = machine.reach(warp, o, addresses[row], number * rows + row, rowBytes, access);
    if (!found[row])
      return false;
  }
  return true;
}

/// Moves between rows and the slots of `lists`; `isSigned`: transposed.
template <bool isStore> Outcome moveMatrices(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  if (active != allLanes)
    return machine.fail(warp, o, ~active, "they are missing, and all lanes take part");
  for (int number = 0; number < o.count; ++number) {
    std::byte *at[rows];
    if (machine.options.isTrafficCounted) { // a matrix is a wavefront, if its rows lie in different banks
      uint64_t addresses[warpLanes] = {};
      for (int row = 0; row < rows; ++row)
        addresses[row] = machine.addressAt(warp, o.target, number * rows + row);
      machine.countTraffic(warp, o, addresses, (1 << rows) - 1, rowBytes, isStore ? Access::Write : Access::Read);
    }
    if (!rowsOf(machine, warp, o, number, isStore ? Access::Write : Access::Read, at))
      return Outcome::Failed;
    const Slot slot = machine.program.lists[o.first + static_cast<uint32_t>(number)];
    for (int lane = 0; lane < warpLanes; ++lane) {
      const int fixed = lane / 4, pair = lane % 4 * 2;
      uint16_t halves[2];
      if constexpr (isStore) {
        const uint32_t word = warp.source<uint32_t>(slot)[lane];
        halves[0] = static_cast<uint16_t>(word);
        halves[1] = static_cast<uint16_t>(word >> 16);
      }
      for (int i = 0; i < 2; ++i) {
        std::byte *element = o.isSigned ? at[pair + i] + 2 * fixed : at[fixed] + 2 * (pair + i);
        isStore ? std::memcpy(element, &halves[i], 2) : std::memcpy(&halves[i], element, 2);
      }
      if constexpr (!isStore)
        warp.destination<uint32_t>(slot)[lane] = uint32_t(halves[1]) << 16 | halves[0];
    }
  }
  machine.quiet = 0;
  return Outcome::Next;
}

void decodeMatrices(Decoder &d, bool isStore) {
  Operation &made = d.operation();
  if (!d.accept("sync") || !d.accept("aligned") || !d.accept("m8n8"))
    return decodeForm(d, nullptr, {});
  const int count = d.acceptOneOf({"x1", "x2", "x4"});
  made.isSigned = d.accept("trans");
  made.window = d.acceptOneOf({"shared", "shared::cta"}) >= 0 ? Window::Shared : Window::Generic;
  d.expectOperands(2, 2);
  if (count < 0 || !d.accept("b16") || d.hasFailed())
    return decodeForm(d, nullptr, {});
  made.isAligned = true;
  made.count = static_cast<uint8_t>(1 << count);
  const Operand &values = d.operandAt(isStore ? 1 : 0);
  if (values.kind != Operand::Kind::Vector || values.parts.size() != made.count)
    return d.fail("'" + d.instruction().spelling() + "' needs a vector of " + std::to_string(made.count) +
                  " registers");
  std::vector<Slot> slots;
  for (const Operand &one : values.parts)
    slots.push_back(isStore ? d.sourceOf(one, Type::B32) : d.destinationOf(one, Type::B32));
  made.first = d.addList(slots);
  made.target = d.addAddress(d.operandAt(isStore ? 0 : 1));
  made.run = isStore ? moveMatrices<true> : moveMatrices<false>;
}

} // namespace

void addMatrixMoves(Opcodes &opcodes) {
  opcodes["ldmatrix"] = [](Decoder &d) { decodeMatrices(d, false); };
  opcodes["stmatrix"] = [](Decoder &d) { decodeMatrices(d, true); };
}

} // namespace k2c::ptx
