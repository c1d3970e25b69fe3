// Rank 0 alone prints, also what has failed on another rank, which is told to it; then it ends the job. So a rank that
// has failed waits for that, and speaks for itself only when it does not come, as when rank 0 hangs: one that ended the
// job first would end rank 0 before it has said why. Of several the one with the lowest number speaks.
// Where the failure is that of rank 0, which therefore does not hang, they give it the deadline to end its command.
#include "run/Processes.h"
#include "program/Bundle.h"
#include "run/Interrupt.h"
#include "run/Run.h"
#include "transport/mpi/MpiTransport.h"
#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>

namespace k2c::runtime {

static constexpr std::chrono::milliseconds timeForFirstRank{600}, timeForNextRank{50}, maxTime{1500};
static volatile sig_atomic_t codeAtEnd = 0;

std::vector<std::string> transportsOf(const std::string &folder) {
  std::vector<std::string> transports = {"local"};
  for (const char *library : mpiLibraryFiles)
    if (bundleFileExists(folder, std::string("lib/") + library)) {
      transports.push_back("mpi");
      break;
    }
  return transports;
}

static Expected<std::unique_ptr<Transport>> openBundledMpi() {
  Expected<std::string> library = mpiLibraryOfLauncher();
  if (!library)
    return library.takeError();
  const std::string folder = executableFolder(), file = "lib/" + *library;
  if (!bundleFileExists(folder, file))
    return Error{K2RT_UNSUPPORTED, folder + "/" + file, "is not there: the bundle has no transport for this MPI",
                 "compile it with a k2c that was built where this MPI's header is installed (Debian: libopenmpi-dev, "
                 "libmpich-dev)"};
  if (Status right = checkBundledLibrary(file); !right)
    return right.takeError();
  return openMpi(folder + "/" + file);
}

static Status serve(ProcessRank &own, const RunOptions &options) {
  Status served = own.serve(options.folder, onCpuOf(options), [](RankMember *member) { interruptStops(member); });
  if (!served && own.failedRank() == 0) // it knows why, and may have a trace to write first
    std::this_thread::sleep_for(deadlineOf(options));
  return served;
}

Status runOverMpi(const Command &command, RunOptions &options) {
  Expected<std::unique_ptr<ProcessRank>> own = ProcessRank::join(openBundledMpi, deadlineOf(options));
  if (!own)
    return own.takeError();
  if ((*own)->rank() > 0)
    return serve(**own, options);
  options.process = own->get();
  return command();
}

void leaveToFirstRank(Error &failure) {
  const int32_t rank = rankOfLauncher();
  if (rank == 0)
    return;
  std::this_thread::sleep_for(std::min(timeForFirstRank + rank * timeForNextRank, maxTime));
  failure.where = "rank " + std::to_string(rank) + (failure.where.empty() ? "" : ": " + failure.where);
}

bool isFirstRank() { return rankOfLauncher() == 0; }

/// All is said and done, but a thread of the library is still there: nothing of this process may be taken down.
static void endBesideLibrary(int exitCode, const RunOptions &options) {
  std::fprintf(
      stderr,
      "run: note: rank %d: MPI_Finalize has not returned within the deadline of %g s; the rank ends without it\n",
      rankOfLauncher(), std::chrono::duration<double>(deadlineOf(options)).count());
  std::fflush(stdout);
  ::_exit(exitCode);
}

void endJob(int exitCode, const RunOptions &options) {
  if (isMpiFinishing())
    endBesideLibrary(exitCode, options);
  if (exitCode == 0 || !isInMpiJob())
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
  endMpiJob(exitCode);
}

} // namespace k2c::runtime
