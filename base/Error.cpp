// Error texts.
#include "base/Error.h"
#include "base/Utf8.h"
#include <system_error>

namespace k2c {

/// A path of the longest kind, and the longest message of ours: neither is cut.
static constexpr size_t maxInLine = 8192;

std::string Error::text() const {
  std::string line = where.empty() ? message : where + ": " + message;
  return shortened(remedy.empty() ? line : line + "; " + remedy, maxInLine);
}

Error systemError(std::string where, const std::string &what, int errorNumber) {
  return Error{K2RT_SYSTEM, std::move(where), what + ": " + std::generic_category().message(errorNumber), ""};
}

} // namespace k2c
