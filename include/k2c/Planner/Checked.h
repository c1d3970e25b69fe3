//===- Checked.h - Whole numbers that notice overflow -------------------------===//
//
// Counts are exact to the last unit, and their inputs come from users: a sum or product beyond 2^63 is remembered in
// the number itself, so that formulas read as in the papers and the end of a computation is checked once.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_CHECKED_H
#define K2C_PLANNER_CHECKED_H

#include <cstdint>

namespace k2c {

class Checked {
public:
  constexpr Checked(int64_t number = 0) : number(number) {}

  /// False once an operation overflowed or divided by zero.
  constexpr bool isValid() const { return valid; }
  /// Meaningless unless isValid.
  constexpr int64_t value() const { return number; }
  /// As a real number; infinite when overflowed, which no later check takes for a result.
  constexpr double real() const { return valid ? static_cast<double>(number) : __builtin_huge_val(); }

  constexpr Checked operator+(Checked o) const {
    int64_t sum = 0;
    const bool overflow = __builtin_add_overflow(number, o.number, &sum);
    return combine(o, sum, overflow);
  }
  constexpr Checked operator-(Checked o) const {
    int64_t difference = 0;
    const bool overflow = __builtin_sub_overflow(number, o.number, &difference);
    return combine(o, difference, overflow);
  }
  constexpr Checked operator*(Checked o) const {
    int64_t product = 0;
    const bool overflow = __builtin_mul_overflow(number, o.number, &product);
    return combine(o, product, overflow);
  }
  /// Rounds towards zero.
  constexpr Checked operator/(Checked o) const {
    const bool undefined = o.number == 0 || (o.number == -1 && number == INT64_MIN);
    return combine(o, undefined ? 0 : number / o.number, undefined);
  }
  /// Rounds up; both positive.
  constexpr Checked dividedUp(Checked o) const { return (*this + o - 1) / o; }
  constexpr Checked &operator+=(Checked o) { return *this = *this + o; }

private:
  constexpr Checked combine(const Checked &o, int64_t number, bool overflow) const {
    Checked result(number);
    result.valid = valid && o.valid && !overflow;
    return result;
  }

  int64_t number;
  bool valid = true;
};

} // namespace k2c

#endif // K2C_PLANNER_CHECKED_H
