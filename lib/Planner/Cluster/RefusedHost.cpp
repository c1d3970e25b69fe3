//===- RefusedHost.cpp - Why one rank of a compile is refused ---------------------===//

#include "Variant.h"
#include "k2c/Support/Largest.h"

using namespace k2c;
using namespace k2c::planner;

static Expected<Plan> planOf(const HostRequest &request, const Limits &limits, bool mustFit) {
  PlanOptions options = request.options;
  options.mustFit = mustFit;
  return planHost(request.spec, request.topology, limits, options, request.measured);
}

/// The most of `limit` that is accepted with all else of `limits`; 0: none is.
static int64_t maxAccepted(const HostRequest &request, const Limits &limits, int64_t Limits::*limit) {
  return largest(limits.*limit, [&](int64_t count) {
    Limits fewer = limits;
    fewer.*limit = count;
    return bool(planOf(request, fewer, /*mustFit=*/true));
  });
}

/// Fewer sequences, else shorter ones, else short ones one by one: requests that wait cost less than those that are
/// refused.
static std::optional<Limits> acceptedLimits(const HostRequest &request) {
  for (int64_t Limits::*limit : {&Limits::maxSequences, &Limits::maxContext})
    if (const int64_t max = maxAccepted(request, request.limits, limit)) {
      Limits fewer = request.limits;
      fewer.*limit = max;
      return fewer;
    }
  Limits one = request.limits;
  one.maxSequences = 1;
  one.maxContext = maxAccepted(request, one, &Limits::maxContext);
  return one.maxContext > 0 ? std::optional(one) : std::nullopt;
}

/// Devices of another topology that serve the default workload: on this one a load may be held where a program, with
/// all that the compiler adds, is not.
static std::optional<Remedy> otherDevices(const HostRequest &request, const Error &error) {
  const Workload workload = defaultWorkload(request.spec);
  Topology none = request.topology;
  none.device.memory.value = Bytes(1);
  PlanRequest load{request.spec, none, workload};
  load.compute = request.options.compute;
  load.cache = request.options.cache.value_or(request.options.compute);
  return explainRefused(load, ParallelLayout(), LayoutOrigin::Default, error).fewest;
}

RefusedPlan k2c::explainRefusedHost(const HostRequest &request, Error error) {
  RefusedPlan refused{std::move(error), {}, {}, {}, {}};
  if (Expected<Plan> plan = planOf(request, request.limits, /*mustFit=*/false))
    refused.plan = describeHostPlan(request.spec, request.topology, *plan);
  const std::optional<Limits> limits = request.holdsLeast ? acceptedLimits(request) : std::nullopt;
  if (!limits) {
    refused.fewest = otherDevices(request, refused.error);
    return refused;
  }
  Remedy remedy;
  for (auto [flag, limit] :
       {std::pair{"--max-sequences", &Limits::maxSequences}, std::pair{"--max-context", &Limits::maxContext}})
    if ((*limits).*limit != request.limits.*limit)
      remedy.flags.push_back({flag, std::to_string((*limits).*limit)});
  remedy.plan = describeHostPlan(request.spec, request.topology, *planOf(request, *limits, /*mustFit=*/true));
  refused.remedy = std::move(remedy);
  return refused;
}
