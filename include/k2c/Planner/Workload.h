//===- Workload.h - What a cluster is asked to do -------------------------===//
//
// A workload says what arrives (lengths as distributions, rates, how much of a prompt is cached already), what users
// expect (times to the first and each next token), what a training step is, and the few constants of the cost models
// that belong to neither a model nor a machine. docs/Workload.md describes the file; every key may be left out.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_WORKLOAD_H
#define K2C_PLANNER_WORKLOAD_H

#include "k2c/Planner/Placement.h"
#include "k2c/Planner/RoutedPeak.h"
#include "k2c/Planner/TrainingMemory.h"
#include "k2c/Support/DType.h"
#include "k2c/Support/Units.h"
#include <optional>
#include <string>
#include <vector>

namespace k2c {

/// A length in tokens as a discrete distribution.
class Lengths {
public:
  /// A length and how many of all have it.
  struct Point {
    int64_t tokens = 0;
    double share = 0; ///< of all; the shares of a distribution sum to 1
  };
  /// Always `tokens`.
  static Lengths fixed(int64_t tokens);
  /// Median and the deviation of the logarithm, cut at `most`; at `points` equally likely places.
  static Lengths logNormal(double median, double sigma, int64_t most, int points = 64);
  /// `points` with shares that are scaled to sum to 1; any order, not empty.
  static Lengths histogram(std::vector<Point> points);

  /// Tokens.
  double mean() const;
  /// Tokens squared: what attention over a prompt grows with.
  double meanOfSquares() const;
  /// Smallest length that at least `share` of all are no longer than.
  int64_t quantile(double share) const;
  int64_t longest() const { return ascending.back().tokens; }

private:
  std::vector<Point> ascending; ///< by tokens; shares sum to 1
};

/// When the cache of a prompt leaves the devices that compute it for those that generate its tokens: each layer's keys
/// while the next ones compute, or all after the last step.
enum class CacheTransfer : uint8_t { Layers, Whole };

/// Requests to be served.
struct ServeWorkload {
  Lengths prompt = Lengths::fixed(2000); ///< new tokens of a request
  Lengths output = Lengths::fixed(500);  ///< generated tokens
  /// Share of requests that continue a conversation, and the tokens before theirs.
  double multiTurnShare = 0;
  Lengths history = Lengths::fixed(0);
  double cacheHitRate = 0;           ///< of all input tokens, history included: those whose cache is there already
  std::optional<double> arrivalRate; ///< requests/s to the whole cluster; none: as many as it serves
  std::optional<int64_t> batch;      ///< sequences that decode at once on the cluster; none: as many as fit
  std::optional<Seconds> timeToFirstToken, timePerToken; ///< targets
  /// Multi-token prediction: tokens drafted in a step, and the chance that each is accepted after the one before it.
  int64_t draftTokens = 0;
  double draftAcceptance = 0.85;
  CacheTransfer cacheTransfer = CacheTransfer::Layers; ///< of two pools
};

/// Steps to be trained.
struct TrainWorkload {
  int64_t sequence = 4096;           ///< tokens of one
  int64_t batchTokens = 67108864;    ///< of one step
  std::optional<double> totalTokens; ///< of all steps; none: not said
  StateBytes bytes;                  ///< of a parameter's weight, gradient and optimizer states
  double buffers = 1e9;              ///< bytes of a rank beside states and activations
  double fragmentation = 0.05;       ///< share of all
};

/// Time over roofline. Of links, the topology's `efficiency` says it.
struct Inefficiency {
  double memory = 1;    ///< of reading and writing memory
  double attention = 1; ///< of attention's arithmetic
  double experts = 1;   ///< of the experts' arithmetic
};

/// The load of a plan; a plan reads the part of its phase.
struct Workload {
  std::string name = "default";
  ServeWorkload serve;
  TrainWorkload train;
  std::optional<Routing> peakRouting;       ///< what memory must hold; none: measured where there are loads, else mean
  ExpertLoad expertLoad;                    ///< of each expert; needed for Measured. Also gives the fullest rank's time
  int64_t alignment = 128;                  ///< rows of an expert are padded to a multiple
  std::optional<Inefficiency> inefficiency; ///< none: what the topology's kernels reach
  std::optional<double> dollarsPerDeviceHour;
  Routing memoryRouting() const { return peakRouting.value_or(expertLoad.empty() ? Routing::Mean : Routing::Measured); }
  double reserve = 0.08; ///< share of a device's memory that libraries and fragmentation take
};

/// Reads a workload file (YAML or JSON). Errors, with line and column: an unknown key, a number out of its range.
Expected<Workload> parseWorkload(const std::string &text, const std::string &file);
/// Likewise, of the file `path`; also an error: it cannot be read.
Expected<Workload> loadWorkload(const std::string &path);

} // namespace k2c

#endif // K2C_PLANNER_WORKLOAD_H
