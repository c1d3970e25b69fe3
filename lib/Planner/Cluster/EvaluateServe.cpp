//===- EvaluateServe.cpp - One serving layout ---------------------------------===//
//
// Prompts and generated tokens share the devices. With R prompt tokens/s and a decode step of D seconds for B
// sequences, a request of C computed and O generated tokens takes C / R + O D / (B E) of a replica's time (E tokens of
// a sequence a step), which bounds the requests/s; between two tokens of a sequence lies a step and its share of
// prefill.
//
//===----------------------------------------------------------------------===//

#include "ServeMemory.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

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
  longest = w.prompt.longest() + (share > 0 ? w.history.longest() : 0) + w.output.longest();
  slowInput = double(w.prompt.quantile(0.95) + (share > 0.05 ? w.history.quantile(0.95) : 0));
  double accepted = 1;
  for (int64_t i = 0; i < w.draftTokens; ++i)
    tokensOfStep += accepted *= w.draftAcceptance;
}

namespace {

std::string shortNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// What users get when each data-parallel rank holds `sequences`.
struct Service {
  int64_t sequences = 0;
  double decode = 0;   ///< seconds of a decode step
  double requests = 0; ///< of a replica, a second
  double load = 1;     ///< of the time, that is used
  double firstToken = 0, slowFirstToken = 0, perToken = 0;
};

class Server {
public:
  Server(const RequestModel &context, const ParallelLayout &layout)
      : context(context), workload(context.request.workload.serve), mix(context.mix), layout(layout),
        memory(context, layout), steps(context.request, context.model, context.rates, context.links, layout) {
    if (context.request.spec.mtpLayers == 0)
      drafts = 1;
    else
      drafts = mix.tokensOfStep;
    prefill = steps.fastest(prefillLoad(double(layout.stepTokens)));
    double chunk = layout.pp > 1 ? prefill.slowestStage : prefill.seconds;
    prefillRate = double(layout.dp) * double(layout.stepTokens) / chunk;
  }

  Expected<Service> choose() const;
  Service at(int64_t sequences) const;
  ClusterPlan plan(const Service &service) const;
  bool meets(const Service &service) const;
  Error missed(const Service &service) const;

private:
  StepLoad prefillLoad(double tokens) const {
    const double each = std::min(mix.computed, tokens);
    return {tokens / each, each, std::max(0.0, mix.promptContext - (each + 1) / 2),
            context.request.spec.encoderLayers > 0};
  }
  double firstTokenSeconds(double input, const Service &service) const;
  void addSteps(ClusterPlan &plan, const char *phase, const StepTime &step) const;
  void addFigures(ClusterPlan &plan, const Service &service) const;
  std::string overlapNote(const char *phase, const StepLoad &load) const;
  double targetShare(const std::optional<Seconds> &target, double value) const {
    return target ? value / target->value : 0;
  }

  const RequestModel &context;
  const ServeWorkload &workload;
  const RequestMix &mix;
  const ParallelLayout layout;
  ServeMemory memory;
  ServeStep steps;
  StepTime prefill;
  double prefillRate = 1, drafts = 1;
  friend Expected<ClusterPlan> planner::evaluateServe(const RequestModel &, const ParallelLayout &);
};

double Server::firstTokenSeconds(double input, const Service &service) const {
  const double tokens = std::max(1.0, (1 - workload.cacheHitRate) * input), step = double(layout.stepTokens);
  double own;
  if (tokens >= step)
    own = prefill.seconds + (tokens / step - 1) * (layout.pp > 1 ? prefill.slowestStage : prefill.seconds);
  else
    own = steps.fastest({1, tokens, workload.cacheHitRate * input, context.request.spec.encoderLayers > 0}).seconds;
  // Waiting: one server of fixed service time for each data-parallel rank (M/D/1), and the step under way.
  const double busy = std::min(0.99, service.requests * mix.computed / prefillRate);
  return own + busy / (2 * (1 - busy)) * (mix.computed / prefillRate * double(layout.dp)) + service.decode;
}

Service Server::at(int64_t sequences) const {
  Service s;
  s.sequences = sequences;
  s.decode = steps.decodeSeconds(steps.fastest(steps.decodeLoad(double(sequences), mix.decodeContext)));
  const double batch = double(sequences * layout.dp), prefilling = mix.computed / prefillRate;
  const double decoding = mix.output * s.decode / (batch * drafts);
  s.requests = 1 / (prefilling + decoding);
  if (workload.arrivalRate) {
    const double arriving = *workload.arrivalRate / double(layout.replicas);
    s.load = arriving / s.requests;
    s.requests = std::min(s.requests, arriving);
  }
  s.perToken = s.decode / drafts / std::max(1e-6, 1 - s.requests * prefilling);
  s.firstToken = firstTokenSeconds(mix.input, s);
  s.slowFirstToken = firstTokenSeconds(mix.slowInput, s);
  return s;
}

bool Server::meets(const Service &s) const {
  return targetShare(workload.timePerToken, s.perToken) <= 1 &&
         targetShare(workload.timeToFirstToken, s.slowFirstToken) <= 1;
}

Error Server::missed(const Service &s) const {
  const bool token = targetShare(workload.timePerToken, s.perToken) > 1;
  return {"targets",
          token ? "a token takes " + format(Seconds(s.perToken)) + " with " + std::to_string(s.sequences) +
                      " sequences a rank, the target is " + format(*workload.timePerToken)
                : "the first token of 95 % of the requests takes up to " + format(Seconds(s.slowFirstToken)) +
                      ", the target is " + format(*workload.timeToFirstToken),
          "use more devices or another layout (--search), or loosen the target"};
}

/// Sequences of a rank: as asked, as the arrivals keep busy, or as many as memory and targets allow.
Expected<Service> Server::choose() const {
  const int64_t most = memory.mostSequences();
  if (most == 0) {
    const std::vector<RankMemory> ranks = memory.ranks(1);
    const RankMemory *full = &ranks.front();
    for (const RankMemory &each : ranks)
      if (full->total() < each.total())
        full = &each;
    return Error{"memory",
                 "ranks " + full->ranks + " need " + format(full->total()) + " for one sequence of " +
                     std::to_string(mix.longest) + " tokens, a device has " + format(full->capacity),
                 "use more devices (ep, tp or pp), or shorten the workload's sequences"};
  }
  const int64_t ranks = layout.dp * layout.replicas;
  if (workload.batch) {
    const int64_t wanted = (*workload.batch + ranks - 1) / ranks;
    if (wanted > most)
      return Error{"memory", std::to_string(wanted) + " sequences a rank do not fit, " + std::to_string(most) + " do",
                   "lower the workload's batch to at most " + std::to_string(most * ranks) + ", or use more devices"};
    return at(wanted);
  }
  if (context.request.objective == Objective::Latency && !workload.arrivalRate)
    return at(1);
  // The first number from which on `holds` is true, when it is at `most`.
  auto least = [&](auto holds) {
    int64_t low = 0, high = most;
    while (high - low > 1) {
      int64_t middle = low + (high - low) / 2;
      (holds(at(middle)) ? high : low) = middle;
    }
    return high;
  };
  if (workload.arrivalRate) {
    auto keepsUp = [](const Service &s) { return s.load <= 0.95; };
    Service s = at(most);
    if (!keepsUp(s))
      return Error{"arrival_rate",
                   shortNumber(*workload.arrivalRate) + " requests/s arrive, the layout serves " +
                       shortNumber(0.95 * *workload.arrivalRate / s.load),
                   "use more devices or replicas"};
    return at(least(keepsUp));
  }
  if (meets(at(most)))
    return at(most);
  const int64_t first = least([&](const Service &s) { return !meets(s); });
  return at(std::max<int64_t>(1, first - 1));
}

//===----------------------------------------------------------------------===//
// What is printed
//===----------------------------------------------------------------------===//

const char *const partNames[] = {"attention",    "experts",           "dense, shared, router", "embedding, head",
                                 "draft module", "dispatch, combine", "tensor parallel",       "pipeline"};

void Server::addSteps(ClusterPlan &plan, const char *phase, const StepTime &step) const {
  const Topology &topology = context.request.topology;
  if (step.overlaps)
    plan.overlapped.push_back(phase);
  LinkUse all;
  for (size_t i = 0; i < servePartCount; ++i) {
    const PartTime &part = step.parts[i];
    if (part.seconds <= 0)
      continue;
    int tier = context.links.slowest(part.links);
    plan.steps.push_back({phase, partNames[i], Seconds(part.seconds), Flops(part.flops), part.memory,
                          part.links.total(), tier < 0 ? "" : topology.tiers[size_t(tier)].name, part.bound});
    all += part.links;
  }
  for (size_t tier = 0; tier < topology.tiers.size(); ++tier) {
    const Tier &t = topology.tiers[tier];
    plan.traffic.push_back(
        {phase, t.name, t.link, all.bytes[tier], t.effective(), Seconds(all.bytes[tier] / t.effective().value)});
  }
}

void Server::addFigures(ClusterPlan &plan, const Service &s) const {
  const double devices = double(layout.devices()), replicas = double(layout.replicas);
  const double sequences = double(s.sequences * layout.dp) * replicas, requests = s.requests * replicas;
  const double tokens = requests * mix.output;
  auto add = [&](const char *key, const char *label, double value, const char *unit) {
    plan.figures.push_back({key, label, value, unit});
  };
  add("output_tokens_per_s", "generated tokens/s", tokens, "tokens/s");
  add("output_tokens_per_s_per_device", "generated tokens/s a device", tokens / devices, "tokens/s");
  add("tokens_per_s_per_user", "tokens/s a user", 1 / s.perToken, "tokens/s");
  add("input_tokens_per_s", "prompt tokens/s", requests * mix.input, "tokens/s");
  add("requests_per_s", "requests/s", requests, "1/s");
  add("ttft_s", "time to first token", s.firstToken, "s");
  add("ttft_p95_s", "time to first token, 95 %", s.slowFirstToken, "s");
  add("tpot_s", "time per token", s.perToken, "s");
  add("batch", "sequences that decode at once", sequences, "sequences");
  add("sequences_per_rank", "sequences a data-parallel rank", double(s.sequences), "sequences");
  add("decode_step_s", "decode step", s.decode, "s");
  add("decode_tokens_per_s_per_device", "tokens/s a device while decoding", sequences * drafts / s.decode / devices,
      "tokens/s");
  add("prefill_step_s", "prefill step", prefill.seconds, "s");
  add("prefill_tokens_per_s_per_device", "tokens/s a device in prefill", prefillRate * replicas / devices, "tokens/s");
  add("busy", "share of the time in use", std::min(1.0, s.load), "");
  if (context.request.workload.dollarsPerDeviceHour) {
    const double hour = *context.request.workload.dollarsPerDeviceHour * devices;
    add("dollars_per_hour", "dollars an hour", hour, "$");
    add("dollars_per_million_tokens", "dollars for a million generated tokens", hour / (tokens * 3600) * 1e6, "$");
  }
}

/// What two-batch overlap does to a phase, with both numbers: it reads the weights twice, so that it may lose.
std::string Server::overlapNote(const char *phase, const StepLoad &load) const {
  const double plain = steps.decodeSeconds(steps.time(load, false)),
               halves = steps.decodeSeconds(steps.time(load, true));
  return std::string("two-batch overlap ") + (halves < plain ? "wins" : "loses") + " in " + phase + ": " +
         format(Seconds(halves)) + " against " + format(Seconds(plain)) +
         (layout.overlap ? (halves < plain ? "; it is used" : "; it is not used")
                         : (halves < plain ? "; the layout leaves it out (overlap=1)" : ""));
}

ClusterPlan Server::plan(const Service &service) const {
  ClusterPlan plan = describePlan(context, layout);
  plan.memory = memory.ranks(service.sequences);
  const StepLoad decode = steps.decodeLoad(double(service.sequences), mix.decodeContext);
  const StepLoad prompt = prefillLoad(double(layout.stepTokens));
  addSteps(plan, "prefill", prefill);
  addSteps(plan, "decode", steps.fastest(decode));
  addFigures(plan, service);
  if (std::optional<Limits> limits = memory.compiledLimits(service.sequences))
    plan.notes.push_back("memory is the certificate of k2c compile --step-tokens " +
                         std::to_string(limits->stepTokens) + " --max-sequences " +
                         std::to_string(limits->maxSequences) + " --max-context " + std::to_string(limits->maxContext) +
                         "; the arena and the scratch of kernels, which the compiler assigns, come on top");
  if (layout.ep > 1) {
    plan.notes.push_back(overlapNote("prefill", prompt));
    plan.notes.push_back(overlapNote("decode", decode));
  }
  return plan;
}

/// Data-parallel ranks that share no experts are replicas.
Expected<ParallelLayout> asReplicas(const ModelSpec &spec, ParallelLayout layout) {
  const int64_t group = spec.moe ? layout.ep * layout.etp : layout.tp;
  if (spec.encoderLayers > 0 && layout.pp > 1)
    return Error{"pp", "stages of encoder-decoder models are not planned", "use pp=1"};
  const int64_t copies = layout.tp * layout.dp / group;
  if (copies > 1 && layout.dp % copies)
    return Error{"ep",
                 "ep x etp = " + std::to_string(group) +
                     " ranks share the experts, but tp = " + std::to_string(layout.tp) + " ranks share the attention",
                 "choose ep as a multiple of tp"};
  layout.dp /= copies;
  layout.replicas *= copies;
  return layout;
}

} // namespace

Expected<ClusterPlan> planner::evaluateServe(const RequestModel &context, const ParallelLayout &asked) {
  if (Status status = checkLayout(context.request, asked); !status)
    return status.takeError();
  Expected<ParallelLayout> layout = asReplicas(context.request.spec, asked);
  if (!layout)
    return layout.takeError();
  if (layout->stepTokens == 0)
    layout->stepTokens = ServeMemory(context, *layout).chooseStepTokens();
  Server server(context, *layout);
  Expected<Service> service = server.choose();
  if (!service)
    return service.takeError();
  if (!server.meets(*service) && context.request.mustFit)
    return server.missed(*service);
  return server.plan(*service);
}

std::optional<double> planner::leastServingBytes(const RequestModel &context, const ParallelLayout &asked) {
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
