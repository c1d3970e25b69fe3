// The commands of `run`: each file adds one subcommand and its flags, and says what to do when it was chosen.
#ifndef K2RT_RUN_COMMANDS_H
#define K2RT_RUN_COMMANDS_H

#include "base/Error.h"
#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

namespace k2c::runtime {

class ProcessRank;

/// Flags that every command takes.
struct RunOptions {
  std::string folder; ///< the bundle
  int32_t threads = 0;
  int64_t chunk = 0;
  std::string traceFile;
  std::string statisticsFile;     ///< --expert-stats
  std::string countersFile;       ///< --counters
  std::string transport;          ///< between ranks: local, mpi, ucx; "": the bundle has one rank
  std::optional<double> deadline; ///< seconds, of every wait between ranks; none: defaultDeadline
  std::string driver;             ///< of a GPU: a library, emulated; "": the system's
  std::vector<int64_t> devices;   ///< of the driver, by rank
  std::optional<uint64_t> emulatedSeed;
  std::vector<std::string> placements; ///< FILE[@STEP] each: in place of the bundle's, from that step on
  bool trust = false;                  ///< leaves the hashes of weight files unchecked
  bool json = false;
  ProcessRank *process = nullptr; ///< where ranks are processes: rank 0, or any that runs the command; outlives it
  bool isOfAllRanks = false;      ///< every rank runs the command; else rank 0, and others take part in its steps
  std::optional<Error> *unreturned = nullptr; ///< what the end of a GPU fails with; outlives the command
};

/// What main runs after parsing. Results go to stdout; a failure is main's to print.
using Command = std::function<Status()>;

/// Each adds its subcommand to `app`; parsing it stores the action in `command`. All three outlive the parse.
void addGenerate(CLI::App &app, RunOptions &options, Command &command);
void addLogits(CLI::App &app, RunOptions &options, Command &command);
void addRoutes(CLI::App &app, RunOptions &options, Command &command);
void addHidden(CLI::App &app, RunOptions &options, Command &command);
void addBench(CLI::App &app, RunOptions &options, Command &command);
void addPerplexity(CLI::App &app, RunOptions &options, Command &command);
void addServe(CLI::App &app, RunOptions &options, Command &command);
void addLinks(CLI::App &app, RunOptions &options, Command &command);
void addInfo(CLI::App &app, RunOptions &options, Command &command);

/// Adds the flags of how ranks are started: --threads, --transport, --deadline.
void addRankFlags(CLI::App &command, RunOptions &options);
/// Adds the flags of GPUs: --driver, --device, --emulate-seed.
void addDeviceFlags(CLI::App &command, RunOptions &options);
/// Adds all flags of RunOptions.
void addRunFlags(CLI::App &command, RunOptions &options);

} // namespace k2c::runtime

#endif
