//===- Mma.cpp - Matrix products of a warp --------------------------------===//
//
// PTX ISA, Warp Level Matrix Multiply-Accumulate Instructions: mma.sync of 16 rows and 8 columns, and wmma. Registers
// of mma.sync hold elements where the ISA says; those of wmma in an order of this machine: lane after lane, row after
// row. Their bits are those of wgmma, which were read off a device; those of mma.sync were not.
//
//===----------------------------------------------------------------------===//
#include "Integers.h"
#include "Operands.h"

namespace k2c::ptx {

namespace {

int fractionOf(const MatrixForm &form) { return form.elementBytes == 1 ? 13 : 25; }

Outcome refuseMissing(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  return machine.fail(warp, o, ~active, "they are missing, and all lanes take part");
}

/// Registers of an operand: `count` of `lists`, from `first` on.
struct Registers {
  uint32_t first, count;
};

/// Elements of a whole matrix in an order of `placeOf(register, lane, element in it)`.
template <class PlaceOf>
void read(const Machine &machine, const Warp &warp, Registers at, Element element, PlaceOf placeOf, float *values) {
  const uint32_t bytes = bytesOf(element), each = 4 / bytes;
  for (uint32_t part = 0; part < at.count; ++part) {
    const uint32_t *lanes = warp.source<uint32_t>(machine.program.lists[at.first + part]);
    for (uint32_t lane = 0; lane < uint32_t(warpLanes); ++lane)
      for (uint32_t i = 0; i < each; ++i)
        values[placeOf(part, lane, i)] = valueOf(element, lanes[lane] >> (8 * bytes % 32 * i));
  }
}

/// Calls `body(register, place of the sum, shift of its bits)` for each lane's sums.
template <class Body> void forSums(Sums sums, uint32_t count, Body body) {
  const uint32_t each = sums == Sums::F16 ? 2 : 1;
  for (uint32_t number = 0; number < count * each; ++number)
    for (uint32_t lane = 0; lane < uint32_t(warpLanes); ++lane)
      body(number / each, number, lane, 16 * (number % each));
}

/// lists: D, A, B, C; `target`: the form; `count`: registers of D.
Outcome multiplyOfWarp(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  if (active != allLanes)
    return refuseMissing(machine, warp, o, active);
  const MatrixForm &form = machine.program.matrixForms[o.target];
  machine.counts.multiplyAdds += uint64_t(form.rows) * form.columns * form.depth;
  const Registers inA{o.first + o.count, form.depth * form.elementBytes / 8}, inB{inA.first + inA.count, inA.count / 2},
      inC{inB.first + inB.count, o.count};
  const uint32_t each = 4 / form.elementBytes, halves = inB.count;
  float a[16 * 32], b[32 * 8];
  uint32_t sums[16 * 8];
  read(
      machine, warp, inA, form.a,
      [&](uint32_t part, uint32_t lane, uint32_t i) { return placeInA(part, lane, i, form.depth, form.elementBytes); },
      a);
  read(
      machine, warp, inB, form.b,
      [&](uint32_t part, uint32_t lane, uint32_t i) {
        return (part * form.depth / halves + lane % 4 * each + i) * form.columns + lane / 4;
      },
      b);
  const Slot *lists = machine.program.lists.data();
  forSums(form.sums, o.count, [&](uint32_t part, uint32_t number, uint32_t lane, uint32_t shift) {
    sums[placeInSums(number, lane, form.columns)] =
        warp.source<uint32_t>(lists[inC.first + part])[lane] >> shift & (form.sums == Sums::F16 ? 0xffff : ~0u);
  });
  multiply({form.rows, form.depth, form.columns, fractionOf(form), form.sums, form.isSaturated}, a, b, sums);
  forSums(form.sums, o.count, [&](uint32_t part, uint32_t number, uint32_t lane, uint32_t shift) {
    uint32_t &to = warp.destination<uint32_t>(lists[o.first + part])[lane];
    to = (shift == 0 ? 0 : to) | sums[placeInSums(number, lane, form.columns)] << shift;
  });
  return Outcome::Next;
}

/// The same of wmma, whose registers hold elements lane after lane.
Outcome multiplyOfFragments(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  if (active != allLanes)
    return refuseMissing(machine, warp, o, active);
  const MatrixForm &form = machine.program.matrixForms[o.target];
  machine.counts.multiplyAdds += uint64_t(form.rows) * form.columns * form.depth;
  const uint32_t each = 4 / form.elementBytes, ofA = form.rows * form.depth / warpLanes,
                 ofB = form.depth * form.columns / warpLanes, ofC = form.rows * form.columns / warpLanes;
  const uint32_t aAt = o.first + o.count, bAt = aAt + static_cast<uint32_t>(o.immediate >> 32),
                 cAt = bAt + static_cast<uint32_t>(o.immediate);
  std::vector<float> a(form.rows * form.depth), b(form.depth * form.columns);
  std::vector<uint32_t> sums(form.rows * form.columns);
  const auto inOrder = [each](uint32_t perLane) {
    return [each, perLane](uint32_t part, uint32_t lane, uint32_t i) { return lane * perLane + part * each + i; };
  };
  read(machine, warp, {aAt, ofA / each}, form.a, inOrder(ofA), a.data());
  read(machine, warp, {bAt, ofB / each}, form.b, inOrder(ofB), b.data());
  const Slot *lists = machine.program.lists.data();
  forSums(form.sums, o.count, [&](uint32_t part, uint32_t number, uint32_t lane, uint32_t shift) {
    sums[lane * ofC + number] =
        warp.source<uint32_t>(lists[cAt + part])[lane] >> shift & (form.sums == Sums::F16 ? 0xffff : ~0u);
  });
  multiply({form.rows, form.depth, form.columns, fractionOf(form), form.sums, form.isSaturated}, a.data(), b.data(),
           sums.data());
  forSums(form.sums, o.count, [&](uint32_t part, uint32_t number, uint32_t lane, uint32_t shift) {
    uint32_t &to = warp.destination<uint32_t>(lists[o.first + part])[lane];
    to = (shift == 0 ? 0 : to) | sums[lane * ofC + number] << shift;
  });
  return Outcome::Next;
}

/// Moves a matrix between memory and registers; `target`: the address, sources[1]: elements from line to line;
/// `immediate`: lines, and elements of one; `isSigned`: lines of memory are columns; `bytes` of an element.
template <bool isStore> Outcome moveFragment(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  if (active != allLanes)
    return refuseMissing(machine, warp, o, active);
  const auto rows = static_cast<uint32_t>(o.immediate >> 32), columns = static_cast<uint32_t>(o.immediate);
  const uint32_t perLane = rows * columns / warpLanes, each = 4 / o.bytes;
  const uint32_t stride = o.sources[1] == noSlot ? (o.isSigned ? rows : columns) : 0;
  for (uint32_t lane = 0; lane < uint32_t(warpLanes); ++lane)
    for (uint32_t i = 0; i < perLane; ++i) {
      const uint32_t row = (lane * perLane + i) / columns, column = (lane * perLane + i) % columns;
      const uint64_t step = stride != 0 ? stride : warp.source<uint32_t>(o.sources[1])[lane];
      const uint64_t at = o.isSigned ? column * step + row : row * step + column;
      std::byte *element = machine.reach(warp, o, machine.addressAt(warp, o.target, 0) + at * o.bytes,
                                         static_cast<int>(lane), o.bytes, isStore ? Access::Write : Access::Read);
      if (!element)
        return Outcome::Failed;
      const Slot slot = machine.program.lists[o.first + i / each];
      const uint32_t shift = 8 * o.bytes % 32 * (i % each);
      uint32_t bits = 0;
      if constexpr (isStore) {
        bits = warp.source<uint32_t>(slot)[lane] >> shift;
        std::memcpy(element, &bits, o.bytes);
      } else {
        std::memcpy(&bits, element, o.bytes);
        uint32_t &to = warp.destination<uint32_t>(slot)[lane];
        to = (shift == 0 ? 0 : to) | bits << shift;
      }
    }
  for (uint32_t i = (perLane + each - 1) / each; !isStore && i < o.count; ++i) // the ISA has more registers than needed
    std::fill_n(warp.destination<uint32_t>(machine.program.lists[o.first + i]), warpLanes, 0);
  machine.quiet = 0;
  return Outcome::Next;
}

/// m16n8k16
bool takeShape(Decoder &d, MatrixForm &form) {
  const std::string shape(d.nextModifier());
  unsigned rows = 0, columns = 0, depth = 0;
  int end = 0;
  if (shape.size() > 9 || std::sscanf(shape.c_str(), "m%2un%2uk%2u%n", &rows, &columns, &depth, &end) != 3 ||
      static_cast<size_t>(end) != shape.size())
    return false;
  d.acceptPrefix("");
  form.rows = rows;
  form.columns = columns;
  form.depth = depth;
  return true;
}

std::optional<Element> takeElement(Decoder &d) {
  const std::optional<Element> element = elementNamed(d.nextModifier());
  if (element)
    d.acceptPrefix("");
  return element;
}

/// Appends the registers of operand `index`; how many there are.
uint32_t addRegisters(Decoder &d, size_t index, bool isWritten, std::vector<Slot> &slots) {
  const Operand &values = d.operandAt(index);
  for (const Operand &one : values.parts)
    slots.push_back(isWritten ? d.destinationOf(one, Type::B32) : d.sourceOf(one, Type::B32));
  return static_cast<uint32_t>(values.parts.size());
}

/// .d.a.b.c behind the shape and the layouts; false: they do not go together.
bool takeTypes(Decoder &d, MatrixForm &form, bool isShort) {
  form.isSaturated = d.accept("satfinite");
  const std::optional<Sums> sums = sumsNamed(d.nextModifier());
  if (!sums)
    return false;
  d.acceptPrefix("");
  std::optional<Element> a = takeElement(d), b = a ? takeElement(d) : Element::F16;
  if (isShort && !a)
    a = b = Element::F16; // wmma.mma..f32.f32: of f16
  if (!a || !b || bytesOf(*a) != bytesOf(*b) || isInteger(*a) != isInteger(*b) || (bytesOf(*a) != 1 && *a != *b) ||
      isInteger(*a) != (*sums == Sums::S32) || sumsNamed(d.nextModifier()) != sums ||
      (*sums == Sums::F16 && *a != Element::F16))
    return false;
  d.acceptPrefix("");
  form.isSaturated |= d.accept("satfinite");
  form.a = *a;
  form.b = *b;
  form.sums = *sums;
  form.elementBytes = bytesOf(*a);
  return true;
}

void decodeMma(Decoder &d) {
  MatrixForm form{};
  Operation &made = d.operation();
  if (!d.accept("sync") || !d.accept("aligned") || !takeShape(d, form) || !d.accept("row") || !d.accept("col") ||
      !takeTypes(d, form, false) || form.rows != 16 || form.columns != 8 ||
      (form.depth * form.elementBytes != 16 && form.depth * form.elementBytes != 32))
    return decodeForm(d, nullptr, {});
  d.expectOperands(4, 4);
  if (d.hasFailed())
    return;
  std::vector<Slot> slots;
  const uint32_t ofD = addRegisters(d, 0, true, slots), ofA = addRegisters(d, 1, false, slots),
                 ofB = addRegisters(d, 2, false, slots), ofC = addRegisters(d, 3, false, slots);
  if (ofD != (form.sums == Sums::F16 ? 2u : 4u) || ofC != ofD || ofA != form.depth * form.elementBytes / 8 ||
      ofB != ofA / 2)
    return d.fail("'" + d.instruction().spelling() + "' has operands of " + std::to_string(ofD) + ", " +
                  std::to_string(ofA) + ", " + std::to_string(ofB) + " and " + std::to_string(ofC) + " registers");
  made.first = d.addList(slots);
  made.count = static_cast<uint8_t>(ofD);
  made.target = d.addMatrixForm(form);
  made.isAligned = true;
  made.run = multiplyOfWarp;
}

bool isShapeOfFragments(const MatrixForm &form) {
  return form.rows * form.columns == 256 && form.rows >= 8 && form.columns >= 8 &&
         (form.depth == 16 || (form.depth == 8 && form.rows == 16));
}

void decodeFragmentProduct(Decoder &d) {
  MatrixForm form{};
  Operation &made = d.operation();
  const bool isKnown = d.accept("sync") && d.accept("aligned") && d.acceptOneOf({"row", "col"}) >= 0 &&
                       d.acceptOneOf({"row", "col"}) >= 0 && takeShape(d, form) && takeTypes(d, form, true);
  if (!isKnown || !isShapeOfFragments(form))
    return decodeForm(d, nullptr, {});
  d.expectOperands(4, 4);
  if (d.hasFailed())
    return;
  std::vector<Slot> slots;
  const uint32_t ofD = addRegisters(d, 0, true, slots), ofA = addRegisters(d, 1, false, slots),
                 ofB = addRegisters(d, 2, false, slots), ofC = addRegisters(d, 3, false, slots);
  const uint32_t each = 4 / form.elementBytes, sums = form.sums == Sums::F16 ? 4 : 8;
  if (ofD != sums || ofC != sums || ofA < form.rows * form.depth / warpLanes / each ||
      ofB < form.columns * form.depth / warpLanes / each)
    return decodeForm(d, nullptr, {});
  made.first = d.addList(slots);
  made.count = static_cast<uint8_t>(ofD);
  made.immediate = uint64_t(ofA) << 32 | ofB;
  made.target = d.addMatrixForm(form);
  made.isAligned = true;
  made.run = multiplyOfFragments;
}

/// wmma.load.a, .b and .c, wmma.store.d
void decodeFragmentMove(Decoder &d, bool isStore) {
  Operation &made = d.operation();
  MatrixForm form{};
  const int which = isStore ? (d.accept("d") ? 2 : -1) : d.acceptOneOf({"a", "b", "c"});
  const bool isKnown = which >= 0 && d.accept("sync") && d.accept("aligned");
  const int layout = d.acceptOneOf({"row", "col"});
  if (!isKnown || layout < 0 || !takeShape(d, form) || !isShapeOfFragments(form))
    return decodeForm(d, nullptr, {});
  const int space = d.acceptOneOf({"global", "shared", "shared::cta"});
  made.window = space < 0 ? Window::Generic : space == 0 ? Window::Global : Window::Shared;
  const std::optional<Element> element = which == 2 ? std::nullopt : takeElement(d);
  const std::optional<Sums> sums = which == 2 ? sumsNamed(d.nextModifier()) : std::nullopt;
  if (!element && !sums)
    return decodeForm(d, nullptr, {});
  if (sums)
    d.acceptPrefix("");
  d.expectOperands(2, 3);
  if (d.hasFailed())
    return;
  const uint32_t rows = which == 1 ? form.depth : form.rows, columns = which == 0 ? form.depth : form.columns;
  made.bytes = static_cast<uint8_t>(element ? bytesOf(*element) : *sums == Sums::F16 ? 2 : 4);
  made.immediate = uint64_t(rows) << 32 | columns;
  made.isSigned = layout == 1;
  std::vector<Slot> slots;
  const uint32_t count = addRegisters(d, isStore ? 1 : 0, !isStore, slots);
  if (count > 8 || count * 4 / made.bytes < rows * columns / warpLanes)
    return decodeForm(d, nullptr, {});
  made.count = static_cast<uint8_t>(count);
  made.first = d.addList(slots);
  made.target = d.addAddress(d.operandAt(isStore ? 0 : 1));
  if (d.operandCount() == 3)
    made.sources[1] = d.source(2, Type::B32);
  made.isAligned = true;
  made.run = isStore ? moveFragment<true> : moveFragment<false>;
}

} // namespace

void addMma(Opcodes &opcodes) {
  opcodes["mma"] = decodeMma;
  opcodes["wmma"] = [](Decoder &d) {
    if (d.accept("mma"))
      return decodeFragmentProduct(d);
    const int what = d.acceptOneOf({"load", "store"});
    if (what < 0)
      return decodeForm(d, nullptr, {});
    decodeFragmentMove(d, what == 1);
  };
}

} // namespace k2c::ptx
