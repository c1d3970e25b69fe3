#include "transport/ucx/Socket.h"
#include <cerrno>
#include <netdb.h>

namespace k2c::runtime {

Socket Socket::of(const addrinfo &address) {
  return Socket(::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
}

static bool isForNow(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

std::string Socket::receive(size_t most, bool &isOver) const {
  std::string bytes(most, 0);
  const ssize_t count = ::recv(number(), bytes.data(), most, 0);
  isOver = count == 0 || (count < 0 && !isForNow(errno));
  bytes.resize(count < 0 ? 0 : static_cast<size_t>(count));
  return bytes;
}

int64_t Socket::send(const char *bytes, size_t count) const {
  const ssize_t sent = ::send(number(), bytes, count, MSG_NOSIGNAL);
  return sent >= 0 ? sent : isForNow(errno) ? 0 : -1;
}

Expected<Addresses> addressesOf(const std::string &host, const std::string &port) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    return Error{K2RT_PEER_FAILED, host, ::gai_strerror(error), ""};
  return Addresses(found, ::freeaddrinfo);
}

std::string addressText(const sockaddr_storage &address) {
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  ::getnameinfo(reinterpret_cast<const sockaddr *>(&address), sizeof address, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  const std::string name = host;
  return (name.find(':') == std::string::npos ? name : "[" + name + "]") + ":" + port;
}

} // namespace k2c::runtime
