// A ticket is a slot of the library. A tag of UCX has the sender in its upper half: UCX matches by tag alone.
//
//   63 .. 32  rank that sends      31 .. 0  tag
//
// UCX reports what has ended a connection to the worker, not to a receive from that rank, so test asks for it. A rank
// that fails tells all others and then ends: what it has said may lie in buffers when its connection ends. Hence a
// broken connection counts only after a moment in which messages of that rank can still come in. A receive from anyone
// is not concerned: ranks end one by one.
#include "transport/ucx/UcxTransport.h"
#include "base/Utf8.h"
#include "transport/Job.h"
#include "transport/TicketTable.h"
#include "transport/TransportLibrary.h"
#include "transport/ucx/UcxLibrary.h"
#include <cstdlib>
#include <dlfcn.h>
#include <vector>

namespace k2c::runtime {
namespace {

constexpr std::chrono::milliseconds timeForLastWords{200};
/// Of the end: messages that peers have received are not waited for by them, so this is for a peer that hangs.
constexpr int32_t orderlyEndMs = 2000, failedEndMs = 100;

class UcxTransport : public Transport {
public:
  UcxTransport(const k2rt_ucx_library &library, int32_t self, int32_t all) : library(library), self(self), all(all) {}
  ~UcxTransport() override { end(failedEndMs); }

  Status open(const JobMember &member);
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
    end(orderlyEndMs);
    return {};
  }

private:
  static constexpr uint64_t senderMask = uint64_t(0xffffffff) << 32;
  static uint64_t ucxTag(int32_t sender, int32_t tag) { return uint64_t(sender) << 32 | static_cast<uint32_t>(tag); }

  struct Message {
    int32_t peer = anyPeer;
    int32_t error = 0;                  ///< of the call that posted it, or of the message
    Clock::time_point failedSince = {}; ///< since the epoch of the clock: not at all
  };
  Error failure(const Message &message, int32_t error) const;
  void end(int32_t milliseconds);

  const k2rt_ucx_library &library;
  const int32_t self, all;
  k2rt_ucx_worker *worker = nullptr;
  Doorbell ownBell;
  TicketTable<Message> messages;
};

Status UcxTransport::open(const JobMember &member) {
  const auto refused = [&](const char *call, int32_t error) {
    return Error{K2RT_PEER_FAILED, "transport ucx",
                 std::string(call) + " has failed: " + shortened(library.error_text(error)),
                 "UCX_TLS and UCX_NET_DEVICES choose what it uses"};
  };
  if (const int32_t error = library.open(all, senderMask, &worker); error != 0)
    return refused("opening UCX", error);
  size_t bytes = 0;
  const void *own = library.address(worker, &bytes);
  Expected<std::vector<std::string>> addresses = meet(member, {static_cast<const char *>(own), bytes});
  if (!addresses)
    return addresses.takeError();
  for (int32_t peer = 0; peer < all; ++peer)
    if (const int32_t error = library.connect(worker, peer, (*addresses)[peer].data()); error != 0)
      return refused(("connecting to rank " + std::to_string(peer)).c_str(), error);
  return {};
}

Ticket UcxTransport::send(int32_t peer, int32_t tag, const void *data, int64_t bytes) {
  const Ticket ticket = messages.take();
  messages[ticket] = {peer, library.send(worker, ticket, peer, ucxTag(self, tag), data, bytes)};
  return ticket;
}

Ticket UcxTransport::receive(int32_t peer, int32_t tag, void *data, int64_t capacity) {
  const Ticket ticket = messages.take();
  const uint64_t mask = peer == anyPeer ? ~senderMask : ~uint64_t(0);
  const uint64_t wanted = ucxTag(peer == anyPeer ? 0 : peer, tag);
  messages[ticket] = {peer, library.receive(worker, ticket, wanted, mask, data, capacity)};
  return ticket;
}

Error UcxTransport::failure(const Message &message, int32_t error) const {
  return {K2RT_PEER_FAILED, message.peer == anyPeer ? "transport ucx" : "rank " + std::to_string(message.peer),
          "a message from it or to it has failed: " + shortened(library.error_text(error)), ""};
}

Expected<bool> UcxTransport::test(Ticket ticket) {
  Message &message = messages[ticket];
  int32_t isDone = 0;
  if (message.error == 0) {
    message.error = library.test(worker, ticket, &isDone);
    if (message.error == 0 && isDone) {
      messages.giveBack(ticket);
      return true;
    }
  }
  const int32_t broken = message.peer == anyPeer ? 0 : library.peer_error(worker, message.peer);
  const int32_t error = message.error != 0 ? message.error : broken;
  if (error == 0)
    return false;
  const Clock::time_point now = Clock::now();
  if (message.failedSince == Clock::time_point())
    message.failedSince = now;
  if (now - message.failedSince < timeForLastWords)
    return false;
  return failure(message, error);
}

void UcxTransport::end(int32_t milliseconds) {
  if (worker)
    library.close(worker, milliseconds);
  worker = nullptr;
}

/// What UCX does by itself unless its user has said otherwise: it would write to stdout, which is for results, explain
/// every connection that breaks, and take over signals.
void quietUcx() {
  ::setenv("UCX_LOG_FILE", "/dev/stderr", 0);
  ::setenv("UCX_LOG_LEVEL", "fatal", 0);
  ::setenv("UCX_HANDLE_ERRORS", "none", 0);
  ::setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 0);
}

} // namespace

Expected<std::unique_ptr<Transport>> openUcx(const std::string &file, const JobMember &member) {
  quietUcx();
  const auto library = openLibrary<k2rt_ucx_query_fn>(file, RTLD_LOCAL, K2RT_UCX_QUERY_NAME, K2RT_UCX_LIBRARY_VERSION,
                                                      "install UCX (Debian: libucx0)");
  if (!library)
    return library.error();
  auto transport = std::make_unique<UcxTransport>(**library, member.rank, member.ranks);
  if (Status open = transport->open(member); !open)
    return open.takeError();
  joinJob([](int32_t) {}); // each process ends by itself
  return std::unique_ptr<Transport>(std::move(transport));
}

} // namespace k2c::runtime
