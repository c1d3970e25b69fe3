// A step in two halves: the rows before a cut, and those behind it, as two steps that refer to the arrays of the whole.
//
// A cut may go through the rows of a sequence, which is then in both: to the second half, what the first appends is in
// the cache. Results, captures and forced routes of a half are the rows of the whole at its place.
#ifndef K2RT_ENGINE_STEPHALVES_H
#define K2RT_ENGINE_STEPHALVES_H

#include "k2rt/program.h"
#include "program/Manifest.h"
#include <vector>

namespace k2c::runtime {

class StepHalves {
public:
  /// Takes k2rt_halves_bytes (reserve.h) for the largest step of `manifest`, which outlives it.
  explicit StepHalves(const Manifest &manifest);

  /// `whole`, cut so that halves differ by a row at most: the first half, whose `second` is the other. Either may have
  /// no rows. Both refer to the arrays of `whole` and to this, up to the next cut.
  const k2rt_ir_step &cut(const k2rt_ir_step &whole);

private:
  void cutSequences(const k2rt_ir_step &whole, int64_t at);
  void shiftRows(const k2rt_ir_step &whole, int64_t at);

  const Manifest &manifest;
  k2rt_ir_step first = {}, second = {};
  std::vector<int32_t> firstBegin, secondBegin, rowSeq, outputs;
  std::vector<std::vector<int32_t>> lengths; ///< by cache group, of the second's sequences
  std::vector<int32_t *> lengthsOf, tablesOf;
  std::vector<int64_t *> slotsOf;
};

} // namespace k2c::runtime

#endif
