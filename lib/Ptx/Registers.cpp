//===- Registers.cpp - How many registers the warps of a CTA have ---------===//
//
// PTX ISA, Miscellaneous Instructions: setmaxnreg. A CTA has as many as its kernel was launched with; warpgroups give
// some back and get more, and who gets waits until they are there. A launch says how many by .maxnreg, or by threads
// and CTAs of a multiprocessor, which ptxas uses up. Where nothing says it, nothing is checked.
//
//===----------------------------------------------------------------------===//
#include "Integers.h"

#include <algorithm>

namespace k2c::ptx {

namespace {

Outcome setMaximum(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  const auto wanted = static_cast<uint32_t>(o.immediate);
  Cta &cta = *warp.cta;
  std::vector<uint32_t> &steps = cta.registerSteps[warp.index / warpsOfGroup];
  if (steps.size() > warp.registerSteps && steps[warp.registerSteps] != wanted)
    return machine.fail(warp, o, active,
                        "it asks for " + std::to_string(wanted) + " registers, and another warp of its warpgroup for " +
                            std::to_string(steps[warp.registerSteps]),
                        "let all warps of a warpgroup ask for the same");
  if (warp.maxRegisters != 0 && (o.isSigned ? wanted < warp.maxRegisters : wanted > warp.maxRegisters))
    return machine.fail(warp, o, active,
                        "it asks for " + std::to_string(wanted) + " registers, and has " +
                            std::to_string(warp.maxRegisters),
                        "let .inc ask for as many or more, and .dec for as many or fewer");
  uint64_t others = 0;
  for (const Warp &other : cta.warps)
    others += &other != &warp && other.live != 0 ? other.maxRegisters : 0;
  if (warp.maxRegisters != 0 && others + wanted > uint64_t(cta.warps.size()) * machine.launchedRegisters())
    return Outcome::Wait;
  if (warp.maxRegisters != 0)
    warp.maxRegisters = wanted;
  if (steps.size() == warp.registerSteps)
    steps.push_back(wanted);
  ++warp.registerSteps;
  machine.quiet = 0;
  return Outcome::Next;
}

} // namespace

uint32_t Machine::launchedRegisters() const {
  constexpr uint64_t ofMultiprocessor = 65536, most = 256, unit = 8;
  const Function &kernel = program.function;
  if (kernel.maximalRegisters != 0)
    return kernel.maximalRegisters;
  const uint64_t threads = std::max(product(kernel.requiredThreads), product(kernel.maximalThreads));
  if (threads == 0)
    return 0;
  const uint64_t each = ofMultiprocessor / threads / std::max(uint32_t(1), kernel.minimalCtas);
  return static_cast<uint32_t>(std::min(most, each / unit * unit));
}

void addRegisters(Opcodes &opcodes) {
  opcodes["setmaxnreg"] = [](Decoder &d) {
    const int what = d.acceptOneOf({"inc", "dec"});
    if (what < 0 || !d.accept("sync") || !d.accept("aligned") || !d.accept("u32"))
      return decodeForm(d, nullptr, {});
    d.expectOperands(1, 1);
    Operation &made = d.operation();
    made.isAligned = true;
    made.isSigned = what == 0;
    made.immediate = d.constant(d.operandAt(0), "the number of registers");
    if (made.immediate % 8 != 0 || made.immediate < 24 || made.immediate > 256)
      d.fail("'" + d.instruction().spelling() + "' asks for " + std::to_string(made.immediate) + " registers",
             "give a multiple of 8 from 24 to 256");
    made.run = setMaximum;
  };
}

} // namespace k2c::ptx
