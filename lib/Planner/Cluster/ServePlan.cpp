//===- ServePlan.cpp - What is said of a serving layout -----------------------===//
//
// Turns the numbers of a service into what a reader of a plan sees: parts of the steps of each phase, what a device
// receives over each tier, figures with a key, a label and a unit, notes. Nothing is decided here and nothing is timed
// anew, except for the note about two-batch overlap, which is timed both ways.
//
// The keys are an interface: the JSON of a plan, the report's tables and the search's frontier find figures by them. A
// share of the time is capped at 1, as a layout that is planned although it misses its targets may be asked for more
// than it serves. Rates "while decoding" and "in prefill" are those of a pool that does nothing else, whereas
// generated tokens/s are those of the mix. With separate pools the devices of a phase are those of its pool; of a pool
// alone the figures of the other phase are left out, since zero would be a claim.
//
//===----------------------------------------------------------------------===//

#include "ServingModel.h"

#include <algorithm>
#include <cstdio>

using namespace k2c;
using namespace k2c::planner;

static const char *const partNames[] = {
    "attention",         "experts",         "dense, shared, router", "embedding, head", "draft module",
    "dispatch, combine", "tensor parallel", "context parallel",      "pipeline",        "vocabulary parallel"};

void ServingModel::addSteps(ClusterPlan &plan, const char *phase, const StepTime &step) const {
  if (step.overlaps)
    plan.overlapped.push_back(phase);
  LinkUse all;
  for (size_t i = 0; i < servePartCount; ++i) {
    const PartTime &part = step.parts[i];
    if (part.seconds <= 0)
      continue;
    plan.steps.push_back({phase, partNames[i], Seconds(part.seconds), Flops(part.flops), part.memory,
                          part.links.total(), context.links.slowestName(part.links), part.bound});
    all += part.links;
  }
  addTraffic(plan, phase, all, context.request.topology);
}

/// Of one request.
void ServingModel::addTransfer(ClusterPlan &plan) const {
  if (handover.seconds > 0)
    plan.steps.push_back(
        linkPart(context.links, "transfer", "cache of a request", handover.busiest, handover.seconds, handover.hidden));
  addTraffic(plan, "transfer", handover.busiest, context.request.topology);
}

void ServingModel::addPoolFigures(ClusterPlan &plan) const {
  auto add = figuresOf(plan);
  const std::string word = wordOf(context.request.topology.device.kind);
  add("prefill_devices", word + "s that compute prompts", double(separate->layout.devices()), "devices");
  add("decode_devices", word + "s that generate tokens", double(own.layout.devices()), "devices");
  add("transfer_bytes", "KV transfer of a request", handover.bytes, "B");
  add("transfer_s", "KV transfer time", handover.seconds, "s");
  add("transfer_exposed_s", "KV transfer exposed in TTFT", handover.exposed(), "s");
}

void ServingModel::addDollars(ClusterPlan &plan, const Service &s) const {
  if (!context.request.workload.dollarsPerDeviceHour)
    return;
  const double hour = *context.request.workload.dollarsPerDeviceHour * double(layout.devices());
  auto add = figuresOf(plan);
  auto ofMillion = [&](double tokens) { return hour / (s.requests * tokens * 3600) * 1e6; };
  add("dollars_per_hour", "$ per hour", hour, "$");
  if (tokens())
    add("dollars_per_million_tokens", "$ per million generated tokens", ofMillion(mix.output), "$");
  else
    add("dollars_per_million_input_tokens", "$ per million prompt tokens", ofMillion(mix.input), "$");
}

void ServingModel::addFigures(ClusterPlan &plan, const Service &s) const {
  const std::string each = " per " + wordOf(context.request.topology.device.kind);
  auto add = figuresOf(plan);
  const bool hasSecond = mix.output > 1; // else no time lies between two tokens
  if (tokens()) {
    const double generated = s.requests * mix.output;
    add("output_tokens_per_s", "generated tokens/s", generated, "tokens/s");
    add("output_tokens_per_s_per_device", "generated tokens/s" + each, generated / double(layout.devices()),
        "tokens/s");
    if (hasSecond)
      add("tokens_per_s_per_user", "tokens/s per user", 1 / s.perToken, "tokens/s");
  }
  const bool hits = workload.cacheHitRate > 0;
  if (prompts())
    add("input_tokens_per_s", hits ? "prompt tokens/s, cache hits counted" : "prompt tokens/s", s.requests * mix.input,
        "tokens/s");
  if (prompts() && hits)
    add("computed_input_tokens_per_s", "prompt tokens/s computed", s.requests * mix.computed, "tokens/s");
  add("requests_per_s", "requests/s", s.requests, "1/s");
  if (prompts()) {
    add("ttft_s", "TTFT", s.firstToken, "s");
    add("ttft_p95_s", "TTFT, 95th percentile", s.slowFirstToken, "s");
  }
  if (const ServePool *pool = tokens()) {
    const double sequences = double(s.sequences * pool->ranks());
    if (hasSecond)
      add("tpot_s", "TPOT", s.perToken, "s");
    add("batch", "sequences that decode at once", sequences, "sequences");
    add("sequences_per_rank", "sequences per data-parallel rank", double(s.sequences), "sequences");
    add("decode_step_s", "decode step", s.decode, "s");
    add("decode_tokens_per_s_per_device", "decode tokens/s" + each,
        sequences * pool->drafts / s.decode / double(pool->layout.devices()), "tokens/s");
  }
  if (const ServePool *pool = prompts()) {
    add("prefill_step_s", "prefill step", pool->prefill.seconds, "s");
    add("prefill_tokens_per_s_per_device", "prefill tokens/s" + each, pool->promptRate / double(pool->layout.devices()),
        "tokens/s");
  }
  add("busy", "share of the time in use", std::min(1.0, shares() ? s.load : std::max(s.promptBusy, s.tokenBusy)), "");
  if (prompts())
    add("prefill_busy", "share of the time that prompts are computed", std::min(1.0, s.promptBusy), "");
  if (tokens())
    add("decode_busy", "share of the time that tokens are generated", std::min(1.0, s.tokenBusy), "");
  if (separate)
    addPoolFigures(plan);
  addDollars(plan, s);
}

/// What two-batch overlap does to a phase, with both numbers: it reads the weights twice, so that it may lose.
std::string ServingModel::overlapNote(const ServePool &pool, const char *phase, const StepLoad &load) const {
  const double plain = pool.steps.decodeSeconds(pool.steps.time(load, false)),
               halves = pool.steps.decodeSeconds(pool.steps.time(load, true));
  const char *key = &pool != &own ? "prefill.overlap=1" : "overlap=1";
  return std::string("two-batch overlap ") + (halves < plain ? "wins" : "loses") + " in " + phase + ": " +
         format(Seconds(halves)) + " against " + format(Seconds(plain)) +
         (pool.steps.time(load).overlaps == (halves < plain) ? std::string()
          : pool.layout.overlap                              ? std::string("; leave ") + key + " out"
                                                             : std::string("; the layout leaves it out (") + key + ")");
}

/// Of devices that do only one of both: what the other pool has to do with the plan.
void ServingModel::addPoolNotes(ClusterPlan &plan, const Service &service) const {
  if (layout.role == PoolRole::Prefill)
    plan.notes.push_back("phase=prefill: the pool that computes prompts, alone; TTFT ends with the last step of a "
                         "prompt, before its KV cache has moved to those that generate tokens");
  if (layout.role == PoolRole::Decode)
    plan.notes.push_back("phase=decode: the pool that generates tokens, alone; the KV caches of prompts come from "
                         "another pool, which is taken to keep up");
  if (!separate)
    return;
  const bool prefillIsFull = service.promptBusy > service.tokenBusy;
  plan.notes.push_back("prompts are computed by " + formatCount(separate->layout.devices()) +
                       " devices, tokens generated by " + formatCount(own.layout.devices()) +
                       " (paper 004, section 2.6); the " + (prefillIsFull ? "prefill" : "decode") +
                       " pool is the busier one");
  const std::string cache = "the KV cache of a request, " + format(wholeBytes(handover.bytes)) + ", moves ",
                    seconds = format(Seconds(handover.seconds)), shown = format(Seconds(handover.exposed()));
  plan.notes.push_back(
      workload.cacheTransfer == CacheTransfer::Whole
          ? cache + "after its last prompt step, " + seconds +
                " exposed in TTFT (cache_transfer: whole); each layer's keys could leave while the next one computes "
                "(cache_transfer: layers)"
          : cache + "layer by layer beside its prompt steps (cache_transfer: layers): of " + seconds + ", " + shown +
                " are exposed in TTFT");
}

void ServingModel::addNotes(ClusterPlan &plan, const Service &service) const {
  if (std::optional<Limits> limits = own.memory.compiledLimits(service.sequences))
    plan.notes.push_back("memory is the certificate of k2c compile --compute " + std::string(name(plan.compute)) +
                         " --step-tokens " + std::to_string(limits->stepTokens) + " --max-sequences " +
                         std::to_string(limits->maxSequences) + " --max-context " + std::to_string(limits->maxContext) +
                         "; the arena and the scratch of kernels, which the compiler assigns, come on top");
  addPoolNotes(plan, service);
  auto mayOverlap = [](const ServePool *pool) {
    return pool && (pool->layout.dividesExperts() || pool->layout.overlap);
  };
  if (mayOverlap(prompts()))
    plan.notes.push_back(overlapNote(*prompts(), "prefill", prompts()->promptLoad()));
  if (mayOverlap(tokens()))
    plan.notes.push_back(overlapNote(*tokens(), "decode", tokens()->tokenLoad(service.sequences)));
}

ClusterPlan ServingModel::plan(const Service &service) const {
  ClusterPlan plan = describePlan(context, layout);
  plan.memory = own.memory.ranks(service.sequences);
  if (separate) {
    std::vector<RankMemory> prefill = separate->memory.ranks(1);
    plan.memory.insert(plan.memory.begin(), prefill.begin(), prefill.end());
  }
  if (const ServePool *pool = prompts())
    addSteps(plan, "prefill", pool->prefill);
  if (separate)
    addTransfer(plan);
  if (const ServePool *pool = tokens())
    addSteps(plan, "decode", pool->steps.time(pool->tokenLoad(service.sequences)));
  addFigures(plan, service);
  addNotes(plan, service);
  return plan;
}
