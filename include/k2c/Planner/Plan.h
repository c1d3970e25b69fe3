//===- Plan.h - What the planner decided, and what it predicts ---------------===//
//
// The one result of planning. attach-plan writes it into the IR, later passes only read it; `k2c plan` prints it; the
// manifest carries its certificate. Every decision is a remark with the numbers it was taken on.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_PLAN_H
#define K2C_PLANNER_PLAN_H

#include "k2c/Planner/ClusterPlan.h"
#include "k2c/Planner/MlaForms.h"
#include "k2c/Support/DType.h"
#include "k2c/Support/Units.h"
#include "k2rt/numerics.h"
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace k2c {

enum class WeightLayout : uint8_t;

/// What a program must be able to hold; compile-time constants of the program.
struct Limits {
  static constexpr int64_t page = K2RT_PAGE_TOKENS; ///< tokens of one layer in a page of the cache
  int64_t stepTokens = 2048;                        ///< most token rows of one step
  int64_t maxSequences = 16;                        ///< most sequences of one step
  int64_t maxContext = 8192;                        ///< most tokens of one sequence, prompt and generated
  std::optional<int64_t> outputRows;                ///< most rows of logits of one step; none: one a sequence

  /// Output rows of a step, at most.
  int64_t maxOutputRows() const { return outputRows.value_or(maxSequences); }
  /// Pages of one layer: every sequence at maxContext.
  int64_t pages() const { return maxSequences * ((maxContext + page - 1) / page); }
};

/// Packed bytes of one kernel operand over all layers, on one rank.
struct FamilyBytes {
  std::string
      family; ///< of the model, or a part of one: kv_b.uk, kv_b.uk_absorbed, kv_b.uv; head of a tied embedding; rope
  int64_t blobs = 0; ///< weight slots
  Bytes bytes;       ///< of all its blobs
};

/// One plane of a cache pool (the manifest's "cache").
struct CachePlane {
  std::string plane;  ///< latent, rope; k, v
  int64_t layers = 0; ///< that cache
  int64_t width = 0;  ///< elements of a token in a layer
  DType type = DType::F32;
  int64_t pages = 0; ///< of each layer
  int64_t group = 0; ///< planes of a group share block tables

  /// Of all pages of all layers.
  Bytes bytes() const { return Bytes(layers * pages * Limits::page * width * byteWidth(type)); }
};

/// Peak bytes of one rank, as the manifest's "memory" states them.
struct MemoryCertificate {
  Bytes weights;     ///< mapped, shared between processes
  Bytes cache;       ///< planes of all pools
  Bytes arena;       ///< activations at their offsets
  Bytes scratch;     ///< of all workers
  Bytes collectives; ///< of several ranks: what they send and receive beside the program's own buffers
  Bytes logits;      ///< of the output rows
  Bytes reserve;     ///< what the runtime takes beside these
  Bytes host;        ///< of a program of a GPU, whose memory the above is: what its process takes of the host

  Bytes total() const { return weights + cache + arena + scratch + collectives + logits + reserve; }
};

/// A step, predicted.
struct Prediction {
  int64_t tokens = 0;   ///< new tokens of the step
  int64_t context = 0;  ///< tokens cached before it
  Flops flops;          ///< of the whole step
  Bytes bytes;          ///< weights and cache read
  Seconds seconds;      ///< a lower bound from peak rates, or what the machine's measured rates give
  bool byRates = false; ///< whether `seconds` is of measured rates
};

/// A decision in words and numbers; `pass` is the pass it belongs to.
struct Remark {
  std::string pass;                                    ///< "import-onnx", "set-numerics", "absorb-mla", "attach-plan"
  std::string text;                                    ///< one line, with the numbers it was taken on
  std::vector<std::pair<std::string, double>> metrics; ///< the same for programs: (name with unit, number)
};

/// The plan of one rank of a program: that which holds most.
struct Plan {
  Limits limits;
  ParallelLayout layout;             ///< of the ranks; steps are limited by `limits`
  int64_t ranks = 1;                 ///< in all
  int64_t expertSlots = 0;           ///< of a rank, for the routed experts of a layer; 0: the model has none
  Bytes expertBytes;                 ///< of one such slot, in all layers: of the part that the rank has
  WeightLayout weights{};            ///< in which kernels read matrices
  DType compute = DType::F32;        ///< activations
  std::string computeReason;         ///< why; may be ""
  MlaForms mla = MlaForms::Phased;   ///< the segment forms that were asked for
  int64_t expandedFrom = -1;         ///< see MlaForms.h; -1 for models without latent attention
  std::vector<FamilyBytes> families; ///< of all operands, as counted before the weight map is known
  std::vector<CachePlane> cache;     ///< in the order of plane ids
  Bytes cachePerToken;               ///< of all layers
  MemoryCertificate memory;
  Prediction prefill;          ///< one cold prompt of min(512, step, context) tokens
  Prediction decode;           ///< one sequence, the second token of a context
  std::vector<Remark> remarks; ///< in the order of the decisions
};

} // namespace k2c

#endif // K2C_PLANNER_PLAN_H
