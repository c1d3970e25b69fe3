// Sockets of TCP as values, none of which waits.
#ifndef K2RT_TRANSPORT_UCX_SOCKET_H
#define K2RT_TRANSPORT_UCX_SOCKET_H

#include "base/File.h"
#include <memory>
#include <string>
#include <sys/socket.h>

struct addrinfo;

namespace k2c::runtime {

/// Closed with its owner. Move-only.
class Socket {
public:
  explicit Socket(int number = -1) : descriptor(number) {}

  int number() const { return descriptor.number; }
  explicit operator bool() const { return number() >= 0; }

  /// One that does not wait, for an address; errno says why there is none.
  static Socket of(const addrinfo &address);
  /// Bytes that are there, at most `most`; "": none, and `isOver` says whether none will come.
  std::string receive(size_t most, bool &isOver) const;
  /// How many of the bytes were taken; -1: the connection has ended.
  int64_t send(const char *bytes, size_t count) const;

private:
  Descriptor descriptor;
};

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo *)>;

/// What a name and a port stand for; or why that is nothing.
Expected<Addresses> addressesOf(const std::string &host, const std::string &port);
/// "10.0.0.3:4242", "[::1]:4242".
std::string addressText(const sockaddr_storage &address);

} // namespace k2c::runtime

#endif
