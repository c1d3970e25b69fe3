//===- ExpertSum.h - The sum of a token's experts (N5) --------------------===//
#ifndef K2C_LIB_KERNELS_CPU_EXPERTSUM_H
#define K2C_LIB_KERNELS_CPU_EXPERTSUM_H

#include "Builder.h"

namespace k2c::emit {

/// Adds rows by a tree over the ids of experts, in place on these rows: begin, insert each, addUp, storeTo.
class ExpertSum {
public:
  /// `rows` at `base`; at most `most` of them are inserted. A leaf of the tree has `perLeaf` experts.
  ExpertSum(KernelBuilder &b, Value base, const Rows &rows, int64_t perLeaf, int64_t most);

  void begin();
  /// Row `row` (i32) is what `expert` (i32) adds.
  void insert(Value expert, Value row);
  /// All that was inserted becomes one row.
  void addUp() { addUp(/*once=*/false); }
  /// The same where several experts may have one row, the sum of them: it is taken once. They are neighbours.
  void addUpOnce() { addUp(/*once=*/true); }
  /// Copies the sum to `to`; zeros when nothing was inserted.
  void storeTo(Value to, const Rows &rows);

private:
  void addUp(bool once);
  Value number() { return b.load(b.i64(), count, DType::I64); }
  void push(Value depth, Value row, Value link);
  Value linkOf(Value expert, Value other);
  Value close(Value depth, Value link);
  void addRow(Value left, Value right);

  KernelBuilder &b;
  Value base;
  const Rows rows;
  const int64_t perLeaf;
  Value count;                     ///< of what was inserted, in memory
  Value sortedExperts, sortedRows; ///< ascending in expert
  Value openRows, links;           ///< the stack: a subtree's row, and its link to the one below
};

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_EXPERTSUM_H
