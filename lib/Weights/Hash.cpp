//===- Hash.cpp - XXH3, streamed ------------------------------------------===//
#include "Hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace k2c::weights {

struct Hash::State {
  XXH3_state_t xxh; // aligned to 64 bytes by its declaration
};

Hash::Hash() : state(new State) { XXH3_128bits_reset(&state->xxh); }
Hash::Hash(Hash &&) noexcept = default;
Hash &Hash::operator=(Hash &&) noexcept = default;
Hash::~Hash() = default;

void Hash::update(const void *data, size_t bytes) { XXH3_128bits_update(&state->xxh, data, bytes); }

static std::string hex(uint64_t value) {
  std::string digits(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4)
    digits[i] = "0123456789abcdef"[value & 15];
  return digits;
}

std::string Hash::hex64() const { return hex(XXH3_64bits_digest(&state->xxh)); }

std::string hashOf(const void *data, size_t bytes) { return hex(XXH3_64bits(data, bytes)); }

std::string Hash::hex128() const {
  XXH128_hash_t hash = XXH3_128bits_digest(&state->xxh);
  return hex(hash.high64) + hex(hash.low64);
}

} // namespace k2c::weights
