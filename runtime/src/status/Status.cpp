// Error texts, and their way into the users' C struct.
#include "status/Status.h"
#include "serve/Utf8.h"
#include <cstring>
#include <string_view>
#include <system_error>

namespace k2rt {

/// A path of the longest kind, and the longest message of ours: neither is cut.
static constexpr size_t mostInLine = 8192;

std::string Error::text() const {
  std::string line = place.empty() ? message : place + ": " + message;
  return shortened(remedy.empty() ? line : line + "; " + remedy, mostInLine);
}

Error systemError(std::string place, const std::string &what, int errorNumber) {
  return Error{K2RT_SYSTEM, std::move(place), what + ": " + std::generic_category().message(errorNumber), ""};
}

static void copyText(std::string_view from, char *to, size_t capacity) {
  const std::string text = printable(from);
  size_t length = text.size();
  if (length >= capacity)
    for (length = capacity - 1; length > 0 && (uint8_t(text[length]) & 0xC0) == 0x80;)
      --length;
  std::memcpy(to, text.data(), length);
  to[length] = 0;
}

k2rt_code exportError(const Error &error, k2rt_status *to) {
  if (to) {
    to->code = error.code;
    copyText(error.place, to->place, sizeof to->place);
    copyText(error.message, to->message, sizeof to->message);
    copyText(error.remedy, to->remedy, sizeof to->remedy);
  }
  return error.code;
}

} // namespace k2rt

extern "C" const char *k2rt_code_name(k2rt_code code) {
  switch (code) {
  case K2RT_OK:
    return "ok";
  case K2RT_INVALID_ARGUMENT:
    return "invalid argument";
  case K2RT_INVALID_BUNDLE:
    return "invalid bundle";
  case K2RT_UNSUPPORTED:
    return "unsupported";
  case K2RT_OUT_OF_MEMORY:
    return "out of memory";
  case K2RT_KERNEL_FAILED:
    return "kernel failed";
  case K2RT_INTERRUPTED:
    return "interrupted";
  case K2RT_SYSTEM:
    return "system";
  case K2RT_CODE_MAX:
    break;
  }
  return "unknown";
}
