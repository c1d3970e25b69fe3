// A message of a rendezvous as a fuzzer has it: the first byte says which one, the others come in the pieces that its
// reader asks for.
#ifndef K2C_FUZZ_RENDEZVOUS_H
#define K2C_FUZZ_RENDEZVOUS_H

#include "transport/ucx/RendezvousMessages.h"
#include <cstdlib>

namespace k2c {

inline constexpr uint64_t fuzzedToken = 0x0123456789abcdef;
inline constexpr int32_t fuzzedRanks = 3;

/// Ends the program where a reader asks for more than its bound.
template <class Reader> runtime::Reading readPieces(Reader &reader, std::string_view bytes) {
  using runtime::Reading;
  Reading reading = Reading::unfinished;
  while (reading == Reading::unfinished) {
    const size_t wanted = reader.wanted();
    if (wanted == 0 || wanted > runtime::maxAddressBytes)
      std::abort();
    if (bytes.size() < wanted)
      return reading;
    reading = reader.take(bytes.substr(0, wanted));
    bytes.remove_prefix(wanted);
  }
  return reading;
}

inline runtime::Reading readRendezvous(std::string_view bytes) {
  using namespace runtime;
  if (bytes.empty())
    return Reading::unfinished;
  if (bytes[0] == 'h') {
    HelloReader hello(fuzzedToken);
    const Reading reading = readPieces(hello, bytes.substr(1));
    if (reading == Reading::finished && (hello.rank < 1 || hello.rank >= hello.ranks || hello.address.empty()))
      std::abort();
    return reading;
  }
  AnswerReader answer(fuzzedToken, fuzzedRanks);
  const Reading reading = readPieces(answer, bytes.substr(1));
  if (reading == Reading::finished && answer.parts.size() != (answer.isRefusal ? 1u : size_t(fuzzedRanks)))
    std::abort();
  return reading;
}

} // namespace k2c

#endif // K2C_FUZZ_RENDEZVOUS_H
