// What goes in front of every message of a collective, and what a receiver holds it against before a byte is written
// into a buffer. Messages of a few hundred bytes follow their header in the same message.
#ifndef K2RT_EXCHANGE_HEADER_H
#define K2RT_EXCHANGE_HEADER_H

#include "base/Error.h"
#include "exchange/Collective.h"
#include "transport/Transport.h"
#include <array>
#include <cstddef>
#include <cstdint>

namespace k2c::runtime {

/// Little-endian, as all ranks are.
struct Header {
  uint32_t format;   ///< headerFormat: the first bytes of a message of this version
  uint32_t site;     ///< of the sender's program
  uint64_t program;  ///< hash of the sender's program.so
  int64_t step;      ///< of the run
  int64_t bytes;     ///< of payload: behind the header up to maxInlineBytes, else the next message of this tag
  uint8_t op;        ///< Op: send and receive are both `send`
  uint8_t round;     ///< of the collective: reductions have two
  uint16_t reserved; ///< 0
  int32_t source;    ///< rank
};
static_assert(sizeof(Header) == 40);

inline constexpr uint32_t headerFormat = 0x3158326b; // "k2X1"
inline constexpr int64_t maxInlineBytes = maxShortBytes - static_cast<int64_t>(sizeof(Header));

/// A header and what may follow it.
struct Envelope {
  Header header;
  std::array<std::byte, maxInlineBytes> payload;
};
static_assert(sizeof(Envelope) == maxShortBytes);

/// The header of a message of `round` of a collective.
Header headerOf(const Collective &collective, uint64_t program, int32_t round, int32_t rank, int64_t bytes);

/// Whether `header` is what `own`, this rank's header for the same message, says; the payload may be shorter where
/// `isCapacity`. Names both values of what differs.
Status checkHeader(const Header &header, const Header &own, bool isCapacity, const Collective &collective);

} // namespace k2c::runtime

#endif
