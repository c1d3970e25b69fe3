#include "transport/ucx/RendezvousMessages.h"
#include <cstring>

namespace k2c::runtime {

static constexpr char helloFormat[] = "k2U1", answerFormat[] = "k2U2";

template <class T> static T numberAt(std::string_view bytes, size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

template <class T> static void append(std::string &text, T number) {
  text.append(reinterpret_cast<const char *>(&number), sizeof number);
}

/// Whether a first piece begins as all of this job do.
static bool isOfJob(std::string_view bytes, const char *format, uint64_t token) {
  return bytes.substr(0, 4) == format && numberAt<uint64_t>(bytes, 8) == token;
}

Reading HelloReader::take(std::string_view bytes) {
  if (ranks != 0) {
    address = bytes;
    next = 0;
    return Reading::finished;
  }
  const auto size = numberAt<uint32_t>(bytes, 24);
  rank = numberAt<int32_t>(bytes, 16);
  ranks = numberAt<int32_t>(bytes, 20);
  if (!isOfJob(bytes, helloFormat, token) || numberAt<uint32_t>(bytes, 4) != 0 || rank < 1 || rank >= ranks ||
      size == 0 || size > maxAddressBytes)
    return Reading::foreign;
  next = size;
  return Reading::unfinished;
}

Reading AnswerReader::take(std::string_view bytes) {
  if (piece == Piece::head) {
    const auto kind = numberAt<uint32_t>(bytes, 4);
    isRefusal = kind == 1;
    count = numberAt<uint32_t>(bytes, 16);
    if (!isOfJob(bytes, answerFormat, token) || kind > 1 || count != (isRefusal ? 1 : static_cast<size_t>(ranks)))
      return Reading::foreign;
    piece = Piece::size;
    next = 4;
    return Reading::unfinished;
  }
  if (piece == Piece::size) {
    const auto size = numberAt<uint32_t>(bytes, 0);
    if (size == 0 || size > (isRefusal ? maxReasonBytes : maxAddressBytes))
      return Reading::foreign;
    piece = Piece::part;
    next = size;
    return Reading::unfinished;
  }
  parts.emplace_back(bytes);
  piece = Piece::size;
  next = parts.size() == count ? 0 : 4;
  return next == 0 ? Reading::finished : Reading::unfinished;
}

std::string helloText(uint64_t token, int32_t rank, int32_t ranks, const std::string &address) {
  std::string text = helloFormat;
  append(text, uint32_t(0));
  append(text, token);
  append(text, rank);
  append(text, ranks);
  append(text, static_cast<uint32_t>(address.size()));
  return text + address;
}

static std::string answerOf(uint64_t token, uint32_t kind, const std::vector<std::string> &parts) {
  std::string text = answerFormat;
  append(text, kind);
  append(text, token);
  append(text, static_cast<uint32_t>(parts.size()));
  for (const std::string &part : parts) {
    append(text, static_cast<uint32_t>(part.size()));
    text += part;
  }
  return text;
}

std::string answerText(uint64_t token, const std::vector<std::string> &addresses) {
  return answerOf(token, 0, addresses);
}

std::string refusalText(uint64_t token, const std::string &reason) {
  return answerOf(token, 1, {reason.substr(0, maxReasonBytes)});
}

} // namespace k2c::runtime
