//===- RequestMix.cpp - Means of a serving workload ---------------------------===//

#include "RequestModel.h"

#include <algorithm>
#include <cmath>

using namespace k2c;
using namespace k2c::planner;

RequestMix::RequestMix(const ServeWorkload &w) {
  const double prompt = w.prompt.mean(), history = w.history.mean(), share = w.multiTurnShare;
  input = prompt + share * history;
  const double squares = w.prompt.meanOfSquares() + share * (2 * prompt * history + w.history.meanOfSquares());
  computed = std::max(1.0, (1 - w.cacheHitRate) * input);
  output = w.output.mean();
  // A prompt's tokens see on average half of it, weighted by its length; those in the cache are all seen.
  promptContext = (1 + w.cacheHitRate) / 2 * squares / input;
  const double half = w.output.meanOfSquares() / (2 * output);
  decodeContext = input + half;
  residentDeviation = std::sqrt(std::max(0.0, squares - input * input) + half * half / 3);
  longestInput = w.prompt.longest() + (share > 0 ? w.history.longest() : 0);
  longest = longestInput + w.output.longest();
  slowInput = double(w.prompt.quantile(0.95) + (share > 0.05 ? w.history.quantile(0.95) : 0));
  double accepted = 1;
  for (int64_t i = 0; i < w.draftTokens; ++i)
    tokensOfStep += accepted *= w.draftAcceptance;
}
