// meet: rank 0 is the host, the others are its guests, who try until they are heard.
#include "transport/ucx/Rendezvous.h"
#include "base/Hash.h"
#include "base/Utf8.h"
#include "transport/RankText.h"
#include "transport/ucx/RendezvousHost.h"
#include "transport/ucx/RendezvousMessages.h"
#include "transport/ucx/Socket.h"
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <poll.h>
#include <thread>

namespace k2c::runtime {
namespace {

constexpr std::chrono::milliseconds pauseBetweenTries{100}, timeToConnect{2000};

class Guest {
public:
  Guest(const JobMember &member, const std::string &own)
      : member(member), token(hashOf(member.token.data(), member.token.size())),
        hello(helloText(token, member.rank, member.ranks, own)), until(Clock::now() + member.limit) {}

  Expected<std::vector<std::string>> run();

private:
  bool hasTime() const { return Clock::now() < until; }
  bool waitFor(const Socket &socket, short events, Clock::time_point by) const;
  Socket connect();
  std::optional<AnswerReader> ask(const Socket &socket);

  const JobMember &member;
  const uint64_t token;
  const std::string hello;
  const Clock::time_point until;
  std::string trouble; ///< of the last try
};

/// Whether any of the events has come by then.
bool Guest::waitFor(const Socket &socket, short events, Clock::time_point by) const {
  pollfd wanted{socket.number(), events, 0};
  while (hasTime() && Clock::now() < by)
    if (::poll(&wanted, 1, 50) > 0)
      return true;
  return false;
}

/// A connection to rank 0, or none and the trouble.
Socket Guest::connect() {
  Expected<Addresses> addresses = addressesOf(member.host, member.port);
  if (!addresses) {
    trouble = "its name is unknown here: " + addresses.error().message;
    return Socket();
  }
  for (const addrinfo *address = addresses->get(); address; address = address->ai_next) {
    Socket socket = Socket::of(*address);
    int error = socket ? 0 : errno;
    if (socket && ::connect(socket.number(), address->ai_addr, address->ai_addrlen) != 0) {
      error = errno;
      socklen_t size = sizeof error;
      if (error == EINPROGRESS && !waitFor(socket, POLLOUT, Clock::now() + timeToConnect))
        error = ETIMEDOUT;
      else if (error == EINPROGRESS)
        ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0)
      return socket;
    trouble = std::string("rank 0 does not listen there: ") + std::strerror(error);
  }
  return Socket();
}

/// The whole answer to a hello, or none and the trouble.
std::optional<AnswerReader> Guest::ask(const Socket &socket) {
  trouble = "rank 0 waits for other ranks";
  for (size_t sent = 0; sent < hello.size();) {
    const int64_t count = socket.send(hello.data() + sent, hello.size() - sent);
    if (count < 0 || (count == 0 && !waitFor(socket, POLLOUT, until)))
      return std::nullopt;
    sent += static_cast<size_t>(count);
  }
  AnswerReader answer(token, member.ranks);
  std::string piece;
  while (waitFor(socket, POLLIN, until)) {
    bool isOver = false;
    piece += socket.receive(answer.wanted() - piece.size(), isOver);
    const Reading reading = isOver                            ? Reading::foreign
                            : piece.size() == answer.wanted() ? answer.take(std::exchange(piece, ""))
                                                              : Reading::unfinished;
    if (reading == Reading::finished)
      return answer;
    if (reading == Reading::foreign) {
      trouble = "who listens there is not of this job, or was told another token";
      return std::nullopt;
    }
  }
  return std::nullopt;
}

Expected<std::vector<std::string>> Guest::run() {
  while (hasTime()) {
    if (const Socket socket = connect())
      if (std::optional<AnswerReader> answer = ask(socket)) {
        if (answer->isRefusal)
          return Error{K2RT_PEER_FAILED, "rank 0", shortened(answer->parts[0], maxReasonBytes), ""};
        return std::move(answer->parts);
      }
    std::this_thread::sleep_for(pauseBetweenTries);
  }
  return rendezvousIsLate(member, trouble);
}

} // namespace

std::string rendezvousPlace(const JobMember &member) { return "rendezvous at " + member.host + ":" + member.port; }

Error rendezvousIsLate(const JobMember &member, const std::string &trouble) {
  return {K2RT_DEADLINE, rendezvousPlace(member),
          "the deadline of " + secondsText(member.limit) + " has passed: " + trouble,
          "start all ranks with the same MASTER_ADDR, MASTER_PORT and K2RT_JOB_TOKEN, or give them longer: "
          "--deadline S"};
}

Expected<std::vector<std::string>> meet(const JobMember &member, const std::string &own) {
  if (own.size() > maxAddressBytes)
    return Error{K2RT_UNSUPPORTED, rendezvousPlace(member),
                 "the address of UCX has " + std::to_string(own.size()) + " bytes, more than " +
                     std::to_string(maxAddressBytes),
                 "choose fewer devices: UCX_NET_DEVICES"};
  return member.rank == 0 ? hostRendezvous(member, own) : Guest(member, own).run();
}

} // namespace k2c::runtime
