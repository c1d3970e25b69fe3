//===- Hash.h - XXH3, streamed --------------------------------------------===//
//
// xxHash is header-only here (XXH_INLINE_ALL): nothing to link, and the same bytes hash alike everywhere.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_WEIGHTS_HASH_H
#define K2C_LIB_WEIGHTS_HASH_H

#include <cstdint>
#include <memory>
#include <string>

namespace k2c::weights {

/// A running XXH3 over the bytes given so far.
class Hash {
public:
  Hash();
  Hash(Hash &&) noexcept;
  Hash &operator=(Hash &&) noexcept;
  ~Hash();

  void update(const void *data, size_t bytes);
  /// 16 and 32 lower-case hex digits, most significant first.
  std::string hex64() const;
  std::string hex128() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// As Hash::hex64, of bytes in memory.
std::string hashOf(const void *data, size_t bytes);

} // namespace k2c::weights

#endif // K2C_LIB_WEIGHTS_HASH_H
