// The two messages of a rendezvous, read in pieces each of which is known to be small before it is received.
//
//   bytes of a hello                       bytes of an answer
//   0-3    k2U1                            0-3    k2U2
//   4-7    0                               4-7    0: addresses, 1: why the job does not begin
//   8-15   hash of the token               8-15   hash of the token
//   16-19  rank                            16-19  parts that follow: one for each rank, or one
//   20-23  ranks                           then, of each part: its bytes (4), the part
//   24-27  bytes of the address
//   then   the address
//
// Numbers are little-endian.
#ifndef K2RT_TRANSPORT_UCX_RENDEZVOUSMESSAGES_H
#define K2RT_TRANSPORT_UCX_RENDEZVOUSMESSAGES_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace k2c::runtime {

inline constexpr size_t maxAddressBytes = 4096; ///< of UCX 1.13 one has a few hundred
inline constexpr size_t maxReasonBytes = 1024;

/// What a message has when it is read to its end, or why it is none of this job.
enum class Reading { unfinished, finished, foreign };

class HelloReader {
public:
  explicit HelloReader(uint64_t token) : token(token) {}
  /// How many bytes come next: at most maxAddressBytes; 0 when nothing does.
  size_t wanted() const { return next; }
  /// Exactly those.
  Reading take(std::string_view bytes);

  int32_t rank = 0, ranks = 0; ///< once one piece is read: rank is in [1, ranks)
  std::string address;

private:
  const uint64_t token;
  size_t next = 28;
};

class AnswerReader {
public:
  AnswerReader(uint64_t token, int32_t ranks) : token(token), ranks(ranks) {}
  size_t wanted() const { return next; }
  Reading take(std::string_view bytes);

  bool isRefusal = false;
  std::vector<std::string> parts; ///< addresses by rank, or the reason

private:
  enum class Piece { head, size, part };
  const uint64_t token;
  const int32_t ranks;
  Piece piece = Piece::head;
  size_t next = 20, count = 0;
};

std::string helloText(uint64_t token, int32_t rank, int32_t ranks, const std::string &address);
std::string answerText(uint64_t token, const std::vector<std::string> &addresses);
std::string refusalText(uint64_t token, const std::string &reason);

} // namespace k2c::runtime

#endif
