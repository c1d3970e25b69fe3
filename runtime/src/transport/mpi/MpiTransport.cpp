// A message is one posted part or several: MPI counts bytes in an int, so what is larger goes in parts of 64 MiB, which
// both sides cut alike since they know its size. What MPI refuses is kept with the message and reported by test.
//
// The library makes progress only within calls, so the thread polls it; naps are as short as a message over the network
// takes while some are in flight, and end with the bell when a worker posts.
#include "transport/mpi/MpiTransport.h"
#include "base/Utf8.h"
#include "transport/Job.h"
#include "transport/TicketTable.h"
#include "transport/TransportLibrary.h"
#include "transport/mpi/MpiLibrary.h"
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <thread>
#include <vector>

namespace k2c::runtime {
namespace {

std::atomic<const k2rt_mpi_library *> started{nullptr}; ///< the one library of this process
std::atomic<bool> finishing{false};                     ///< it is in its last call

constexpr int64_t partBytes = int64_t(64) << 20;
/// MPICH's mpirun, told to end the job, reads no more of what a rank has just written: 1 message in 25 was lost.
constexpr std::chrono::milliseconds timeForLastWords{100};

class MpiTransport : public Transport {
public:
  explicit MpiTransport(const k2rt_mpi_library &library) : library(library) {}

  Status start();
  int32_t rank() const override { return self; }
  int32_t ranks() const override { return all; }
  Ticket send(int32_t peer, int32_t tag, const void *data, int64_t bytes) override;
  Ticket receive(int32_t peer, int32_t tag, void *data, int64_t capacity) override;
  Expected<bool> test(Ticket ticket) override;
  Doorbell &bell() override { return ownBell; }
  std::chrono::microseconds nap(Pace pace) const override {
    return std::chrono::microseconds(pace == Pace::awaited ? 20 : pace == Pace::underWay ? 200 : 2000);
  }
  Status close() override {
    leaveJob();
    finishing = true;
    const int32_t error = library.finish();
    finishing = false;
    return outcome("MPI_Finalize", error);
  }

private:
  struct Message {
    const char *call;           ///< that posted it
    int32_t error = 0;          ///< of that call
    std::vector<int32_t> slots; ///< of the parts that are not done
  };
  template <class Post> Ticket post(const char *call, int64_t bytes, Post postPart);
  Status outcome(const char *call, int32_t error) const;

  const k2rt_mpi_library &library;
  int32_t self = 0, all = 1;
  Doorbell ownBell;
  TicketTable<Message> messages;
  NumberPool slots;
};

Status MpiTransport::start() { return outcome("MPI_Init_thread", library.start(&self, &all)); }

Status MpiTransport::outcome(const char *call, int32_t error) const {
  if (error == 0)
    return {};
  char text[256];
  library.error_text(error, text, sizeof text);
  return Error{K2RT_PEER_FAILED, call, "has failed: " + shortened(text), ""};
}

/// Posts each part by postPart(slot, offset, bytes).
template <class Post> Ticket MpiTransport::post(const char *call, int64_t bytes, Post postPart) {
  const Ticket ticket = messages.take();
  Message &message = messages[ticket];
  message.call = call;
  message.error = 0;
  for (int64_t offset = 0; message.error == 0 && (offset == 0 || offset < bytes); offset += partBytes) {
    const int32_t slot = slots.take();
    message.error = postPart(slot, offset, static_cast<int32_t>(std::min(partBytes, bytes - offset)));
    if (message.error == 0)
      message.slots.push_back(slot);
  }
  return ticket;
}

Ticket MpiTransport::send(int32_t peer, int32_t tag, const void *data, int64_t bytes) {
  return post("MPI_Isend", bytes, [&](int32_t slot, int64_t offset, int32_t part) {
    return library.send(slot, peer, tag, static_cast<const char *>(data) + offset, part);
  });
}

Ticket MpiTransport::receive(int32_t peer, int32_t tag, void *data, int64_t capacity) {
  return post("MPI_Irecv", capacity, [&](int32_t slot, int64_t offset, int32_t part) {
    return library.receive(slot, peer, tag, static_cast<char *>(data) + offset, part);
  });
}

Expected<bool> MpiTransport::test(Ticket ticket) {
  Message &message = messages[ticket];
  if (Status posted = outcome(message.call, message.error); !posted)
    return posted.takeError();
  while (!message.slots.empty()) {
    int32_t isDone = 0;
    if (Status tested = outcome("MPI_Test", library.test(message.slots.back(), &isDone)); !tested)
      return tested.takeError();
    if (!isDone)
      return false;
    slots.giveBack(message.slots.back());
    message.slots.pop_back();
  }
  messages.giveBack(ticket);
  return true;
}

} // namespace

Expected<std::string> mpiLibraryOfLauncher() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("PMIX_RANK"))
    return std::string(mpiLibraryFiles[0]);
  if (std::getenv("PMI_RANK"))
    return std::string(mpiLibraryFiles[1]);
  return Error{K2RT_UNSUPPORTED, "transport mpi", "no launcher of MPI has started this process",
               "start it with DIR/launch.sh, mpirun, or srun --mpi=pmix"};
}

Expected<std::unique_ptr<Transport>> openMpi(const std::string &file) {
  // Components of Open MPI look for its symbols among the global ones.
  const auto library =
      openLibrary<k2rt_mpi_query_fn>(file, RTLD_GLOBAL, K2RT_MPI_QUERY_NAME, K2RT_MPI_LIBRARY_VERSION,
                                     "install the MPI library that it was built for (Debian: openmpi-bin, mpich)");
  if (!library)
    return library.error();
  auto transport = std::make_unique<MpiTransport>(**library);
  if (Status begun = transport->start(); !begun)
    return begun.takeError();
  started = *library;
  joinJob([](int32_t exitCode) {
    std::this_thread::sleep_for(timeForLastWords);
    started.load()->end_job(exitCode);
  });
  return std::unique_ptr<Transport>(std::move(transport));
}

bool isMpiFinishing() { return finishing; }

int32_t rankOfLauncher() {
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (const char *rank = std::getenv(name))
      return std::atoi(rank);
  return 0;
}

} // namespace k2c::runtime
