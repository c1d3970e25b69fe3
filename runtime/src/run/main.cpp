// DIR/run: one bundle, many commands. Parses flags, runs the chosen command, turns its outcome into an exit code.
//
// Where a launcher has started several ranks each of them comes here with the same arguments. Only the first prints:
// what is wrong with the arguments is said once, and so is what fails later (run/Processes.h).
#include "base/Utf8.h"
#include "k2rt/numerics.h"
#include "k2rt/program.h"
#include "program/FileList.h"
#include "run/Commands.h"
#include "run/FileFaults.h"
#include "run/Interrupt.h"
#include "run/Processes.h"
#include "run/Run.h"
#include "text/Regex.h"
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <malloc.h>
#include <new>

using namespace k2c;
using namespace k2c::runtime;

static int exitCode(k2rt_code code) {
  switch (code) {
  case K2RT_OK:
    return 0;
  case K2RT_INTERRUPTED:
    return 130;
  case K2RT_KERNEL_FAILED:
  case K2RT_SYSTEM:
  case K2RT_PEER_FAILED:
  case K2RT_DEVICE_FAILED:
    return 3;
  case K2RT_DEADLINE:
    return 124;
  default:
    return 1;
  }
}

/// What was wrong with the command line, and whose --help says how it is right; without arguments that help itself.
/// CLI11 calls a command that it does not know a missing one.
static std::string usageError(const CLI::App &app, int argc, const CLI::ParseError &wrong) {
  if (argc == 1)
    return app.help();
  const std::vector<std::string> rest = app.remaining();
  const std::vector<CLI::App *> commands = app.get_subcommands();
  const bool isUnknown = commands.empty() && !rest.empty() && rest[0].compare(0, 1, "-") != 0;
  return "run: error: " +
         (isUnknown ? "there is no command '" + shortened(rest[0]) + "'" : shortened(wrong.what(), maxQuoted)) +
         "; see run " + (commands.empty() ? "" : commands[0]->get_name() + " ") + "--help\n";
}

/// Small heap, few arenas: what the allocator keeps counts against the certificate's reserve.
static void boundHeap() {
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, 64 * 1024);
  ::mallopt(M_TRIM_THRESHOLD, 64 * 1024);
  ::mallopt(M_TOP_PAD, 0);
}

static void describe(CLI::App &app) {
  app.set_version_flag("--version", "k2rt " K2RT_VERSION " (program ABI " + std::to_string(K2RT_ABI_VERSION) +
                                        ", " K2RT_NUMERICS_TEXT ", targets: x86-64 CPU)");
  app.require_subcommand(1);
  app.footer("Examples:\n"
             "  ./run generate --prompt \"The capital of France is\" -n 32\n"
             "  ./run generate --prompt-ids 1,2,3 -n 16 --json\n"
             "  ./run logits --prompt-ids 1,2,3 --all --json\n"
             "  ./run bench --prefill 512 --decode 64 --batch 8 --json\n"
             "  ./run info --json\n"
             "Exit codes: 0 success, 1 user's error, 2 wrong usage, 3 failure at run time (of another rank or a GPU,\n"
             "too), 124 a deadline between ranks has passed, 130 interrupted.");
}

/// The exit code of `failure`, after it is printed: once, of all ranks that may have it in common.
static int report(Error failure) {
  leaveToFirstRank(failure);
  if (failure.code != K2RT_INTERRUPTED)
    std::fprintf(stderr, "run: error: %s\n", failure.text().c_str());
  return exitCode(failure.code);
}

/// Takes no memory itself.
static int reportNoMemory() {
  std::fprintf(stderr, "run: error: run: the system refuses memory\n");
  return exitCode(K2RT_OUT_OF_MEMORY);
}

static std::terminate_handler otherwise = nullptr;

/// nlohmann-json takes memory to free a value, in a destructor, which no exception may leave.
static void endWithoutMemory() {
  try {
    if (std::current_exception())
      throw;
  } catch (const std::bad_alloc &) {
    std::_Exit(reportNoMemory());
  } catch (...) {
  }
  otherwise();
}

/// `unreturned`: what the end of the command's device may fail with.
static int runCommand(const Command &command, const std::optional<Error> &unreturned) {
  Status done;
  otherwise = std::set_terminate(endWithoutMemory);
  try {
    done = command();
  } catch (const std::bad_alloc &) {
    return reportNoMemory();
  } catch (const std::exception &unexpected) {
    done = Error{K2RT_SYSTEM, "run", shortened(unexpected.what(), maxQuoted), ""};
  }
  if (done && unreturned)
    done = *unreturned;
  if (done && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0))
    done = Error{K2RT_SYSTEM, "standard output", "cannot be written", ""};
  return done ? 0 : report(done.error());
}

/// What this process does of the command, which is of rank 0. `info` reads the manifest alone, and no other takes part.
static Status overTransport(const CLI::App &app, const Command &command, RunOptions &options) {
  const std::string &transport = options.transport;
  if (transport.empty() || transport == "local")
    return command();
  if (transport != "mpi" && transport != "ucx")
    return Error{K2RT_UNSUPPORTED, "--transport " + shortened(transport), "is unknown",
                 "use local, ranks as threads of this process; mpi, processes that mpirun starts; or ucx, processes "
                 "that DIR/launch.sh --node I starts"};
  if (app.got_subcommand("info"))
    return isFirstRank() ? command() : Status();
  return runAsRank(command, options);
}

int main(int argc, char **argv) {
  boundHeap();
  identifyProcess(argc, argv);
  const std::string own = executableFolder(), folder = own.empty() ? "." : own; // a bundle finds itself wherever it is
  if (Status sound = checkOwnProgram(folder); !sound)                           // first: what is below may be damaged
    return report(sound.error());
  catchInterrupt();
  nameFileFaults();
  CLI::App app("Runs the model compiled into this bundle.", "run");
  RunOptions options;
  Command command;
  std::optional<Error> unreturned;
  options.folder = folder;
  options.unreturned = &unreturned;
  describe(app);
  app.add_option("--bundle", options.folder, "the bundle's folder (default: the folder of this program)")
      ->check(notEmpty());
  for (auto add : {addGenerate, addLogits, addRoutes, addHidden, addBench, addPerplexity, addServe, addLinks, addInfo})
    add(app, options, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &asked) { // --help, --version
    return isFirstRank() ? app.exit(asked) : 0;
  } catch (const CLI::ParseError &wrong) {
    if (isFirstRank())
      std::fputs(usageError(app, argc, wrong).c_str(), stderr);
    return 2;
  }
  const int code = runCommand([&] { return overTransport(app, command, options); }, unreturned);
  endJob(code, options);
  return code;
}
