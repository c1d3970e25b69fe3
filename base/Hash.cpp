// xxHash is header-only here: nothing to link, and no vector instructions but those that every x86-64 has. Wider ones
// hash no faster what comes from memory.
#include "base/Hash.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace k2c {

static constexpr char hexDigits[] = "0123456789abcdef";

struct RunningHash::State {
  XXH3_state_t xxh; // aligned to 64 bytes by its declaration
};

uint64_t hashOf(const void *data, size_t bytes) { return XXH3_64bits(data, bytes); }

// One state serves both lengths: they differ in the digest only.
RunningHash::RunningHash() : state(new State) { XXH3_128bits_reset(&state->xxh); }
RunningHash::~RunningHash() = default;
RunningHash::RunningHash(RunningHash &&) noexcept = default;
RunningHash &RunningHash::operator=(RunningHash &&) noexcept = default;

void RunningHash::update(const void *data, size_t bytes) { XXH3_128bits_update(&state->xxh, data, bytes); }

uint64_t RunningHash::value() const { return XXH3_64bits_digest(&state->xxh); }

std::string hashText(uint64_t hash) {
  std::string digits(16, '0');
  for (int i = 15; i >= 0; --i, hash >>= 4)
    digits[i] = hexDigits[hash & 15];
  return digits;
}

std::optional<uint64_t> parseHash(std::string_view digits) {
  if (digits.size() != 16)
    return std::nullopt;
  uint64_t hash = 0;
  for (char digit : digits) {
    const size_t value = std::string_view(hexDigits).find(digit);
    if (value == std::string_view::npos)
      return std::nullopt;
    hash = hash << 4 | value;
  }
  return hash;
}

std::string RunningHash::text128() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state->xxh);
  return hashText(hash.high64) + hashText(hash.low64);
}

} // namespace k2c
