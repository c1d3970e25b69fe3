//===- ExchangeCounts.h - Rows to or from each member ---------------------===//
#ifndef K2C_LIB_KERNELS_CPU_EXCHANGECOUNTS_H
#define K2C_LIB_KERNELS_CPU_EXCHANGECOUNTS_H

#include "Builder.h"

namespace k2c::emit {

/// int64 [2][members].
struct Counts {
  KernelBuilder &b;
  Value rows;
  int64_t members;

  Value at(Value index) { return b.at(rows, index, DType::I64); }
  Value count(Value member) { return b.load(b.i64(), at(member), DType::I64); }
  Value first(Value member) { return b.load(b.i64(), at(b.add(member, members)), DType::I64); }
  void setCount(Value member, Value count) { b.store(count, at(member), DType::I64); }
  void setFirst(Value member, Value first) { b.store(first, at(b.add(member, members)), DType::I64); }
  /// The count as it was; it becomes one larger.
  Value next(Value member) {
    Value before = count(member);
    setCount(member, b.add(before, 1));
    return before;
  }
  void clear() {
    b.loop(0, members, 1, [&](Value member) { setCount(member, b.constant(0)); });
  }
  /// Firsts from counts.
  void addUp() {
    b.loop(0, members, 1, b.constant(0), [&](Value member, ValueRange sum) {
      setFirst(member, sum[0]);
      return Values{b.add(sum[0], count(member))};
    });
  }
};

/// Where row `row` of those without gaps lies among those with, as `came` has them.
inline Value placeWithGaps(KernelBuilder &b, Counts &came, Value row) {
  Values from = b.repeat({b.constant(0), b.constant(0)}, [&](ValueRange at) { // member, rows of those before it
    Value end = b.add(at[1], came.count(at[0])), isBehind = b.compare(Compare::Ge, row, end);
    return Values{isBehind, b.select(isBehind, b.add(at[0], 1), at[0]), b.select(isBehind, end, at[1])};
  });
  return b.add(came.first(from[0]), b.sub(row, from[1]));
}

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_EXCHANGECOUNTS_H
