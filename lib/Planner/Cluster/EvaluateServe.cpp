//===- EvaluateServe.cpp - One serving layout ---------------------------------===//
//
// A serving layout has one free number, the sequences that a data-parallel rank decodes at once: more of them raise
// throughput, time per token and memory. It is found by bisection between one and what fits, against the targets, the
// arrival rate, or a given batch.
//
// Prompts are a queue with one server and equal service times, busy a share b of the time: they wait b / (2 (1 - b))
// times the service on average. In one pool prompts go first and stretch the steps of the others by 1 / (1 - b);
// without arrivals a request comes as another ends, and none waits. Two pools are limited by the slower of them and by
// the transfer of caches; the first token then includes what of the transfer no prompt step hides. The first-token
// target is held to the prompt that 95 % do not exceed. Memory is checked before time, and a missed target names the
// one that was missed.
//
//===----------------------------------------------------------------------===//

#include "ServingModel.h"
#include "k2c/Support/Largest.h"

#include <algorithm>
#include <cmath>

using namespace k2c;
using namespace k2c::planner;

double planner::waitingSeconds(double busy, double service) { return busy / (2 * (1 - busy)) * service; }
double planner::busyAtWait(double seconds, double service) { return 2 * seconds / (service + 2 * seconds); }

static std::string shortNumber(double value) { return formatNumber(value, 4); }

ServingModel::ServingModel(const RequestModel &context, const ParallelLayout &asked)
    : context(context), workload(context.request.workload.serve), mix(context.mix),
      tokens(context, asked, asked.prefill ? PoolRole::Decode : PoolRole::Both) {
  layout = tokens.layout;
  if (!asked.prefill)
    return;
  separate.emplace(context, *asked.prefill, PoolRole::Prefill);
  layout.prefill = std::make_shared<const ParallelLayout>(separate->layout);
  handover = handoverOf(context, *separate, tokens.layout, /*slow=*/false);
  slowHandover = handoverOf(context, *separate, tokens.layout, /*slow=*/true);
}

double ServingModel::firstTokenSeconds(bool slow, const Service &service) const {
  if (separate) {
    const double busy = std::min(0.99, service.promptBusy), own = slow ? separate->ownSlow : separate->ownMean;
    return own + waitingSeconds(busy, separate->serviceSeconds()) + (slow ? slowHandover : handover).exposed();
  }
  // Prompts go before tokens, so that those that arrive queue for the time that prompts take, with steps as full as
  // that; without arrivals a request comes as another ends: none queues, and steps are full.
  const bool arrive = workload.arrivalRate.has_value();
  const double busy = std::min(maxBusy, service.promptBusy), rate = service.requests / double(tokens.ranks());
  const double queue = arrive ? waitingSeconds(busy, tokens.serviceSeconds()) : 0, full = arrive ? busy : 1;
  const double own = tokens.ownSeconds(slow ? mix.slowInput : mix.input, full) + tokens.fillSeconds(full, rate);
  return own + queue + service.decode;
}

/// Requests/s that are served when generating the tokens of one takes `tokenSeconds` of their pool.
double ServingModel::maxRequests(double tokenSeconds) const {
  const double promptSeconds = prompts().promptSeconds();
  if (!separate)
    return 1 / (promptSeconds + tokenSeconds);
  double busy = maxBusy;
  if (workload.timeToFirstToken) {
    const double wait = workload.timeToFirstToken->value - separate->ownSlow - slowHandover.exposed();
    if (wait > 0) // else no load is low enough
      busy = std::min(busy, busyAtWait(wait, separate->serviceSeconds()));
  }
  // Each rank of the smaller side sends or receives one request's cache at a time.
  const double ranks = double(std::min(separate->ranks(), tokens.ranks()));
  const double moved = handover.seconds > 0 ? ranks / handover.seconds : INFINITY;
  return std::min({busy / promptSeconds, (workload.arrivalRate ? maxBusy : 1) / tokenSeconds, moved});
}

Service ServingModel::at(int64_t sequences) const {
  Service s;
  s.sequences = sequences;
  s.decode = tokens.decodeSeconds(sequences);
  const double promptSeconds = prompts().promptSeconds(), tokenSeconds = tokens.tokenSeconds(sequences, s.decode);
  s.requests = maxRequests(tokenSeconds);
  if (workload.arrivalRate) {
    s.load = *workload.arrivalRate / s.requests;
    s.requests = std::min(s.requests, *workload.arrivalRate);
  }
  s.promptBusy = s.requests * promptSeconds;
  s.tokenBusy = s.requests * tokenSeconds;
  s.perToken = s.decode / tokens.drafts / (separate ? 1 : std::max(1e-6, 1 - s.promptBusy));
  s.firstToken = firstTokenSeconds(/*slow=*/false, s);
  s.slowFirstToken = firstTokenSeconds(/*slow=*/true, s);
  return s;
}

bool ServingModel::meets(const Service &s) const {
  return targetShare(workload.timePerToken, s.perToken) <= 1 &&
         targetShare(workload.timeToFirstToken, s.slowFirstToken) <= 1 + 1e-9;
}

Error ServingModel::missed(const Service &s) const {
  const bool token = targetShare(workload.timePerToken, s.perToken) > 1;
  return {"targets",
          token ? "a token takes " + format(Seconds(s.perToken)) + " with " + std::to_string(s.sequences) +
                      " sequences a rank, the target is " + format(*workload.timePerToken)
                : "the first token of 95 % of the requests takes up to " + format(Seconds(s.slowFirstToken)) +
                      ", the target is " + format(*workload.timeToFirstToken),
          "use more devices or another layout (--search), or loosen the target"};
}

Expected<Service> ServingModel::chooseForArrivals(int64_t most) const {
  const double limit = separate ? 1 : maxBusy; // of two pools, what they serve keeps the limits of each
  auto keepsUp = [&](const Service &s) { return s.load <= limit; };
  const Service s = at(most);
  if (!keepsUp(s) && !context.request.mustFit)
    return s;
  if (!keepsUp(s))
    return Error{"arrival_rate",
                 shortNumber(*workload.arrivalRate) + " requests/s arrive, the layout serves " +
                     shortNumber(limit * *workload.arrivalRate / s.load) +
                     (separate ? "" : " (95 % of " + shortNumber(*workload.arrivalRate / s.load) + ")"),
                 separate ? "use more devices or replicas in the busier pool" : "use more devices or replicas"};
  return at(smallest(most, [&](int64_t sequences) { return keepsUp(at(sequences)); }));
}

Expected<Service> ServingModel::choose() const {
  const int64_t ranks = tokens.ranks(), wanted = (workload.batch.value_or(ranks) + ranks - 1) / ranks;
  for (const ServePool *pool : {&tokens, &prompts()})
    if (Status status = pool->checkMemory(); !status)
      return context.request.mustFit ? Expected<Service>(status.takeError()) : at(wanted);
  const int64_t most = tokens.memory.maxFittingSequences();
  if (workload.batch) {
    if (wanted > most && context.request.mustFit)
      return Error{"memory", std::to_string(wanted) + " sequences a rank do not fit, " + std::to_string(most) + " do",
                   "lower the workload's batch to at most " + std::to_string(most * ranks) + ", or use more devices"};
    return at(wanted);
  }
  if (context.request.objective == Objective::Latency && !workload.arrivalRate)
    return at(1);
  if (workload.arrivalRate)
    return chooseForArrivals(most);
  int64_t count = most;
  if (!meets(at(most)))
    count = std::max<int64_t>(1, smallest(most, [&](int64_t n) { return !meets(at(n)); }) - 1);
  if (!separate)
    return at(count);
  // No more sequences at once than the prompts of the other pool keep busy.
  const double served = at(count).requests;
  return at(smallest(count, [&](int64_t n) { return at(n).requests >= served; }));
}

Expected<ClusterPlan> planner::evaluateServe(const RequestModel &context, const ParallelLayout &asked) {
  if (Status status = checkLayout(context.request, asked); !status)
    return status.takeError();
  Expected<ParallelLayout> layout = asReplicas(context.request.spec, asked);
  if (!layout)
    return layout.takeError();
  if (asked.prefill) {
    Expected<ParallelLayout> prefill = asReplicas(context.request.spec, *asked.prefill);
    if (!prefill) {
      Error error = prefill.takeError();
      error.where = "prefill." + error.where;
      return error;
    }
    layout->prefill = std::make_shared<const ParallelLayout>(*prefill);
  }
  const ServingModel server(context, *layout);
  Expected<Service> service = server.choose();
  if (!service)
    return service.takeError();
  if (!server.meets(*service) && context.request.mustFit)
    return server.missed(*service);
  return server.plan(*service);
}

std::optional<double> planner::minServingBytes(const RequestModel &context, const ParallelLayout &asked) {
  if (!checkLayout(context.request, asked))
    return std::nullopt;
  Expected<ParallelLayout> layout = asReplicas(context.request.spec, asked);
  if (!layout)
    return std::nullopt;
  layout->stepTokens = 64;
  double most = 0;
  for (const RankMemory &ranks : ServeMemory(context, *layout).ranks(1))
    most = std::max(most, double(ranks.total().value));
  return most;
}
