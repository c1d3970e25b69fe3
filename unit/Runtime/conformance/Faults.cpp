// Scenarios in which a rank is wrong, silent or slow. Buffers are the exchange's until it is destroyed, so they live as
// long as the rank's thread: a scenario is run once in it.
#include "Suite.h"
#include <array>
#include <csignal>
#include <thread>

using namespace k2c::runtime;

namespace k2c::test {
namespace {

constexpr std::chrono::milliseconds deadline{1000};

/// An all-gather of `bytes` bytes over the world.
Collective gather(uint32_t site, int64_t bytes = 1000) {
  static thread_local std::array<char, 1 << 16> source, result;
  Collective c{Op::allGather, Axis::world, site, 3, 7};
  c.source = source.data();
  c.result = result.data();
  c.bytes = bytes;
  return c;
}

/// One collective in which all agree; then `last`, which the rank is given.
Status afterOne(Exchange &exchange, const Collective &last) {
  if (Status done = exchange.run(gather(11)); !done)
    return done;
  return exchange.run(last);
}

Status otherSite(Exchange &exchange) { return afterOne(exchange, gather(exchange.rank() == 1 ? 13 : 12)); }
Status otherBytes(Exchange &exchange) { return afterOne(exchange, gather(12, exchange.rank() == 1 ? 999 : 1000)); }
Status otherProgram(Exchange &exchange) { return afterOne(exchange, gather(12)); }

Status otherOp(Exchange &exchange) {
  Collective c = gather(12);
  c.op = exchange.rank() == 1 ? Op::allToAll : Op::allGather;
  return afterOne(exchange, c);
}

Status otherStep(Exchange &exchange) {
  Collective c = gather(12);
  c.step = exchange.rank() == 1 ? 8 : 7;
  return afterOne(exchange, c);
}

/// Rank 1 sends 4 rows of 100 bytes where 3 have place.
Status tooManyRows(Exchange &exchange) {
  static const std::array<int64_t, 8> none{}, four{4, 4, 4, 4, 4, 4, 4, 4};
  static thread_local std::array<int64_t, 8> capacity, roomy;
  capacity.fill(3);
  roomy.fill(4);
  const bool isWrong = exchange.rank() == 1;
  Collective c = gather(12, 100);
  c.op = Op::allToAllRows;
  c.rows = {isWrong ? four.data() : none.data(), none.data(), isWrong ? roomy.data() : capacity.data(), none.data(),
            true};
  if (Status done = afterOne(exchange, c); !done)
    return done;
  return exchange.run(gather(13)); // rank 1 has received all that it expects, and must not leave
}

/// Workers of rank 1 compute for ever, as far as the others can tell.
Status silent(Exchange &exchange) {
  if (exchange.rank() != 1)
    return afterOne(exchange, gather(12));
  if (Status done = exchange.run(gather(11)); !done)
    return done;
  std::this_thread::sleep_for(deadline * 2);
  return exchange.run(gather(12));
}

/// The process of rank 1 stops with all its threads: for ranks that are processes.
Status stopped(Exchange &exchange) {
  if (Status done = exchange.run(gather(11)); !done)
    return done;
  if (exchange.rank() == 1)
    ::raise(SIGSTOP);
  return exchange.run(gather(12));
}

/// Rank 1 waits in another group, for others that wait here.
Status elsewhere(Exchange &exchange) {
  Collective c = gather(12);
  c.axis = exchange.rank() == 1 ? Axis::dp : Axis::world;
  if (exchange.rank() == 0)
    std::this_thread::sleep_for(deadline / 2); // so that its deadline is the last
  return afterOne(exchange, c);
}

/// Rank 1 takes half of the deadline: nothing is wrong.
Status slow(Exchange &exchange) {
  if (exchange.rank() == 1)
    std::this_thread::sleep_for(deadline / 2);
  if (Status done = afterOne(exchange, gather(12)); !done)
    return done;
  return exchange.close();
}

/// Rank 1 takes half as long again as the deadline.
Status late(Exchange &exchange) {
  if (exchange.rank() == 1)
    std::this_thread::sleep_for(deadline + deadline / 2);
  return afterOne(exchange, gather(12));
}

Status ended(Exchange &exchange) {
  if (exchange.rank() != 1)
    return afterOne(exchange, gather(12));
  if (Status done = exchange.run(gather(11)); !done)
    return done;
  return exchange.close();
}

Status failed(Exchange &exchange) {
  if (exchange.rank() != 1)
    return afterOne(exchange, gather(12));
  if (Status done = exchange.run(gather(11)); !done)
    return done;
  exchange.fail(Error{K2RT_KERNEL_FAILED, "kernel attention", "failed with 1 on worker 0", ""});
  return exchange.run(gather(12));
}

/// The run ends everywhere but on rank 1.
Status unended(Exchange &exchange) {
  if (Status done = exchange.run(gather(11)); !done)
    return done;
  if (exchange.rank() != 1)
    return exchange.close();
  std::this_thread::sleep_for(deadline * 2);
  return exchange.run(gather(12));
}

} // namespace

const std::vector<Scenario> &faultScenarios() {
  static const std::vector<Scenario> scenarios = {
      {"site", otherSite},  {"bytes", otherBytes}, {"program", otherProgram}, {"op", otherOp},
      {"step", otherStep},  {"rows", tooManyRows}, {"silent", silent},        {"elsewhere", elsewhere},
      {"slow", slow},       {"late", late},        {"ended", ended},          {"failed", failed},
      {"unended", unended}, {"stopped", stopped},
  };
  return scenarios;
}

Bound scenarioBound(const std::string &name, int32_t rank) {
  return {deadline, name == "program" && rank == 1 ? uint64_t(0xbad) : uint64_t(0x600d), 0};
}

} // namespace k2c::test
