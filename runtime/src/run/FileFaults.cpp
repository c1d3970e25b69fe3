// Files of a bundle are mapped, and what a step reads of one that was cut short meanwhile is a SIGBUS. The handler
// finds the mapping in /proc/self/maps: a table of our own would lack the libraries. It may only call what POSIX names
// async-signal-safe, and uses no memory but its stack.
#include "run/FileFaults.h"
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace k2c::runtime {

namespace {

/// Reads a file byte by byte through a small buffer. 0 at its end, and where it cannot be read.
class ByteReader {
public:
  explicit ByteReader(const char *path) : file(::open(path, O_RDONLY | O_CLOEXEC)) {}
  ~ByteReader() { ::close(file); }
  char next() {
    if (at == filled) {
      const ssize_t got = ::read(file, buffer, sizeof buffer);
      filled = got > 0 ? static_cast<size_t>(got) : 0;
      at = 0;
    }
    return at < filled ? buffer[at++] : '\0';
  }

private:
  const int file;
  char buffer[1024];
  size_t at = 0, filled = 0;
};

/// A number in hexadecimal; `end` is the character behind it.
uintptr_t readHex(ByteReader &reader, char &end) {
  uintptr_t number = 0;
  for (;;) {
    end = reader.next();
    const bool isDigit = end >= '0' && end <= '9', isLetter = end >= 'a' && end <= 'f';
    if (!isDigit && !isLetter)
      return number;
    number = number << 4 | static_cast<uintptr_t>(isDigit ? end - '0' : end - 'a' + 10);
  }
}

/// Copies the path of the file that is mapped at `address`; empty: none is. A line of maps:
/// "7f0000000000-7f0000002000 r--s 00000000 08:01 131  /a/file"
void findFile(uintptr_t address, char *path, size_t capacity) {
  ByteReader maps("/proc/self/maps");
  path[0] = '\0';
  for (char c = '\n'; c != '\0';) {
    const uintptr_t begin = readHex(maps, c), end = readHex(maps, c);
    const bool isHere = begin <= address && address < end;
    size_t length = 0;
    while (c != '\n' && c != '\0') {
      c = maps.next();
      if (isHere && c != '\n' && (c == '/' || length > 0) && length + 1 < capacity)
        path[length++] = c;
    }
    if (isHere) {
      path[length] = '\0';
      return;
    }
  }
}

void onBusError(int, siginfo_t *fault, void *) {
  static std::atomic<bool> reported{false};
  if (reported.exchange(true)) // another worker met the same: it waits for the end
    for (;;)
      ::pause();
  char line[5000] = "run: error: ";
  char *const path = line + std::strlen(line);
  findFile(reinterpret_cast<uintptr_t>(fault->si_addr), path, 4096);
  std::strcat(line, path[0]
                        ? ": became shorter while it was in use, or its disk cannot be read; copy the file again, or "
                          "compile the bundle again\n"
                        : "memory: a page of it failed\n");
  (void)!::write(STDERR_FILENO, line, std::strlen(line));
  ::_exit(3);
}

} // namespace

void nameFileFaults() {
  struct sigaction action = {};
  action.sa_sigaction = onBusError;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

} // namespace k2c::runtime
