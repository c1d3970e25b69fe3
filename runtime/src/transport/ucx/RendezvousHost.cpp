// One loop over all connections:
//
//   stranger -> guest, once it has said a whole hello of this job -> answered
//       \-> dropped: no hello of this job, or none in time
//
// A stranger has a few seconds, and where there are many the oldest goes first, so that neither silence
// nor a crowd keeps guests out. A guest whose connection ends is as one that has not come: it may come again.
#include "transport/ucx/RendezvousHost.h"
#include "base/Hash.h"
#include "transport/RankText.h"
#include "transport/ucx/RendezvousMessages.h"
#include "transport/ucx/Socket.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <thread>

namespace k2c::runtime {
namespace {

constexpr std::chrono::seconds timeForHello{5}, timeForAnswers{5};
constexpr int pollMs = 50;
constexpr size_t maxStrangers = 64;

struct Connection {
  Connection(Socket socket, std::string from, uint64_t token)
      : socket(std::move(socket)), from(std::move(from)), hello(token) {}

  Socket socket;
  std::string from;
  Clock::time_point since = Clock::now();
  HelloReader hello;
  std::string piece; ///< of the hello, which is not whole
  bool isGuest = false, isOver = false;
  size_t sent = 0; ///< of the answer
};

class Host {
public:
  Host(const JobMember &member, const std::string &own)
      : member(member), token(hashOf(member.token.data(), member.token.size())), until(Clock::now() + member.limit),
        addresses(static_cast<size_t>(member.ranks)) {
    addresses[0] = own;
  }
  Expected<std::vector<std::string>> run();

private:
  Status listen();
  bool listenAt(const addrinfo &address, bool everywhere);
  Status gather();
  void waitForEvents(short guestEvents);
  void accept();
  Status hear(Connection &connection);
  Status welcome(Connection &connection);
  void drop();
  void answer(const std::string &text);
  std::vector<int32_t> absent() const;

  const JobMember &member;
  const uint64_t token;
  const Clock::time_point until;
  Socket listener;
  std::vector<std::string> addresses; ///< "" of a rank that has not come
  std::list<Connection> connections;  ///< the oldest first
};

/// On failure errno says why.
bool Host::listenAt(const addrinfo &address, bool everywhere) {
  sockaddr_storage place = {};
  std::memcpy(&place, address.ai_addr, address.ai_addrlen);
  if (everywhere && address.ai_family == AF_INET6)
    reinterpret_cast<sockaddr_in6 &>(place).sin6_addr = IN6ADDR_ANY_INIT;
  else if (everywhere)
    reinterpret_cast<sockaddr_in &>(place).sin_addr.s_addr = INADDR_ANY;
  Socket socket = Socket::of(address);
  const int yes = 1;
  if (!socket || ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(socket.number(), reinterpret_cast<const sockaddr *>(&place), address.ai_addrlen) != 0 ||
      ::listen(socket.number(), SOMAXCONN) != 0)
    return false;
  listener = std::move(socket);
  return true;
}

/// At the address that the others are told; where that is not this host's own, as that of a service in front of it, at
/// all addresses of this host.
Status Host::listen() {
  std::string trouble;
  for (; Clock::now() < until; std::this_thread::sleep_for(std::chrono::milliseconds(pollMs))) {
    const Expected<Addresses> named = addressesOf(member.host, member.port);
    if (!named) { // it may become known
      trouble = "its name is unknown here: " + named.error().message;
      continue;
    }
    int error = EADDRNOTAVAIL;
    for (const bool everywhere : {false, true})
      for (const addrinfo *address = named->get(); address && error == EADDRNOTAVAIL; address = address->ai_next) {
        if (listenAt(*address, everywhere))
          return {};
        error = errno;
      }
    return systemError(rendezvousPlace(member), "rank 0 cannot listen there, where MASTER_PORT chooses the port",
                       error);
  }
  return rendezvousIsLate(member, trouble);
}

std::vector<int32_t> Host::absent() const {
  std::vector<int32_t> ranks;
  for (int32_t rank = 0; rank < member.ranks; ++rank)
    if (addresses[rank].empty())
      ranks.push_back(rank);
  return ranks;
}

/// Sleeps until something happens, or for a moment.
void Host::waitForEvents(short guestEvents) {
  std::vector<pollfd> wanted = {{listener.number(), POLLIN, 0}};
  for (const Connection &connection : connections)
    wanted.push_back({connection.socket.number(), connection.isGuest ? guestEvents : short(POLLIN), 0});
  ::poll(wanted.data(), wanted.size(), pollMs);
}

void Host::accept() {
  for (;;) {
    sockaddr_storage from = {};
    socklen_t size = sizeof from;
    Socket socket(
        ::accept4(listener.number(), reinterpret_cast<sockaddr *>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket)
      return;
    connections.emplace_back(std::move(socket), addressText(from), token);
    const auto isStranger = [](const Connection &connection) { return !connection.isGuest; };
    if (std::count_if(connections.begin(), connections.end(), isStranger) > static_cast<int64_t>(maxStrangers))
      connections.erase(std::find_if(connections.begin(), connections.end(), isStranger));
  }
}

/// A whole hello makes a guest.
Status Host::welcome(Connection &connection) {
  const HelloReader &hello = connection.hello;
  for (const Connection &other : connections)
    if (&other != &connection && other.isGuest && !other.isOver && other.hello.rank == hello.rank)
      return Error{K2RT_PEER_FAILED, rendezvousPlace(member),
                   "rank " + std::to_string(hello.rank) + " has come twice, from " + other.from + " and from " +
                       connection.from,
                   "start each rank once; jobs that run beside each other need different MASTER_PORT"};
  addresses[hello.rank] = hello.address;
  return {};
}

/// Reads what has come on a connection. What is wrong between ranks of the job ends it, and is told to both.
Status Host::hear(Connection &connection) {
  HelloReader &hello = connection.hello;
  while (!connection.isOver) {
    // A guest has nothing to say, but its end shows.
    const size_t most = connection.isGuest ? 1 : hello.wanted() - connection.piece.size();
    const std::string bytes = connection.socket.receive(most, connection.isOver);
    if (bytes.empty())
      break;
    if (connection.isGuest) {
      connection.isOver = true;
      break;
    }
    connection.piece += bytes;
    if (connection.piece.size() < hello.wanted())
      continue;
    const Reading reading = hello.take(std::exchange(connection.piece, ""));
    connection.isOver = reading == Reading::foreign;
    connection.isGuest = reading == Reading::finished;
    if (connection.isGuest && hello.ranks != member.ranks)
      return Error{K2RT_PEER_FAILED, rendezvousPlace(member),
                   "rank " + std::to_string(hello.rank) + " (" + connection.from + ") is of " +
                       std::to_string(hello.ranks) + " ranks, rank 0 of " + std::to_string(member.ranks),
                   "start all with one WORLD_SIZE"};
    if (connection.isGuest)
      return welcome(connection);
  }
  return {};
}

void Host::drop() {
  const Clock::time_point now = Clock::now();
  connections.remove_if([&](const Connection &connection) {
    const bool isLate = !connection.isGuest && now - connection.since > timeForHello;
    if (connection.isGuest && connection.isOver)
      addresses[connection.hello.rank].clear();
    return connection.isOver || isLate;
  });
}

/// Until all have come.
Status Host::gather() {
  while (!absent().empty()) {
    if (Clock::now() >= until)
      return rendezvousIsLate(member, rankList(absent()) + " of " + std::to_string(member.ranks) +
                                          (absent().size() == 1 ? " has" : " have") + " not come");
    waitForEvents(POLLIN);
    accept();
    for (const bool guests : {true, false}) { // first who has left: it may have come again
      for (Connection &connection : connections)
        if (connection.isGuest == guests)
          if (Status right = hear(connection); !right)
            return right;
      drop();
    }
  }
  return {};
}

/// Sends it to all guests, for as long as they take it.
void Host::answer(const std::string &text) {
  const Clock::time_point end = Clock::now() + timeForAnswers;
  connections.remove_if([](const Connection &connection) { return !connection.isGuest; });
  while (!connections.empty() && Clock::now() < end) {
    for (Connection &guest : connections) {
      const int64_t count = guest.socket.send(text.data() + guest.sent, text.size() - guest.sent);
      guest.sent += static_cast<size_t>(std::max<int64_t>(count, 0));
      guest.isOver = count < 0 || guest.sent == text.size();
    }
    connections.remove_if([](const Connection &guest) { return guest.isOver; });
    if (!connections.empty())
      waitForEvents(POLLOUT);
  }
}

Expected<std::vector<std::string>> Host::run() {
  if (member.ranks == 1)
    return std::move(addresses);
  if (Status listening = listen(); !listening)
    return listening.takeError();
  if (Status gathered = gather(); !gathered) {
    answer(refusalText(token, gathered.error().text()));
    return gathered.takeError();
  }
  answer(answerText(token, addresses));
  return std::move(addresses);
}

} // namespace

Expected<std::vector<std::string>> hostRendezvous(const JobMember &member, const std::string &own) {
  return Host(member, own).run();
}

} // namespace k2c::runtime
