// What every transport must do: one suite, run over threads (ConformanceTest.cpp) and over processes (conformance.cpp).
//
// A case is run by all ranks of a grid together; each says what it found wrong, "" when nothing was. What a rank sends
// is a function of rank, site and place, so every rank knows what it must receive.
#ifndef K2C_UNIT_RUNTIME_CONFORMANCE_SUITE_H
#define K2C_UNIT_RUNTIME_CONFORMANCE_SUITE_H

#include "exchange/Exchange.h"
#include <string>
#include <vector>

namespace k2c::test {

/// A rank in a case: its exchange, and the sites that it has used, by which those of all cases differ.
struct Rank {
  runtime::Exchange &exchange;
  uint32_t site = 0;
};

struct Case {
  const char *name;
  std::string (*run)(Rank &);
};

const std::vector<Case> &conformanceCases();
/// Numbers of ranks that the suite knows a grid for: 1, 2, 3, 4, 6, 8.
const std::vector<int32_t> &conformanceSizes();
/// One that has groups of many shapes: neighbours, every second rank, nodes, rails.
runtime::Grid conformanceGrid(int32_t ranks);

/// A fault that ranks of a scenario commit, and the error that each rank must then report. The error is returned.
struct Scenario {
  const char *name;
  Status (*run)(runtime::Exchange &);
};
const std::vector<Scenario> &faultScenarios();
/// What a rank is bound to in a scenario: a short deadline, and for "program" another program on rank 1.
struct Bound {
  runtime::Clock::duration deadline = runtime::defaultDeadline;
  uint64_t program = 0;
  int32_t spins = 0;
};
Bound scenarioBound(const std::string &name, int32_t rank);

} // namespace k2c::test

#endif
