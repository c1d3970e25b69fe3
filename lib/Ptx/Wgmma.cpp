//===- Wgmma.cpp - Matrix products of a warpgroup -------------------------===//
//
// PTX ISA, Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions: wgmma.mma_async, fence, commit_group,
// wait_group. Each of the four warps computes its 16 rows. Whether a warp that has waited knows of its own rows alone
// (Options::isByWarp, what the ISA promises) or of those of its warpgroup, is chosen. Until then its accumulators, and
// registers of A, may not be touched; what threads have written there needs a wgmma.fence before.
//
//===----------------------------------------------------------------------===//
#include "Integers.h"
#include "Operands.h"
#include "Races.h"

#include <algorithm>
#include <deque>

namespace k2c::ptx {

namespace {

constexpr uint32_t rowsOfWarp = 16;

/// Reads of shared memory by one product of one warp: the bytes of an operand.
bool readShared(Machine &machine, Warp &warp, const Operation &o, uint64_t address, uint32_t bytes) {
  Cta &cta = *warp.cta;
  const uint64_t offset = address - firstSharedAddress, size = cta.shared.size();
  if (address < firstSharedAddress || offset > size || bytes > size - offset) {
    machine.fail(warp, o, allLanes,
                 "its descriptor reaches shared address " + std::to_string(address) + ", and there are " +
                     std::to_string(size) + " bytes from " + std::to_string(firstSharedAddress) + " on",
                 "stay within what the launch gives");
    return false;
  }
  if (!cta.sharedWritten.has(offset, bytes)) {
    machine.fail(warp, o, allLanes,
                 "it multiplies bytes at shared address " + std::to_string(address) + " that were never written",
                 "write them first");
    return false;
  }
  if (!machine.races)
    return true;
  const std::string other = machine.races->copy(warp, o, 0, warp.products.agent, warp.products.closed + 1, true,
                                                {cta.shared.data(), size, Proxied::Shared, offset, bytes}, false);
  if (other.empty())
    return true;
  machine.failRace(warp, o, allLanes, "it multiplies bytes at shared address " + std::to_string(address), other, true);
  return false;
}

/// All lines of an operand, in runs of 16 bytes.
bool readOperand(Machine &machine, Warp &warp, const Operation &o, const MatrixDescriptor &at, uint32_t first,
                 uint32_t lines, const MatrixForm &form, bool isTransposed) {
  constexpr uint32_t chunk = 16;
  const uint32_t each = chunk / form.elementBytes;
  for (uint32_t line = 0; line < lines; line += isTransposed ? each : 1)
    for (uint32_t k = 0; k < form.depth; k += isTransposed ? 1 : each)
      if (!readShared(machine, warp, o,
                      at.addressOf(first + line, k, form.elementBytes, isTransposed) & ~uint64_t(chunk - 1), chunk))
        return false;
  return true;
}

/// `lines` lines of an operand: element (line, k) goes to `values[line * lineStep + k * depthStep]`.
void valuesIn(const Cta &cta, const MatrixDescriptor &at, uint32_t first, uint32_t lines, const MatrixForm &form,
              Element element, bool isTransposed, uint32_t lineStep, uint32_t depthStep, float *values) {
  constexpr uint32_t chunk = 16;
  const uint32_t each = chunk / form.elementBytes;
  for (uint32_t line = 0; line < lines; line += isTransposed ? each : 1)
    for (uint32_t k = 0; k < form.depth; k += isTransposed ? 1 : each) {
      const uint64_t address = at.addressOf(first + line, k, form.elementBytes, isTransposed);
      valuesOf(element, cta.shared.data() + (address - firstSharedAddress), each, isTransposed ? lineStep : depthStep,
               values + size_t(line) * lineStep + size_t(k) * depthStep);
    }
}

/// What B holds of the products that one wait ends: the warps of a warpgroup multiply with the same.
class Factors {
public:
  /// [depth][columns].
  const float *of(const Cta &cta, const Product &product, const MatrixForm &form) {
    for (const Decoded &one : decoded)
      if (one.descriptor == product.descriptorB && one.form == &form)
        return one.values.data();
    Decoded &made = decoded.emplace_back();
    made.descriptor = product.descriptorB;
    made.form = &form;
    made.values.resize(size_t(form.depth) * form.columns);
    valuesIn(cta, MatrixDescriptor(product.descriptorB), 0, form.columns, form, form.b, form.isTransposedB, 1,
             form.columns, made.values.data());
    return made.values.data();
  }

private:
  struct Decoded {
    uint64_t descriptor = 0;
    const MatrixForm *form = nullptr;
    std::vector<float> values;
  };
  std::deque<Decoded> decoded;
};

/// placeInSums() of each lane for accumulator `number`.
template <class Body> void forLanesOfSums(uint32_t number, uint32_t columns, Body body) {
  const uint32_t first = placeInSums(number, 0, columns);
  for (uint32_t row = 0; row < 8; ++row)
    for (uint32_t pair = 0; pair < 4; ++pair)
      body(4 * row + pair, first + row * columns + 2 * pair);
}

void compute(Machine &machine, Warp &warp, const Product &product, Factors &factors) {
  const Operation &o = *product.operation;
  const MatrixForm &form = machine.program.matrixForms[o.target];
  const Cta &cta = *warp.cta;
  static thread_local std::vector<float> a;
  static thread_local std::vector<uint32_t> sums;
  a.resize(rowsOfWarp * form.depth);
  sums.assign(rowsOfWarp * form.columns, 0);
  const uint32_t each = 4 / form.elementBytes;
  if (form.isRegisterA)
    for (uint32_t part = 0; part < 4; ++part)
      for (uint32_t lane = 0; lane < uint32_t(warpLanes); ++lane)
        for (uint32_t i = 0; i < each; ++i)
          a[placeInA(part, lane, i, form.depth, form.elementBytes)] =
              valueOf(form.a, product.a[part][lane] >> (8 * form.elementBytes % 32 * i));
  else
    valuesIn(cta, MatrixDescriptor(product.descriptorA), warp.index % 4 * rowsOfWarp, rowsOfWarp, form, form.a,
             form.isTransposedA, form.depth, 1, a.data());
  const float *b = factors.of(cta, product, form);
  if (form.isNegatedA != form.isNegatedB)
    for (float &value : a)
      value = -value;
  const Slot *slots = &machine.program.lists[o.first];
  const uint32_t halves = form.sums == Sums::F16 ? 2 : 1, mask = halves == 2 ? 0xffff : ~0u; // of a register
  for (uint32_t i = 0; product.isAdded && i < form.columns / 2; ++i) {
    const uint32_t *from = warp.source<uint32_t>(slots[i / halves]), shift = 16 * (i % halves);
    forLanesOfSums(i, form.columns, [&](uint32_t lane, uint32_t place) { sums[place] = from[lane] >> shift & mask; });
  }
  constexpr int fractionOfHalves = 25, fractionOfBytes = 13;
  multiply({rowsOfWarp, form.depth, form.columns, form.elementBytes == 1 ? fractionOfBytes : fractionOfHalves,
            form.sums, form.isSaturated},
           a.data(), b, sums.data());
  for (uint32_t i = 0; i < form.columns / 2; ++i) {
    uint32_t *to = warp.destination<uint32_t>(slots[i / halves]), kept = i % halves == 0 ? 0 : ~0u;
    forLanesOfSums(i, form.columns, [&](uint32_t lane, uint32_t place) {
      to[lane] = (to[lane] & kept) | sums[place] << (16 * (i % halves));
    });
  }
}

/// Registers of the accumulators, of which those of f16 are two in one.
uint32_t sumRegisters(const MatrixForm &form) { return form.columns / (form.sums == Sums::F16 ? 4 : 2); }

uint32_t registersOf(const MatrixForm &form) { return sumRegisters(form) + (form.isRegisterA ? 4 : 0); }

/// Numbers of the accumulators and registers of A of a product, which lie behind their slots.
template <class Body> void forRegisters(const Machine &machine, const Product &product, Body body) {
  const Operation &o = *product.operation;
  const uint32_t count = registersOf(machine.program.matrixForms[o.target]);
  for (uint32_t i = 0; i < count; ++i)
    body(machine.program.lists[o.first + count + i]);
}

Outcome multiply(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  const MatrixForm &form = machine.program.matrixForms[o.target];
  Products &products = warp.products;
  if (active != allLanes)
    return machine.fail(warp, o, ~active, "they are missing, and all lanes take part");
  if (machine.races && products.agent.number == 0)
    products.agent = machine.races->addAgent(warp);
  Product product;
  product.operation = &o;
  product.isAdded = warp.predicate(o.sources[2]) & 1;
  product.descriptorB = warp.source<uint64_t>(o.sources[1])[0];
  bool isFenced = products.isFenced;
  forRegisters(machine, product, [&](uint32_t number) { isFenced &= !products.isTouched[number]; });
  if (!isFenced)
    return machine.fail(warp, o, active, "its registers were written since the last wgmma.fence", "fence before it");
  if (form.isRegisterA)
    for (uint32_t part = 0; part < 4; ++part)
      std::copy_n(warp.source<uint32_t>(machine.program.lists[o.first + sumRegisters(form) + part]), warpLanes,
                  product.a[part]);
  else
    product.descriptorA = warp.source<uint64_t>(o.sources[0])[0];
  const MatrixDescriptor a(product.descriptorA), b(product.descriptorB);
  const auto isKnown = [](const MatrixDescriptor &at, bool isTransposed) {
    return at.baseOffset == 0 && !(isTransposed && at.swizzleBytes == 0);
  };
  if (!isKnown(b, form.isTransposedB) || (!form.isRegisterA && !isKnown(a, form.isTransposedA)))
    return machine.fail(warp, o, active,
                        "its descriptor has a base offset, or lines that are contiguous without a swizzle",
                        "which is not supported");
  if (!readOperand(machine, warp, o, b, 0, form.columns, form, form.isTransposedB) ||
      (!form.isRegisterA &&
       !readOperand(machine, warp, o, a, warp.index % 4 * rowsOfWarp, rowsOfWarp, form, form.isTransposedA)))
    return Outcome::Failed;
  forRegisters(machine, product, [&](uint32_t number) { ++products.inFlight[number]; });
  machine.counts.multiplyAdds += uint64_t(rowsOfWarp) * form.columns * form.depth;
  ++products.count;
  products.open.push_back(product);
  return Outcome::Next;
}

/// Ends products until at most `left` groups are open.
void finish(Machine &machine, Warp &warp, size_t left, Factors &factors) {
  Products &products = warp.products;
  for (; products.groups.size() > left; products.groups.pop_front())
    for (const Product &product : products.groups.front()) {
      compute(machine, warp, product, factors);
      forRegisters(machine, product, [&](uint32_t number) { --products.inFlight[number]; });
      --products.count;
    }
}

Outcome fence(Machine &, Warp &warp, const Operation &, uint32_t) {
  warp.products.isFenced = true;
  std::fill(warp.products.isTouched.begin(), warp.products.isTouched.end(), false);
  return Outcome::Next;
}

Outcome commit(Machine &machine, Warp &warp, const Operation &, uint32_t) {
  Products &products = warp.products;
  products.groups.push_back(std::move(products.open));
  products.open.clear();
  ++products.closed;
  return Outcome::Next;
}

/// The other warps of the warpgroup have to have begun what this one waits for; then all of it is done.
Outcome wait(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  const uint32_t closed = warp.products.closed, done = closed > o.immediate ? closed - uint32_t(o.immediate) : 0;
  std::vector<Warp> &warps = warp.cta->warps;
  const size_t first = machine.options.isByWarp ? warp.index : warp.index / 4 * 4;
  const size_t end = machine.options.isByWarp ? first + 1 : std::min<size_t>(first + 4, warps.size());
  for (size_t i = first; i < end; ++i)
    if (warps[i].products.closed < done && warps[i].live != 0)
      return Outcome::Wait;
  Factors factors;
  for (size_t i = first; i < end; ++i) {
    Products &products = warps[i].products;
    finish(machine, warps[i], products.closed > done ? products.closed - done : 0, factors);
    if (machine.races && done != 0 && products.agent.number != 0)
      machine.races->learn(warp, active, products.agent, done);
  }
  machine.quiet = 0;
  return Outcome::Next;
}

/// m64n256k16
bool takeShape(Decoder &d, MatrixForm &form) {
  const std::optional<std::string_view> shape = d.acceptPrefix("m64n");
  if (!shape)
    return false;
  const size_t k = shape->find('k');
  if (k == std::string_view::npos || k > 3 || shape->size() - k > 3)
    return false;
  form.columns = static_cast<uint32_t>(std::atoi(std::string(shape->substr(0, k)).c_str()));
  form.depth = static_cast<uint32_t>(std::atoi(std::string(shape->substr(k + 1)).c_str()));
  return form.columns >= 8 && form.columns <= 256 && form.columns % 8 == 0;
}

void decodeMultiply(Decoder &d) {
  MatrixForm form{};
  Operation &made = d.operation();
  if (!d.accept("sync") || !d.accept("aligned") || !takeShape(d, form))
    return decodeForm(d, nullptr, {});
  const std::optional<Sums> sums = sumsNamed(d.nextModifier());
  d.acceptPrefix("");
  if (!sums)
    return decodeForm(d, nullptr, {});
  form.sums = *sums;
  const std::optional<Element> a = elementNamed(d.nextModifier());
  d.acceptPrefix("");
  const std::optional<Element> b = elementNamed(d.nextModifier());
  d.acceptPrefix("");
  if (!a || !b || bytesOf(*a) != bytesOf(*b) || (bytesOf(*a) == 2 && a != b) || form.depth * bytesOf(*a) != 32 ||
      isInteger(*a) != isInteger(*b) || isInteger(*a) != (*sums == Sums::S32) ||
      (*sums == Sums::F16 && a == Element::BF16) || (*sums == Sums::F16 && a == Element::TF32))
    return decodeForm(d, nullptr, {});
  form.isSaturated = isInteger(*a) && d.accept("satfinite");
  form.a = *a;
  form.b = *b;
  form.elementBytes = bytesOf(*a);
  form.isRegisterA = d.operandCount() > 1 && d.operandAt(1).kind == Operand::Kind::Vector;
  const size_t transposes = form.elementBytes != 2 ? 0 : form.isRegisterA ? 1 : 2, signs = isInteger(*a) ? 0 : 2;
  d.expectOperands(4 + signs + transposes, 4 + signs + transposes);
  if (d.hasFailed())
    return;
  const Operand &results = d.operandAt(0);
  if (results.kind != Operand::Kind::Vector || results.parts.size() != sumRegisters(form) ||
      (form.isRegisterA && d.operandAt(1).parts.size() != 4))
    return d.fail("'" + d.instruction().spelling() + "' needs " + std::to_string(sumRegisters(form)) +
                  " accumulators, and 4 registers where A is in registers");
  std::vector<Slot> slots;
  for (const Operand &one : results.parts)
    slots.push_back(d.matrixRegister(one, true));
  if (form.isRegisterA)
    for (const Operand &one : d.operandAt(1).parts)
      slots.push_back(d.matrixRegister(one, false));
  else
    made.sources[0] = d.source(1, Type::B64);
  made.sources[1] = d.source(2, Type::B64);
  made.sources[2] = d.source(3, Type::Pred);
  const auto sign = [&](size_t index) {
    return d.constant(d.operandAt(index), "the sign of an operand") == ~uint64_t(0);
  };
  const auto flag = [&](size_t index) { return d.constant(d.operandAt(index), "the order of an operand") == 1; };
  form.isNegatedA = signs != 0 && sign(4);
  form.isNegatedB = signs != 0 && sign(5);
  form.isTransposedA = transposes == 2 && flag(6);
  form.isTransposedB = transposes > 0 && flag(5 + transposes);
  for (size_t i = 0, count = slots.size(); i < count; ++i)
    slots.push_back(d.matrixNumber(slots[i]));
  made.first = d.addList(slots);
  made.target = d.addMatrixForm(form);
  made.isAligned = true;
  made.run = multiply;
}

void decodeWgmma(Decoder &d) {
  Operation &made = d.operation();
  if (d.accept("mma_async"))
    return decodeMultiply(d);
  const int what = d.acceptOneOf({"fence", "commit_group", "wait_group"});
  if (what < 0 || !d.accept("sync") || !d.accept("aligned"))
    return decodeForm(d, nullptr, {});
  d.expectOperands(what == 2, what == 2);
  made.isAligned = true;
  made.run = what == 0 ? fence : what == 1 ? commit : wait;
  if (what == 2)
    made.immediate = d.constant(d.operandAt(0), "the number of groups");
}

} // namespace

void addWgmma(Opcodes &opcodes) { opcodes["wgmma"] = decodeWgmma; }

} // namespace k2c::ptx
