// Rank 0 alone prints, also what has failed on another rank, which is told to it; then it ends the job. So a rank that
// has failed waits for that, and speaks for itself only when it does not come, as when rank 0 hangs: one that ended the
// job first would end rank 0 before it has said why. Of several the one with the lowest number speaks.
// Where the failure is that of rank 0, which therefore does not hang, they give it the deadline to end its command.
// Over UCX each process ends itself, and launch.sh those that are left on its host.
#include "run/Processes.h"
#include "program/Bundle.h"
#include "run/Interrupt.h"
#include "run/Run.h"
#include "transport/Job.h"
#include "transport/mpi/MpiTransport.h"
#include "transport/ucx/JobEnvironment.h"
#include "transport/ucx/UcxTransport.h"
#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>

namespace k2c::runtime {

static constexpr std::chrono::milliseconds timeForFirstRank{600}, timeForNextRank{50}, maxTime{1500};
static volatile sig_atomic_t codeAtEnd = 0;
static int32_t ownRank = 0;

void identifyProcess(int argc, char **argv) {
  bool isOverUcx = false;
  for (int i = 1; i < argc; ++i)
    isOverUcx |= std::strcmp(argv[i], "--transport=ucx") == 0 ||
                 (std::strcmp(argv[i], "ucx") == 0 && std::strcmp(argv[i - 1], "--transport") == 0);
  ownRank = isOverUcx ? rankOfEnvironment() : rankOfLauncher();
}

std::vector<std::string> transportsOf(const std::string &folder) {
  std::vector<std::string> transports = {"local"};
  for (const char *library : mpiLibraryFiles)
    if (bundleFileExists(folder, std::string("lib/") + library)) {
      transports.push_back("mpi");
      break;
    }
  if (bundleFileExists(folder, std::string("lib/") + ucxLibraryFile))
    transports.push_back("ucx");
  return transports;
}

/// The path of a transport's shared object in this bundle. `library`: over what; `packages`: what a build needs.
static Expected<std::string> bundledTransport(const std::string &name, const char *library, const char *packages) {
  const std::string folder = executableFolder(), file = "lib/" + name;
  if (!bundleFileExists(folder, file))
    return Error{K2RT_UNSUPPORTED, folder + "/" + file,
                 std::string("is not there: the bundle has no transport for this ") + library,
                 std::string("compile it with a k2c that was built where its header is installed (Debian: ") +
                     packages + ")"};
  if (Status right = checkBundledLibrary(file); !right)
    return right.takeError();
  return folder + "/" + file;
}

static Expected<std::unique_ptr<Transport>> openBundledMpi() {
  Expected<std::string> library = mpiLibraryOfLauncher();
  if (!library)
    return library.takeError();
  Expected<std::string> file = bundledTransport(*library, "MPI", "libopenmpi-dev, libmpich-dev");
  return file ? openMpi(*file) : file.takeError();
}

static Expected<std::unique_ptr<Transport>> openBundledUcx(Clock::duration limit) {
  Expected<JobMember> member = memberOfEnvironment();
  if (!member)
    return member.takeError();
  member->limit = limit;
  Expected<std::string> file = bundledTransport(ucxLibraryFile, "UCX", "libucx-dev");
  return file ? openUcx(*file, *member) : file.takeError();
}

static Status serve(ProcessRank &own, const RunOptions &options) {
  Status served = own.serve(filesOf(options), onCpuOf(options), [](RankMember *member) { interruptStops(member); });
  // Rank 0 knows why, and may have a trace to write before the job ends. Over UCX no rank ends that of another, and an
  // interrupt needs no word of its own.
  const bool endsAlone = !served && options.transport == "ucx" && served.error().code == K2RT_INTERRUPTED;
  if (!served && own.failedRank() == 0 && !endsAlone)
    std::this_thread::sleep_for(deadlineOf(options));
  return served;
}

Status runAsRank(const Command &command, RunOptions &options) {
  const Clock::duration deadline = deadlineOf(options);
  const auto maker = [&] { return options.transport == "mpi" ? openBundledMpi() : openBundledUcx(deadline); };
  Expected<std::unique_ptr<ProcessRank>> own = ProcessRank::join(maker, deadline);
  if (!own)
    return own.takeError();
  if ((*own)->rank() > 0 && !options.isOfAllRanks)
    return serve(**own, options);
  options.process = own->get();
  return command();
}

void leaveToFirstRank(Error &failure) {
  if (ownRank == 0)
    return;
  std::this_thread::sleep_for(std::min(timeForFirstRank + ownRank * timeForNextRank, maxTime));
  failure.where = "rank " + std::to_string(ownRank) + (failure.where.empty() ? "" : ": " + failure.where);
}

bool isFirstRank() { return ownRank == 0; }

/// All is said and done, but a thread of the library is still there: nothing of this process may be taken down.
static void endBesideLibrary(int exitCode, const RunOptions &options) {
  std::fprintf(
      stderr,
      "run: note: rank %d: MPI_Finalize has not returned within the deadline of %g s; the rank ends without it\n",
      ownRank, std::chrono::duration<double>(deadlineOf(options)).count());
  std::fflush(stdout);
  ::_exit(exitCode);
}

void endJob(int exitCode, const RunOptions &options) {
  if (isMpiFinishing())
    endBesideLibrary(exitCode, options);
  if (exitCode == 0 || !isInJob())
    return;
  std::fflush(stdout);
  if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0)
    ::dup2(nowhere, STDERR_FILENO); // a library's own word on it would bury ours
  codeAtEnd = exitCode;
  struct sigaction end = {};
  end.sa_handler = [](int) { ::_exit(codeAtEnd); };
  ::sigaction(SIGALRM, &end, nullptr);
  const itimerval soon = {{0, 0}, {0, 500'000}}; // where the library's call does not return
  ::setitimer(ITIMER_REAL, &soon, nullptr);
  endJoinedJob(exitCode);
  ::_exit(exitCode); // whatever the library still does
}

} // namespace k2c::runtime
