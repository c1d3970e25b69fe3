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
    return combine(o, __builtin_add_overflow(number, o.number, &o.number));
  }
  constexpr Checked operator-(Checked o) const {
    int64_t result = 0;
    bool overflow = __builtin_sub_overflow(number, o.number, &result);
    o.number = result;
    return combine(o, overflow);
  }
  constexpr Checked operator*(Checked o) const {
    return combine(o, __builtin_mul_overflow(number, o.number, &o.number));
  }
  /// Rounds towards zero.
  constexpr Checked operator/(Checked o) const {
    bool undefined = o.number == 0 || (o.number == -1 && number == INT64_MIN);
    o.number = undefined ? 0 : number / o.number;
    return combine(o, undefined);
  }
  /// Rounds up; both positive.
  constexpr Checked dividedUp(Checked o) const { return (*this + o - 1) / o; }
  constexpr Checked &operator+=(Checked o) { return *this = *this + o; }

private:
  constexpr Checked combine(Checked result, bool overflow) const {
    result.valid = valid && result.valid && !overflow;
    return result;
  }

  int64_t number;
  bool valid = true;
};

} // namespace k2c

#endif // K2C_PLANNER_CHECKED_H
