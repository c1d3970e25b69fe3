// A rank's part of a step as bytes: what the rank that schedules sends to each, and what each sends back.
//
//   record    header, then the arrays of k2rt_ir_step that a program reads; append slots and rows of sequences follow
//             from the others, so they are not sent
//   results   samples, and what was asked for: logits or log probabilities of some tokens, captured routes, hidden
//   states,
//             largest attention logits
//
// A record is hostile input: it is held against the limits of the manifest before an entry of it is used. Both are
// multiples of recordUnit bytes, each array of them begins at one.
#ifndef K2RT_ENGINE_STEPRECORD_H
#define K2RT_ENGINE_STEPRECORD_H

#include "engine/StepArrays.h"
#include "k2rt/program.h"
#include "program/Manifest.h"
#include <cstddef>
#include <vector>

namespace k2c::runtime {

inline constexpr int64_t recordUnit = 8;

/// The first bytes of a record, little-endian as all ranks are.
struct StepRecordHeader {
  uint32_t format; ///< stepRecordFormat
  uint32_t kind;   ///< StepRecordKind
  int64_t step;    ///< number
  int64_t tokenRows, outputRows, seqRows;
  int64_t tablePages; ///< of each block table, as many as the longest sequence of the step has
  uint32_t flags;     ///< StepFlag, or-ed
  uint32_t table;     ///< of the placement, by which the step goes (Placement.h)
};
inline constexpr uint32_t stepRecordFormat = 0x3253326b; // "k2S2"
enum StepRecordKind : uint32_t { stepRecord = 0, endRecord = 1, countersRecord = 2, tracesRecord = 3 };
/// What a step has or gives beside the rest.
enum StepFlag : uint32_t {
  hasSampling = 1,
  hasForced = 2,
  givesLogits = 4,
  givesExperts = 8,
  givesWeights = 16,
  givesHidden = 32,
  givesMaxLogits = 64,
  givesLogProbabilities = 128,
  inHalves = 256, ///< of all ranks
  allStepFlags = 511,
};

/// What the results of a step have of its output rows, beside samples.
struct WantedOutputs {
  bool logits = false;
  /// Of each output row the token whose log probability is wanted, -1: none; null: of no row.
  const int32_t *targets = nullptr;
};

/// The most bytes that a record of this bundle has, of `arrays` or others like them.
int64_t recordCapacity(const Manifest &manifest, const StepArrays &arrays);
/// Appends the record of `step`, which refers to `arrays`.
void writeStepRecord(const Manifest &manifest, const StepArrays &arrays, const k2rt_ir_step &step, int64_t number,
                     const WantedOutputs &wanted, std::vector<std::byte> &record);
/// Writes into the record at `record` what all ranks' records of a step say alike, once it is known: the table of the
/// placement, and whether it goes in halves.
void setShared(std::byte *record, size_t table, bool goesInHalves);
/// Appends a record that is no step, but the end of the run or a wish for what ranks have counted or traced.
void writeOtherRecord(StepRecordKind kind, int64_t number, std::vector<std::byte> &record);

/// A record that was received: a step that refers to `arrays` and, for forced routes and targets, to the record.
struct ReceivedStep {
  StepRecordHeader header;
  k2rt_ir_step step;      ///< captures nothing yet
  const int32_t *targets; ///< as of WantedOutputs
};
/// Reads `bytes` bytes at `record`, aligned to recordUnit, into `arrays`. Refuses, with the field and both numbers,
/// what is beyond the limits of the manifest, is of another step than `number` or of none of the placement's `tables`,
/// or does not fit together.
Expected<ReceivedStep> readStepRecord(const Manifest &manifest, const std::byte *record, int64_t bytes, int64_t number,
                                      int64_t tables, StepArrays &arrays);

/// Where the parts of a step's results are, in bytes from their begin; -1: it has no such part.
struct ResultLayout {
  int64_t samples = 0, logits = -1, logProbabilities = -1, experts = -1, weights = -1, hidden = -1, maxLogits = -1;
  int64_t bytes = 0;
};
ResultLayout resultLayout(const Manifest &manifest, int64_t tokenRows, int64_t outputRows, uint32_t flags);
/// The flags of the record of a step.
uint32_t flagsOf(const k2rt_ir_step &step, const WantedOutputs &wanted);

} // namespace k2c::runtime

#endif
