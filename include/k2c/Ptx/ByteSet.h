//===- ByteSet.h - Which bytes of a memory --------------------------------===//
#ifndef K2C_PTX_BYTESET_H
#define K2C_PTX_BYTESET_H

#include <cstdint>
#include <vector>

namespace k2c::ptx {

/// A set of the bytes of a memory, a bit each. An empty one of size 0 stands for all.
class ByteSet {
public:
  ByteSet() = default;
  explicit ByteSet(uint64_t bytes) : words((bytes + 63) / 64 + 1) {}

  bool isAll() const { return words.empty(); }
  /// Whether all of `count` bytes from `first` on are in it; `count` is at most 64.
  bool has(uint64_t first, uint64_t count) const { return isAll() || (slice(first) & ones(count)) == ones(count); }
  void add(uint64_t first, uint64_t count) {
    for (uint64_t done = 0; !isAll() && done < count; done += 64) {
      const uint64_t bits = ones(count - done < 64 ? count - done : 64), at = first + done, shift = at % 64;
      words[at / 64] |= bits << shift;
      if (shift != 0)
        words[at / 64 + 1] |= bits >> (64 - shift);
    }
  }
  /// Bytes `first` to `first + count` become as those of `from` from `fromFirst` on: in it or not.
  void assign(uint64_t first, uint64_t count, const ByteSet &from, uint64_t fromFirst) {
    if (from.isAll())
      return add(first, count);
    const uint64_t chunks = isAll() ? 0 : (count + 63) / 64;
    for (uint64_t chunk = 0; chunk < chunks;
         ++chunk) { // those of one set that overlap are read before they are written
      const uint64_t done = (first > fromFirst ? chunks - 1 - chunk : chunk) * 64, at = first + done, shift = at % 64;
      const uint64_t some = count - done < 64 ? count - done : 64, bits = from.slice(fromFirst + done) & ones(some);
      words[at / 64] = (words[at / 64] & ~(ones(some) << shift)) | bits << shift;
      if (shift != 0)
        words[at / 64 + 1] = (words[at / 64 + 1] & ~(ones(some) >> (64 - shift))) | bits >> (64 - shift);
    }
  }

private:
  static uint64_t ones(uint64_t count) { return count == 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1; }
  uint64_t slice(uint64_t first) const {
    const uint64_t shift = first % 64, low = words[first / 64] >> shift;
    return shift == 0 ? low : low | words[first / 64 + 1] << (64 - shift);
  }

  std::vector<uint64_t> words; ///< one more than needed
};

} // namespace k2c::ptx

#endif // K2C_PTX_BYTESET_H
