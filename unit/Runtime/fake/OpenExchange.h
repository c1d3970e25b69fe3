// An exchange of a program that all ranks know.
#ifndef K2C_UNIT_RUNTIME_FAKE_OPENEXCHANGE_H
#define K2C_UNIT_RUNTIME_FAKE_OPENEXCHANGE_H

#include "exchange/Exchange.h"
#include <memory>

namespace k2c::test {

inline Expected<std::unique_ptr<runtime::Exchange>>
openExchange(const runtime::TransportMaker &maker, const runtime::Grid &grid,
             runtime::Clock::duration deadline = runtime::defaultDeadline, uint64_t program = 0, int32_t spins = 0) {
  Expected<std::unique_ptr<runtime::Exchange>> exchange = runtime::Exchange::open(maker, deadline);
  if (exchange)
    if (Status bound = (*exchange)->bind(grid, program, spins); !bound)
      return bound.takeError();
  return exchange;
}

} // namespace k2c::test

#endif
