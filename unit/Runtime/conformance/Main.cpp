// The conformance suite over ranks that are processes: over MPI where mpirun has started them, else over UCX.
//
//   exchange-conformance FOLDER             all cases; exit 0 when nothing was wrong on any rank
//   exchange-conformance FOLDER SCENARIO    a fault: prints this rank's error and ends the job: 124 for a deadline,
//   else 3 exchange-conformance FOLDER time        what all-to-alls take; FOLDER "threads": over threads of this
//   process
#include "../fake/OpenExchange.h"
#include "Suite.h"
#include "Timing.h"
#include "transport/Job.h"
#include "transport/local/LocalTransport.h"
#include "transport/mpi/MpiTransport.h"
#include "transport/ucx/JobEnvironment.h"
#include "transport/ucx/UcxTransport.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace k2c;
using namespace k2c::runtime;
using namespace k2c::test;

static int report(int32_t rank, const std::string &text) {
  std::fprintf(stderr, "rank %d: %s\n", rank, text.c_str());
  return 1;
}

static int runCases(Exchange &exchange, int32_t ranks) {
  Rank rank{exchange};
  std::string found;
  for (const Case &one : conformanceCases())
    if (const std::string text = one.run(rank); !text.empty())
      found += std::string(one.name) + ": " + text;
  if (Status closed = exchange.close(); !closed)
    found += closed.error().text();
  if (!found.empty())
    return report(exchange.rank(), found);
  if (exchange.rank() == 0)
    std::printf("%zu cases passed on %d ranks\n", conformanceCases().size(), ranks);
  return 0;
}

static int runScenario(std::unique_ptr<Exchange> exchange, const char *name) {
  const int32_t rank = exchange->rank();
  for (const Scenario &scenario : faultScenarios()) {
    if (std::strcmp(scenario.name, name) != 0)
      continue;
    Status done = scenario.run(*exchange);
    if (done)
      return 0;
    exchange.reset();
    report(rank, done.error().text());
    const int code = done.error().code == K2RT_DEADLINE ? 124 : 3;
    endJoinedJob(code);
    return code;
  }
  return report(rank, "no scenario has this name");
}

/// Of a rank that has a processor to itself, or not.
static Bound timingBound(int32_t ranks) {
  Bound bound;
  bound.spins = static_cast<unsigned>(2 * ranks) <= std::thread::hardware_concurrency() ? 4000 : 16;
  return bound;
}

static Expected<std::unique_ptr<Exchange>> openBound(const TransportMaker &maker, int32_t ranks, const Bound &bound) {
  return openExchange(maker, conformanceGrid(ranks), bound.deadline, bound.program, bound.spins);
}

static int timeThreads(int32_t ranks) {
  std::vector<std::unique_ptr<Transport>> transports = localTransports(ranks);
  std::vector<std::thread> team;
  for (int32_t rank = 0; rank < ranks; ++rank)
    team.emplace_back([&, rank] {
      const auto own = [&]() -> Expected<std::unique_ptr<Transport>> { return std::move(transports[rank]); };
      Expected<std::unique_ptr<Exchange>> exchange = openBound(own, ranks, timingBound(ranks));
      if (exchange)
        timeAllToAlls(**exchange);
    });
  for (std::thread &thread : team)
    thread.join();
  return 0;
}

static Expected<std::unique_ptr<Transport>> openTransport(const std::string &folder) {
  if (const Expected<std::string> library = mpiLibraryOfLauncher())
    return openMpi(folder + "/" + *library);
  const Expected<JobMember> member = memberOfEnvironment();
  return member ? openUcx(folder + "/" + ucxLibraryFile, *member) : member.error();
}

int main(int argc, char **argv) {
  const char *size = std::getenv("K2RT_CONFORMANCE_RANKS"), *scenario = argc > 2 ? argv[2] : "";
  if (argc < 2 || !size)
    return report(-1, "usage: K2RT_CONFORMANCE_RANKS=N mpirun -n N exchange-conformance FOLDER [SCENARIO | time]");
  const int32_t ranks = std::atoi(size);
  const int32_t rank = mpiLibraryOfLauncher() ? rankOfLauncher() : rankOfEnvironment();
  if (std::strcmp(argv[1], "threads") == 0)
    return timeThreads(ranks);
  const bool isTimed = std::strcmp(scenario, "time") == 0;
  const Bound bound = isTimed ? timingBound(ranks) : *scenario ? scenarioBound(scenario, rank) : Bound();
  const auto maker = [&] { return openTransport(argv[1]); };
  Expected<std::unique_ptr<Exchange>> exchange = openBound(maker, ranks, bound);
  if (!exchange)
    return report(rank, exchange.error().text());
  if (isTimed)
    return timeAllToAlls(**exchange);
  return *scenario ? runScenario(std::move(*exchange), scenario) : runCases(**exchange, ranks);
}
