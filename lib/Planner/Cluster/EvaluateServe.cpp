//===- EvaluateServe.cpp - One serving layout ---------------------------------===//
//
// A serving layout has one free number, the sequences that a data-parallel rank decodes at once: more of them raise
// throughput, time per token and memory. It is found by bisection between one and what fits, against the targets, the
// arrival rate, or a given batch.
//
// Prompts are a queue with one server and equal service times, busy a share b of the time: they wait b / (2 (1 - b))
// times the service on average. In one pool prompts go first and stretch the steps of the others by 1 / (1 - b);
// without arrivals a request comes as another ends, and none waits. Two pools are limited by the slower of them and by
// the transfer of caches; the first token then includes what of the transfer no prompt step hides. One of the two alone
// is limited by itself. The first-token target is held to the prompt that 95 % do not exceed. Memory is checked before
// time, and a missed target names the one that was missed.
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
      own(context, asked, asked.prefill ? PoolRole::Decode : asked.role) {
  layout = own.layout;
  if (!asked.prefill)
    return;
  separate.emplace(context, *asked.prefill, PoolRole::Prefill);
  layout.prefill = std::make_shared<const ParallelLayout>(separate->layout);
  handover = handoverOf(context, *separate, own.layout, /*slow=*/false);
  slowHandover = handoverOf(context, *separate, own.layout, /*slow=*/true);
}

double ServingModel::firstTokenSeconds(bool slow, const Service &service) const {
  const ServePool *pool = prompts();
  if (!pool)
    return 0;
  if (!shares()) {
    const double busy = std::min(0.99, service.promptBusy), steps = slow ? pool->ownSlow : pool->ownMean;
    return steps + waitingSeconds(busy, pool->serviceSeconds()) + (slow ? slowHandover : handover).exposed();
  }
  // Prompts go before tokens, so that those that arrive queue for the time that prompts take, with steps as full as
  // that; without arrivals a request comes as another ends: none queues, and steps are full.
  const bool arrive = workload.arrivalRate.has_value();
  const double busy = std::min(maxBusy, service.promptBusy), rate = service.requests / double(own.ranks());
  const double queue = arrive ? waitingSeconds(busy, own.serviceSeconds()) : 0, full = arrive ? busy : 1;
  const double steps = own.ownSeconds(slow ? mix.slowInput : mix.input, full) + own.fillSeconds(full, rate);
  return steps + queue + service.decode;
}

/// Requests/s that are served when generating the tokens of one takes `tokenSeconds` of their pool.
double ServingModel::maxRequests(double tokenSeconds) const {
  if (shares())
    return 1 / (promptSeconds() + tokenSeconds);
  double most = INFINITY;
  if (const ServePool *pool = prompts()) {
    double busy = maxBusy;
    if (workload.timeToFirstToken) {
      const double wait = workload.timeToFirstToken->value - pool->ownSlow - slowHandover.exposed();
      if (wait > 0) // else no load is low enough
        busy = std::min(busy, busyAtWait(wait, pool->serviceSeconds()));
    }
    most = busy / pool->promptSeconds();
  }
  if (tokens())
    most = std::min(most, (workload.arrivalRate ? maxBusy : 1) / tokenSeconds);
  // Each rank of the smaller side sends or receives one request's cache at a time.
  if (separate && handover.seconds > 0)
    most = std::min(most, double(std::min(separate->ranks(), own.ranks())) / handover.seconds);
  return most;
}

Service ServingModel::at(int64_t sequences) const {
  Service s;
  s.sequences = sequences;
  const ServePool *pool = tokens();
  s.decode = pool ? pool->decodeSeconds(sequences) : 0;
  const double tokenSeconds = pool ? pool->tokenSeconds(sequences, s.decode) : 0;
  s.requests = maxRequests(tokenSeconds);
  if (workload.arrivalRate) {
    s.load = *workload.arrivalRate / s.requests;
    s.requests = std::min(s.requests, *workload.arrivalRate);
  }
  s.promptBusy = s.requests * promptSeconds();
  s.tokenBusy = s.requests * tokenSeconds;
  s.perToken = s.decode / own.drafts / (shares() ? std::max(1e-6, 1 - s.promptBusy) : 1);
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
  return {missedTarget,
          token ? "a token takes " + format(Seconds(s.perToken)) + " with " + std::to_string(s.sequences) +
                      " sequences a rank, the target is " + format(*workload.timePerToken)
                : "the first token of 95 % of the requests takes up to " + format(Seconds(s.slowFirstToken)) +
                      ", the target is " + format(*workload.timeToFirstToken),
          std::string("use more devices or another layout") + (layout.role == PoolRole::Both ? " (--search)" : "") +
              ", or loosen the target"};
}

Expected<Service> ServingModel::chooseForArrivals(int64_t most) const {
  const double limit = shares() ? maxBusy : 1; // what a pool that does one of them serves keeps its limit
  auto keepsUp = [&](const Service &s) { return s.load <= limit; };
  const Service s = at(most);
  if (!keepsUp(s) && !context.request.mustFit)
    return s;
  if (!keepsUp(s))
    return Error{"arrival_rate",
                 shortNumber(*workload.arrivalRate) + " requests/s arrive, the layout serves " +
                     shortNumber(limit * *workload.arrivalRate / s.load) +
                     (!shares() ? "" : " (95 % of " + shortNumber(*workload.arrivalRate / s.load) + ")"),
                 separate ? "use more devices or replicas in the busier pool" : "use more devices or replicas"};
  return at(smallest(most, [&](int64_t sequences) { return keepsUp(at(sequences)); }));
}

Expected<Service> ServingModel::choose() const {
  const int64_t ranks = own.ranks(), wanted = (workload.batch.value_or(ranks) + ranks - 1) / ranks;
  for (const ServePool *pool : {tokens(), prompts()})
    if (Status status = pool ? pool->checkMemory() : Status::success(); !status)
      return context.request.mustFit ? Expected<Service>(status.takeError()) : at(wanted);
  const int64_t most = own.memory.maxFittingSequences();
  if (workload.batch) {
    if (wanted > most && context.request.mustFit)
      return Error{"memory", std::to_string(wanted) + " sequences a rank do not fit, " + std::to_string(most) + " do",
                   "lower the workload's batch, of which memory holds " + std::to_string(most * ranks) +
                       ", or use more devices"};
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
  layout->stepTokens = layout->role == PoolRole::Decode ? 0 : 64;
  double most = 0;
  for (const RankMemory &ranks : ServeMemory(context, *layout, layout->role).ranks(1))
    most = std::max(most, double(ranks.total().value));
  return most;
}

int64_t k2c::overlapsFrom(const PlanRequest &request, const ParallelLayout &layout, int64_t most) {
  const RequestModel context(request);
  const ServeStep steps(request, context.model, context.rates, context.links, layout);
  auto wins = [&](int64_t tokens) {
    const StepLoad prompt{1, double(tokens), 0, false};
    return steps.time(prompt, true).seconds < steps.time(prompt, false).seconds;
  };
  int64_t from = 0;
  for (int64_t tokens = most; tokens > 0 && wins(tokens); tokens /= 2)
    from = tokens;
  return from;
}
