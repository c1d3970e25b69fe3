//===- ClusterCommand.cpp - k2c plan MODEL --topology T -----------------------===//
//
// `k2c plan MODEL` has one command line for three kinds of plan, and what the user left out decides which one is
// meant:
//
//   counts only    a bare model whose family is not compiled: parameters and bytes, and why there is no plan
//   compile        a topology that compiles; no layout, workload, search or training: one rank, as k2c compiles it
//   load           all others: a cluster under a workload; the layout given, the default one, or the best of a search
//
// --stats asks for none of them, but for the traffic of a run (TrafficCommand.cpp).
//
// A flag that the chosen kind would not read is an error that says of which kind it is; otherwise a user could believe
// that it had an effect. The compiler is passed in: k2c has one and asks it for exact sizes, k2c-plan has none and
// says in a note what is missing. What is refused is explained after the error: what is too large, what would help.
//
//===----------------------------------------------------------------------===//
#include "ClusterCommand.h"

#include "../CommandLine.h"
#include "TrafficCommand.h"
#include "base/JsonText.h"
#include "k2c/Model/Source.h"
#include "k2c/Onnx/Import.h"
#include "k2c/Planner/ComputeType.h"
#include "k2c/Planner/Count.h"
#include <algorithm>
#include <iostream>

using namespace k2c;

namespace {

const std::vector<std::string> objectives = {"throughput", "latency", "devices", "ep", "cost"};

DType typeOf(const std::string &name) {
  return name == "fp8" ? DType::F8E4M3 : parseComputeType(name).value_or(DType::BF16);
}

/// What a model is in numbers, whatever runs it.
Expected<nlohmann::ordered_json> countsOf(const ModelSpec &spec, const std::string &source) {
  Checked total = totalParameters(spec), active = activeParameters(spec, false);
  Checked read = activeParameters(spec, true), cache = cacheBytesPerToken(spec, CacheFormat::Plain, 2);
  CheckpointSize published = checkpointSize(spec, CheckpointFormat::Published, spec.mtpLayers > 0);
  CheckpointSize bf16 = checkpointSize(spec, CheckpointFormat::Bf16, false);
  for (const Checked &number : {total, active, read, cache, published.bytes, bf16.bytes})
    if (!number.isValid())
      return Error{source, "has more parameters or bytes than 2^63", ""};
  nlohmann::ordered_json counts;
  auto add = [&](const char *key, const char *label, nlohmann::ordered_json value, const char *unit) {
    counts[key] = {{"label", label}, {"value", std::move(value)}, {"unit", unit}};
  };
  add("model", "model", spec.name, "");
  add("family", "family", spec.family, "");
  add("layers", "layers", spec.layerCount(), "layers");
  add("moe_layers", "layers with experts", spec.moeLayers().size(), "layers");
  add("parameters", "parameters", total.value(), "parameters");
  add("active_parameters", "active, without input embedding", active.value(), "parameters");
  add("active_parameters_with_embedding", "active, with input embedding", read.value(), "parameters");
  add("checkpoint_bytes", "checkpoint as published", published.bytes.value(), "B");
  if (!spec.widened.empty()) {
    int64_t stored = 0, widened = 0;
    for (const WidenedWeights &of : spec.widened) {
      stored += of.storedBytes;
      widened += of.widenedBytes;
    }
    add("widened_stored_bytes", "weights of few bits, as stored", stored, "B");
    add("widened_bytes", "the same as f32, as plans count", widened, "B");
  }
  add("checkpoint_bf16_bytes", "checkpoint in bf16", bf16.bytes.value(), "B");
  add("cache_bytes_per_token", "cache of a token in bf16", cache.value(), "B");
  return counts;
}

/// Compiles today and needs no layout: the plan is the compiler's own.
bool isCompilersPlan(const ClusterFlags &flags, const ModelSpec &spec, const Topology &topology) {
  return !flags.train && !flags.search && flags.layout.empty() && flags.workload.empty() && canCompile(spec) &&
         topology.ranks() == 1 && bool(checkCompiles(topology));
}

/// Nothing but the model was asked: what does not compile or fit here is no mistake.
bool isBare(const ClusterFlags &flags) {
  return flags.topology.empty() && flags.layout.empty() && flags.workload.empty() && !flags.train && !flags.search;
}

/// What a plan is made for: nothing that can be planned here, one rank of a compile, or a cluster under a load.
enum class Kind { CountsOnly, Compile, Load };

/// A flag that a plan of this kind would not read.
Status checkFlags(const ClusterFlags &flags, Kind kind) {
  const CompileFlags &c = flags.compile;
  const std::pair<const char *, bool> ofCompile[] = {{"--mla", !c.mla.empty()},
                                                     {"--step-tokens", c.stepTokens.has_value()},
                                                     {"--max-sequences", c.maxSequences.has_value()},
                                                     {"--max-context", c.maxContext.has_value()},
                                                     {"--output-rows", c.outputRows.has_value()}};
  const std::pair<const char *, bool> ofLoad[] = {{"--weights", !flags.weights.empty()},
                                                  {"--objective", !flags.objective.empty()}};
  const std::pair<const char *, bool> ofBoth[] = {{"--compute", !c.compute.empty()}, {"--cache", !c.cache.empty()}};
  for (const auto &[flag, isGiven] : ofCompile)
    if (isGiven && kind != Kind::Compile)
      return Error{flag, "is of a program that k2c compile makes, this plan is not of one", "leave it out"};
  for (const auto &[flag, isGiven] : ofLoad)
    if (isGiven && kind != Kind::Load)
      return Error{flag, "is of plans of a cluster, this plan is of the model on this machine",
                   "leave it out, or add --layout, --workload or --search"};
  for (const auto &[flag, isGiven] : ofBoth)
    if (isGiven && kind == Kind::CountsOnly)
      return Error{flag, "has no meaning without a plan", "add --topology"};
  // A load has latency and throughput under any layout; the others choose among layouts.
  if (!flags.search && !flags.objective.empty() &&
      (flags.train || (flags.objective != "throughput" && flags.objective != "latency")))
    return Error{"--objective " + flags.objective, "ranks the layouts of a search", "leave it out, or add --search"};
  for (const auto &[flag, value] : {std::pair{"--compute fp8", c.compute}, std::pair{"--cache fp8", c.cache}})
    if (value == "fp8" && kind == Kind::Compile)
      return Error{flag, "is of plans of a cluster, k2c compile has f32 and bf16", "leave it out"};
  if (flags.train && !c.cache.empty())
    return Error{"--cache", "training keeps no cache", "leave it out"};
  if (flags.train && flags.weights == "published")
    return Error{"--weights published", "training holds weights in bf16 or f32", "choose one of these"};
  return Status::success();
}

/// What FP8 needs of the devices and, serving, of the weights.
Status checkFp8(const PlanRequest &request) {
  const bool computes = request.compute == DType::F8E4M3;
  const char *flag = computes ? "--compute fp8" : "--cache fp8";
  if (!computes && request.cache != DType::F8E4M3)
    return Status::success();
  if (!request.topology.device.fp8)
    return Error{flag, "the devices of topology '" + request.topology.name + "' have no rate of fp8",
                 "leave it out, or choose a topology that states one"};
  const bool isStored = request.spec.quantization && request.weights == WeightFormat::Published;
  if (computes && request.phase == PlanPhase::Serve && !isStored)
    return Error{flag, "serving multiplies in FP8 what is stored in FP8, and these weights are not",
                 "leave it out, or plan a checkpoint in FP8 with --weights published"};
  return Status::success();
}

bool hasLimits(const CompileFlags &flags) {
  return flags.stepTokens || flags.maxSequences || flags.maxContext || flags.outputRows;
}

int finish(const PlanReport &report, const ClusterFlags &flags) {
  Status status = writePlan(report, flags.output);
  return status ? 0 : fail(status.error());
}

/// The counts alone, of a model that no plan of this machine can be made for, and why.
int finishWithoutPlan(const ClusterFlags &flags, nlohmann::ordered_json counts, const std::string &reason) {
  if (!flags.output.html.empty() || !flags.output.trace.empty())
    return fail("there is no plan on this machine to render: " + reason + "; name a --topology");
  if (flags.output.json)
    std::cout << jsonText(nlohmann::ordered_json{{"format", 1}, {"counts", counts}, {"no_plan", reason}}) << "\n";
  else
    std::cout << countsText(counts) << "\nthis machine: " << reason << "\n";
  return 0;
}

/// The arithmetic asked for, else bf16 on a GPU, and on a CPU what a compile would choose where bf16 is faster.
ComputeChoice computeOf(const ClusterFlags &flags, const ModelSpec &spec, const Device &device) {
  if (!flags.compile.compute.empty())
    return {typeOf(flags.compile.compute), "--compute asks for it"};
  if (device.kind != DeviceKind::Cpu)
    return {DType::BF16, "the device is a GPU"};
  return chooseCompute(spec, device.f32.value < device.bf16.value ? Bf16Unit::Avx512 : Bf16Unit::None);
}

/// What would help, in all renderings that were asked for, after the error.
int refuse(const Error &error, const PlanRequest &request, const ParallelLayout &layout, LayoutOrigin origin,
           const ClusterFlags &flags) {
  const int code = fail(error);
  const RefusedPlan refused = explainRefused(request, layout, origin, error);
  Status status = writeRefused(refused, request.topology, flags.output);
  return status ? code : fail(status.error());
}

/// What the compiler adds to a plan without it, whatever the sequences: asked of the smallest program.
void measure(HostRequest &request, const AskCompiler &compiler, CompileFlags flags) {
  flags.maxSequences = flags.maxContext = 1;
  const Expected<Plan> certified = compiler(flags);
  const Expected<Plan> plan = certified ? planHost(request.spec, request.topology, certified->limits, request.options)
                                        : Expected<Plan>(Error{});
  request.holdsLeast = bool(certified);
  if (plan)
    request.measured.arena = certified->memory.total() - plan->memory.total();
}

/// Likewise, of one rank of a compile.
int refuseHost(const Error &error, HostRequest request, const AskCompiler &compiler, const ClusterFlags &flags) {
  const int code = fail(error);
  if (compiler)
    measure(request, compiler, flags.compile);
  const RefusedPlan refused = explainRefusedHost(request, error);
  Status status = writeRefused(refused, request.topology, flags.output);
  return status ? code : fail(status.error());
}

int planHostRank(const ClusterFlags &flags, const ModelSpec &spec, const Topology &topology,
                 const AskCompiler &compiler, const nlohmann::ordered_json &counts) {
  const ComputeChoice compute = computeOf(flags, spec, topology.device);
  PlanOptions options;
  options.compute = compute.type;
  options.computeReason = compute.reason;
  if (!flags.compile.cache.empty())
    options.cache = typeOf(flags.compile.cache);
  options.mla = parseMlaForms(flags.compile.mla).value_or(MlaForms::Phased);
  Limits limits = defaultLimits(spec);
  limits.stepTokens = flags.compile.stepTokens.value_or(limits.stepTokens);
  limits.maxSequences = flags.compile.maxSequences.value_or(limits.maxSequences);
  limits.maxContext = flags.compile.maxContext.value_or(limits.maxContext);
  limits.outputRows = flags.compile.outputRows;
  const AskCompiler asked =
      resolveSource(flags.compile.source) ? compiler : AskCompiler(); // a published name has no folder
  Expected<Plan> plan = asked ? asked(flags.compile) : planHost(spec, topology, limits, options);
  if (!plan && isBare(flags))
    return finishWithoutPlan(flags, counts, plan.error().text());
  if (!plan && hasLimits(flags.compile)) // whose error says which would do
    return fail(plan.error());
  if (!plan)
    return refuseHost(plan.error(), {spec, topology, limits, options, {}, true}, asked, flags);
  ClusterPlan described = describeHostPlan(spec, topology, *plan);
  if (!asked)
    described.notes.push_back("memory lacks the arena and the scratch of kernels, which the compiler assigns: "
                              "k2c plan asks it of a folder");
  return finish({described, topology, nullptr, counts.empty() ? nullptr : &counts}, flags);
}

/// A plan of a cluster under a load, as asked or searched for.
int planLoad(const ClusterFlags &flags, const ModelSpec &spec, const Topology &topology) {
  Expected<Workload> workload = flags.workload.empty() ? defaultWorkload(spec) : loadWorkload(flags.workload);
  if (!workload)
    return fail(workload.error());
  PlanRequest request{spec, topology, *workload};
  request.phase = flags.train ? PlanPhase::Train : PlanPhase::Serve;
  request.compute = computeOf(flags, spec, topology.device).type;
  request.cache = !flags.compile.cache.empty()    ? typeOf(flags.compile.cache)
                  : request.compute == DType::F32 ? DType::F32
                                                  : DType::BF16;
  request.weights =
      parseWeightFormat(flags.weights).value_or(flags.train ? WeightFormat::Bf16 : WeightFormat::Published);
  if (Status status = checkFp8(request); !status)
    return fail(status.error());
  if (!flags.objective.empty())
    request.objective =
        Objective(std::find(objectives.begin(), objectives.end(), flags.objective) - objectives.begin());
  request.withTimeline = flags.train;
  if (flags.search) {
    Expected<PlanSearch> found = search(request);
    if (!found)
      return refuse(found.error(), request, largestDefault(request), LayoutOrigin::Searched, flags);
    return finish({found->best, topology, &*found}, flags);
  }
  Expected<ParallelLayout> layout = parseLayout(flags.layout, request.phase);
  if (!layout)
    return fail(layout.error());
  const bool isGiven = !flags.layout.empty();
  Expected<ClusterPlan> plan = isGiven ? evaluate(request, *layout) : evaluateDefault(request);
  if (!plan)
    return refuse(plan.error(), request, isGiven ? *layout : largestDefault(request),
                  isGiven ? LayoutOrigin::Given : LayoutOrigin::Default, flags);
  return finish({*plan, topology}, flags);
}

} // namespace

void k2c::declareCluster(CLI::App &command, const std::shared_ptr<ClusterFlags> &flags) {
  ClusterFlags &f = *flags;
  command.add_option("--topology", f.topology, "a name of `k2c topologies` or a file (default: host)");
  command.add_option("--workload", f.workload, "a workload file (docs/Workload.md)");
  command.add_flag("--train", f.train, "plan training instead of serving");
  CLI::Option *layout = command.add_option("--layout", f.layout,
                                           "plan this layout: ep=32,dp=32,overlap=1; phase=decode or phase=prefill: "
                                           "only the devices that generate tokens, or compute prompts");
  command.add_option("--stats", f.stats,
                     "count exactly what the tokens of this file send, which run --expert-stats wrote");
  command.add_option("--placement", f.placement,
                     "with --stats: where the experts are (default: in order, copies in the redundant slots)");
  command
      .add_option("--route-limit", f.routeLimit,
                  "with --stats: of the program, which has no copies then unless --placement says so")
      ->transform(whole(0, maxCompiledRanks));
  command.add_flag("--search", f.search, "evaluate every layout and take the best")->excludes(layout);
  command.add_option("--objective", f.objective, "what the best is best at (default: throughput)")
      ->check(CLI::IsMember(objectives));
  command.add_option("--weights", f.weights, "how weights are stored: as published, or wider")
      ->check(CLI::IsMember({"published", "bf16", "f32"}));
  command
      .add_option("--compute", f.compile.compute,
                  "arithmetic (default: on GPUs bf16, FP8 for weights in FP8 when serving; on CPUs bf16 where that is "
                  "faster and the checkpoint no wider, else f32); fp8: linears in FP8")
      ->check(CLI::IsMember({"f32", "bf16", "fp8"}));
  command.add_option("--cache", f.compile.cache, "element type of the cache (default: as compute; bf16 for fp8)")
      ->check(CLI::IsMember({"f32", "bf16", "fp8"}));
  command.add_option("--mla", f.compile.mla, "latent attention of a compile: phased, absorbed or expanded")
      ->check(CLI::IsMember({"phased", "absorbed", "expanded"}));
  command.add_option("--step-tokens", f.compile.stepTokens, "of a compile: most tokens in one step")
      ->transform(whole(1, 1 << 20));
  command.add_option("--max-sequences", f.compile.maxSequences, "of a compile: most sequences at once")
      ->transform(whole(1, 1 << 16));
  command.add_option("--max-context", f.compile.maxContext, "of a compile: most tokens of a sequence")
      ->transform(whole(1, 1 << 24));
  command.add_option("--output-rows", f.compile.outputRows, "of a compile: most rows of logits in one step")
      ->transform(whole(1, 1 << 20));
  declareOutput(command, f.output);
}

int k2c::planCluster(const ClusterFlags &given, const AskCompiler &compiler) {
  ClusterFlags flags = given;
  if (Status status = checkOutput(flags.output); !status)
    return failUsage(status.error().text());
  Expected<ModelSpec> spec = loadSourceToPlan(flags.compile.source);
  if (!spec)
    return fail(spec.error());
  Expected<Topology> topology = loadTopology(flags.topology.empty() ? "host" : flags.topology);
  if (!topology)
    return fail(topology.error());
  flags.compile.topology = flags.topology.empty() ? "host" : flags.topology;
  if (asksTraffic(flags))
    return planTraffic(flags, *spec, *topology);
  const Kind kind = isCompilersPlan(flags, *spec, *topology) ? Kind::Compile
                    : isBare(flags) && !canCompile(*spec)    ? Kind::CountsOnly
                                                             : Kind::Load;
  if (Status known = checkFlags(flags, kind); !known)
    return fail(known.error());
  nlohmann::ordered_json counts;
  if (isBare(flags)) {
    Expected<nlohmann::ordered_json> counted = countsOf(*spec, flags.compile.source);
    if (!counted)
      return fail(counted.error());
    counts = std::move(*counted);
  }
  if (kind == Kind::CountsOnly)
    return finishWithoutPlan(flags, counts, "family " + spec->family + " can be planned, not compiled, in this build");
  return kind == Kind::Compile ? planHostRank(flags, *spec, *topology, compiler, counts)
                               : planLoad(flags, *spec, *topology);
}
