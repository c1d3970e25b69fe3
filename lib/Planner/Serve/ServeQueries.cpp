//===- ServeQueries.cpp - Queries about serving -------------------------------===//

#include "../Query/Parts.h"
#include <cmath>

using namespace k2c;

namespace {

/// The token itself and those of a run of accepted drafts, each with chance `acceptance`.
QueryAnswer mtpTokens(QueryInputs &in) {
  double acceptance = in.number("acceptance", 0, 1), tokens = 0;
  int64_t depth = in.whole("depth", 0, 1024);
  for (int64_t draft = 0; draft <= depth; ++draft)
    tokens += std::pow(acceptance, double(draft));
  return QueryAnswer(tokens);
}

} // namespace

std::vector<QueryFunction> planner::serveQueries() {
  return {{"mtp_tokens_per_step", "tokens", "000, multi-token prediction", "acceptance depth", mtpTokens}};
}
