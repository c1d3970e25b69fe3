// XXH3-64, the hash of every file of a bundle: files.json and weights/index.json hold it as 16 hex digits. The longer
// XXH3-128 names blobs by what they contain.
#ifndef K2C_BASE_HASH_H
#define K2C_BASE_HASH_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace k2c {

/// The hash of bytes in memory.
uint64_t hashOf(const void *data, size_t bytes);

/// The hash of bytes that come in pieces. Move-only.
class RunningHash {
public:
  RunningHash();
  ~RunningHash();
  RunningHash(RunningHash &&) noexcept;
  RunningHash &operator=(RunningHash &&) noexcept;

  void update(const void *data, size_t bytes);
  /// Of the bytes given so far.
  uint64_t value() const;
  /// The 128-bit hash of the same bytes: 32 lower-case hex digits, most significant first.
  std::string text128() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// 16 lower-case hex digits, most significant first.
std::string hashText(uint64_t hash);
/// The reverse; none for every other text.
std::optional<uint64_t> parseHash(std::string_view digits);

} // namespace k2c

#endif
