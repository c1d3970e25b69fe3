//===- Units.h - bytes, FLOP and seconds as types -------------------------===//
//
// A number with a unit in its type cannot be added to one of another. Bytes
// print in both conventions where they are shown to people: documents of the
// field mix GiB and GB (7 % apart at this size).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_SUPPORT_UNITS_H
#define K2C_SUPPORT_UNITS_H

#include <cstdint>
#include <string>

namespace k2c {

/// A number of unit `Tag`, stored as `Rep` in the base unit.
template <class Tag, class Rep> struct Quantity {
  Rep value{};

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value(value) {}

  constexpr Quantity operator+(Quantity o) const { return Quantity(value + o.value); }
  constexpr Quantity operator-(Quantity o) const { return Quantity(value - o.value); }
  constexpr Quantity operator*(Rep factor) const { return Quantity(value * factor); }
  constexpr Quantity &operator+=(Quantity o) { return value += o.value, *this; }
  constexpr Quantity &operator-=(Quantity o) { return value -= o.value, *this; }
  constexpr bool operator==(Quantity o) const { return value == o.value; }
  constexpr bool operator!=(Quantity o) const { return value != o.value; }
  constexpr bool operator<(Quantity o) const { return value < o.value; }
  constexpr bool operator<=(Quantity o) const { return value <= o.value; }
  constexpr bool operator>(Quantity o) const { return value > o.value; }
  constexpr bool operator>=(Quantity o) const { return value >= o.value; }
};

using Bytes = Quantity<struct BytesTag, int64_t>;
using Flops = Quantity<struct FlopsTag, double>;
using Seconds = Quantity<struct SecondsTag, double>;

/// Bytes per second of a memory or a link.
using Bandwidth = Quantity<struct BandwidthTag, double>;

constexpr Bytes kibibytes(int64_t n) { return Bytes(n << 10); }
constexpr Bytes mebibytes(int64_t n) { return Bytes(n << 20); }
constexpr Bytes gibibytes(int64_t n) { return Bytes(n << 30); }

/// Time to move `bytes` at `bandwidth`.
constexpr Seconds operator/(Bytes bytes, Bandwidth bandwidth) {
  return Seconds(static_cast<double>(bytes.value) / bandwidth.value);
}

/// "512 B", "1.50 KiB (1.54 KB)", "18.29 GiB (19.64 GB)".
std::string format(Bytes bytes);
/// "3.20 TFLOP".
std::string format(Flops flops);
/// "12.3 us", "4.56 ms", "7.89 s".
std::string format(Seconds seconds);
/// "54.1 GB/s".
std::string format(Bandwidth bandwidth);
/// The shortest text of `digits` significant digits, as %g prints it: "12.3", "1e+09".
std::string formatNumber(double value, int digits);
/// A count with thousands separators: "671,026,404,352".
std::string formatCount(int64_t count);

} // namespace k2c

#endif // K2C_SUPPORT_UNITS_H
