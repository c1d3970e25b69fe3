// What the commands share: an opened bundle with its engine, and prompts from flags and files.
#ifndef K2RT_RUN_RUN_H
#define K2RT_RUN_RUN_H

#include "device/OpenEngine.h"
#include "device/cpu/LocalRanks.h"
#include "device/cpu/ProcessRank.h"
#include "engine/OutputFile.h"
#include "engine/Scheduler.h"
#include "run/Commands.h"
#include "text/Tokenizer.h"
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace k2c::runtime {

/// A bundle and an engine that SIGINT stops.
struct Run {
  std::unique_ptr<LocalRanks> others; ///< where ranks are threads; first: they end behind the engine
  Bundle bundle;                      ///< of several ranks, rank 0's
  OpenedEngine opened{};
  OutputFile statistics{}, counters{}; ///< of --expert-stats and --counters

  /// Opens all of them. `captures`: what the command will capture of its steps.
  static Expected<std::unique_ptr<Run>> open(const RunOptions &options, CaptureChoice captures = {});
  ~Run();
  Engine &engine() const { return *opened.engine; }
  Expected<OpenedEngine> createEngine(const RunOptions &options, CaptureChoice captures);
  /// Steps until all is done, then finishes.
  Status drain(Scheduler &scheduler);
  /// After the last step, whose outcome is `done`: ends other ranks, and writes the trace and other files, which an
  /// interrupted run has, too. The first failure of all.
  Status finish(Status done);
  Status openFiles(const RunOptions &options);
  Status writeCounted();
};

/// Of `options`, what a rank reads, what concerns the processors, or devices of any kind, and the time that a wait
/// between ranks may take.
RankFiles filesOf(const RunOptions &options);
CpuOptions onCpuOf(const RunOptions &options);
DeviceOptions devicesOf(const RunOptions &options);
Clock::duration deadlineOf(const RunOptions &options);

/// Refuses `path`, which `flag` names, where it is a file of the bundle: without it the bundle would be damaged.
Status leavesBundle(const std::string &flag, const std::string &path, const std::string &folder);

/// The library `file` of the bundle that this program is of, whichever it reads, has its hash.
Status checkBundledLibrary(const std::string &file);

/// Where prompts come from; exactly one member is given.
struct PromptFlags {
  std::optional<std::string> text, textFile, ids, chatFile, batchFile;
  bool noSpecial = false;
};

/// The largest number that an int64_t flag can have.
constexpr uint64_t maxWhole = std::numeric_limits<int64_t>::max();

/// Checks of values on the command line: a number (NaN is in no range), decimal digits (for Option::transform: "010" is
/// ten), a name.
CLI::Validator within(double least, double most);
CLI::Validator wholeFrom(uint64_t least, uint64_t most = maxWhole);
CLI::Validator notEmpty();

/// Adds --prompt-ids and --batch-file; with `withText` also --prompt, --prompt-file, --chat and --no-special.
/// Exactly one of them is required.
void addPromptFlags(CLI::App &command, PromptFlags &flags, bool withText, bool withBatch);

/// The prompts as token ids, and whether they came as a batch. `tokenizer` may be null when no text is given.
struct Prompts {
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::optional<uint64_t>> seeds; ///< of a batch, per prompt; empty otherwise
  bool isBatch = false;
};
Expected<Prompts> readPrompts(const PromptFlags &flags, const Tokenizer *tokenizer);

/// The bundle's tokenizer; empty when it has none.
Expected<std::optional<Tokenizer>> openTokenizer(const std::string &folder);

/// Reads what `routes --json` printed, for a prompt of `tokens` tokens.
Expected<ForcedRoutes> readRoutes(const std::string &path, const Manifest &manifest, int64_t tokens);

} // namespace k2c::runtime

#endif
