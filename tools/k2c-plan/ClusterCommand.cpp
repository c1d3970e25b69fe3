//===- ClusterCommand.cpp - k2c plan MODEL --topology T -----------------------===//
#include "ClusterCommand.h"

#include "PrintPlan.h"
#include "k2c/Planner/Count.h"
#include <algorithm>
#include <filesystem>
#include <iostream>

using namespace k2c;

namespace {

const std::vector<std::string> objectives = {"throughput", "latency", "devices", "ep", "cost"};

int refuse(const std::string &text) {
  std::cerr << "k2c: error: " << text << "\n";
  return 1;
}

Expected<ModelSpec> loadModel(const std::string &source) {
  LoadOptions options;
  options.purpose = LoadPurpose::Plan;
  const bool isPath = std::filesystem::exists(source) || source.find('/') != std::string::npos;
  return isPath ? loadModelSpec(source, options) : loadPublishedModel(source);
}

DType typeOf(const std::string &name) { return name == "f32" ? DType::F32 : DType::BF16; }

void line(const std::string &what, const std::string &value) {
  std::cout << what << std::string(34 - std::min<size_t>(33, what.size()), ' ') << value << "\n";
}

/// What a model is in numbers, whatever runs it.
Status printCounts(const ModelSpec &spec, const std::string &source) {
  Checked total = totalParameters(spec), active = activeParameters(spec, false);
  Checked read = activeParameters(spec, true), cache = cacheBytesPerToken(spec, CacheFormat::Plain, 2);
  CheckpointSize published = checkpointSize(spec, CheckpointFormat::Published, spec.mtpLayers > 0);
  CheckpointSize bf16 = checkpointSize(spec, CheckpointFormat::Bf16, false);
  for (const Checked &number : {total, active, read, cache, published.bytes, bf16.bytes})
    if (!number.isValid())
      return Error{source, "has more parameters or bytes than 2^63", ""};
  line("model", spec.name + " (" + spec.family + ")");
  line("layers", std::to_string(spec.layerCount()) + ", " + std::to_string(spec.moeLayers().size()) + " with experts");
  line("parameters", formatCount(total.value()));
  line("active, without input embedding", formatCount(active.value()));
  line("active, with input embedding", formatCount(read.value()));
  line("checkpoint as published", format(Bytes(published.bytes.value())));
  line("checkpoint in bf16", format(Bytes(bf16.bytes.value())));
  line("cache of a token in bf16", format(Bytes(cache.value())));
  return Status::success();
}

/// Compiles today and needs no layout: the plan is the compiler's own.
bool isCompilersPlan(const ClusterFlags &flags, const ModelSpec &spec, const Topology &topology) {
  return !flags.train && !flags.search && flags.layout.empty() && flags.workload.empty() && canCompile(spec) &&
         bool(checkCompiles(topology));
}

/// Nothing but the model was asked: what does not compile or fit here is no mistake.
bool isBare(const ClusterFlags &flags) {
  return flags.topology.empty() && flags.layout.empty() && flags.workload.empty() && !flags.train && !flags.search;
}

int planHostRank(const ClusterFlags &flags, const ModelSpec &spec, const Topology &topology,
                 const AskCompiler &compiler) {
  PlanOptions options;
  options.compute = typeOf(flags.compile.compute);
  if (!flags.compile.cache.empty())
    options.cache = typeOf(flags.compile.cache);
  options.mla = flags.compile.mla == "absorbed"   ? MlaForms::Absorbed
                : flags.compile.mla == "expanded" ? MlaForms::Expanded
                                                  : MlaForms::Phased;
  Limits limits = defaultLimits(spec);
  limits.stepTokens = flags.compile.stepTokens.value_or(limits.stepTokens);
  limits.maxSequences = flags.compile.maxSequences.value_or(limits.maxSequences);
  limits.maxContext = flags.compile.maxContext.value_or(limits.maxContext);
  Expected<Plan> plan = compiler ? compiler(flags.compile) : planHost(spec, topology, limits, options);
  if (!plan && isBare(flags)) {
    std::cout << "\nthis machine: " << plan.error().text() << "\n";
    return 0;
  }
  if (!plan)
    return refuse(plan.error().text());
  if (isBare(flags))
    std::cout << "\n";
  ClusterPlan described = describeHostPlan(spec, topology, *plan);
  if (!compiler)
    described.notes.push_back("memory lacks the arena and the scratch of kernels, which the compiler assigns: "
                              "k2c plan asks it");
  std::cout << planText(described);
  return 0;
}

} // namespace

void k2c::declareCluster(CLI::App &command, const std::shared_ptr<ClusterFlags> &flags) {
  ClusterFlags &f = *flags;
  command.add_option("--topology", f.topology, "a name of `k2c topologies` or a file (default: host)");
  command.add_option("--workload", f.workload, "a workload file (docs/Workload.md)");
  command.add_flag("--train", f.train, "plan training instead of serving");
  CLI::Option *layout = command.add_option("--layout", f.layout, "plan this layout: ep=32,dp=32,overlap=1");
  command.add_flag("--search", f.search, "evaluate every layout and take the best")->excludes(layout);
  command.add_option("--objective", f.objective, "what the best is best at")
      ->check(CLI::IsMember(objectives))
      ->capture_default_str();
  command.add_option("--weights", f.weights, "how weights are stored: as published, or wider")
      ->check(CLI::IsMember({"published", "bf16", "f32"}));
  command.add_option("--compute", f.compile.compute, "arithmetic (default: f32 on a CPU, bf16 and FP8 on GPUs)")
      ->check(CLI::IsMember({"f32", "bf16"}));
  command.add_option("--cache", f.compile.cache, "element type of the cache (default: as compute)")
      ->check(CLI::IsMember({"f32", "bf16"}));
  command.add_option("--mla", f.compile.mla, "latent attention of a compile: phased, absorbed or expanded")
      ->check(CLI::IsMember({"phased", "absorbed", "expanded"}));
  command.add_option("--step-tokens", f.compile.stepTokens, "of a compile: most tokens in one step")
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("--max-sequences", f.compile.maxSequences, "of a compile: most sequences at once")
      ->check(CLI::Range(1, 1 << 16));
  command.add_option("--max-context", f.compile.maxContext, "of a compile: most tokens of a sequence")
      ->check(CLI::Range(1, 1 << 24));
}

int k2c::planCluster(const ClusterFlags &given, const AskCompiler &compiler) {
  ClusterFlags flags = given;
  Expected<ModelSpec> spec = loadModel(flags.compile.source);
  if (!spec)
    return refuse(spec.error().text());
  Expected<Topology> topology = loadTopology(flags.topology.empty() ? "host" : flags.topology);
  if (!topology)
    return refuse(topology.error().text());
  flags.compile.topology = flags.topology.empty() ? "host" : flags.topology;
  const bool isCpu = topology->device.kind == "cpu";
  if (flags.compile.compute.empty())
    flags.compile.compute = isCpu ? "f32" : "bf16";
  if (isBare(flags)) {
    if (Status status = printCounts(*spec, flags.compile.source); !status)
      return refuse(status.error().text());
    if (!canCompile(*spec)) {
      std::cout << "\nthis machine: family " << spec->family << " can be planned, not compiled, in this build\n";
      return 0;
    }
  }
  if (isCompilersPlan(flags, *spec, *topology))
    return planHostRank(flags, *spec, *topology, compiler);

  Expected<Workload> workload = flags.workload.empty() ? defaultWorkload(*spec) : loadWorkload(flags.workload);
  if (!workload)
    return refuse(workload.error().text());
  PlanRequest request{*spec, *topology, *workload};
  request.phase = flags.train ? PlanPhase::Train : PlanPhase::Serve;
  request.compute = typeOf(flags.compile.compute);
  request.cache = flags.compile.cache.empty() ? request.compute : typeOf(flags.compile.cache);
  request.weights = flags.weights == "f32"                   ? WeightFormat::F32
                    : flags.weights == "bf16" || flags.train ? WeightFormat::Bf16
                                                             : WeightFormat::Published;
  request.objective = Objective(std::find(objectives.begin(), objectives.end(), flags.objective) - objectives.begin());
  request.withTimeline = flags.train;
  if (flags.search) {
    Expected<PlanSearch> found = search(request);
    if (!found)
      return refuse(found.error().text());
    std::cout << searchText(*found);
    return 0;
  }
  Expected<ParallelLayout> layout = parseLayout(flags.layout, request.phase);
  if (!layout)
    return refuse(layout.error().text());
  Expected<ClusterPlan> plan = flags.layout.empty() ? evaluateDefault(request) : evaluate(request, *layout);
  if (!plan)
    return refuse(plan.error().text());
  std::cout << planText(*plan);
  return 0;
}
