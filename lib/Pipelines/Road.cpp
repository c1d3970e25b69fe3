//===- Road.cpp - The IR on its road through the forms --------------------===//
#include "Remarks.h"
#include "Stages.h"
#include "Workers.h"
#include "base/Utf8.h"
#include "dialects/Dialects.h"
#include "dialects/Rt/Rt.h"
#include "k2c/Kernels/Emit.h"
#include "k2c/Kernels/TileAttr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace k2c {

namespace {

/// Collects what passes and verifiers report.
class Diagnostics {
public:
  explicit Diagnostics(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
            return;
          llvm::raw_string_ostream os(text);
          os << (text.empty() ? "" : "\n") << diagnostic.getLocation() << ": " << diagnostic;
        }) {}

  std::string text;

private:
  ScopedDiagnosticHandler handler;
};

} // namespace

Road::Road(const Inputs &inputs, const CompileOptions &options)
    : inputs(inputs), options(options),
      // Objects are compiled in forked children, which a thread pool would not survive.
      context(std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED)) {
  DialectRegistry registry;
  registerDialects(registry);
  registry.insert<func::FuncDialect, arith::ArithDialect, scf::SCFDialect>();
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
  loadKernelDialects(*context);
  collectRemarks(*context, passRemarks);
}

PipelineOptions Road::pipelineOptions() const {
  PipelineOptions p;
  p.compute = options.compute;
  p.mla = options.mla;
  p.topology = inputs.topology.name;
  p.target = inputs.target.tileTarget();
  p.cores = inputs.topology.device.cores;
  p.expandedFrom = decided.expandedFrom;
  p.weightBytes = decided.memory.weights.value;
  p.cacheBytes = decided.memory.cache.value;
  p.prefillSeconds = decided.prefill.seconds.value;
  p.decodeSeconds = decided.decode.seconds.value;
  p.fusion = llvm::find(options.without, "fusion") == options.without.end();
  p.launchGroups = llvm::find(options.without, "launch-groups") == options.without.end();
  p.bufferReuse = llvm::find(options.without, "buffer-reuse") == options.without.end();
  p.readAhead = llvm::find(options.without, "read-ahead") == options.without.end();
  p.tileChoice = options.tileChoice;
  return p;
}

Status Road::run(void (*build)(OpPassManager &, const PipelineOptions &), const char *form) {
  Diagnostics diagnostics(context.get());
  PassManager pm(context.get());
  pm.enableVerifier(true);
  build(pm, pipelineOptions());
  if (failed(pm.run(*ir)))
    return Error{std::string(form) + " form", diagnostics.text, ""};
  return {};
}

/// The plan again, now that weights, arena and scratch are known exactly: refuses what does not fit.
Status Road::certify() {
  Diagnostics diagnostics(context.get());
  FailureOr<ProgramWeights> weights = ProgramWeights::collect(*ir);
  if (failed(weights))
    return Error{"scheduled form", diagnostics.text, ""};
  map = weightMapOf(*weights, inputs.spec);
  launched = programKernels(*ir, *weights);
  for (const ProgramKernel &kernel : launched) {
    scratch = std::max(scratch, scratchBytes(kernel.desc, kernel.tile));
    costs[kernel.desc.name] = costRule(kernel.desc);
  }
  for (const WeightRange &range : weights->ranges())
    appendShare(slotShares, range.count(), range.share);
  Known known;
  known.weights = Bytes(map.totalBytes());
  known.arena = Bytes((*ir)->getAttrOfType<IntegerAttr>("mem.peak").getInt());
  known.scratchPerWorker = Bytes(scratch);
  known.tokenizerFile = Bytes(inputs.folder.empty() ? 0 : tokenizerBytes(inputs.folder));
  Expected<Plan> plan = planHost(inputs.spec, inputs.topology, inputs.limits, inputs.planOptions, known);
  if (!plan)
    return plan.takeError();
  decided = std::move(*plan);
  predictByRates();
  remarkWorkers(inputs.topology.device, slotShares, launched, decided);
  return {};
}

/// Where the machine was measured, times of the program's own kernels take the place of bounds.
void Road::predictByRates() {
  const std::optional<Calibration> &measured = inputs.topology.device.measured;
  const TeamRates *team = measured ? measured->team(inputs.topology.device.cores) : nullptr;
  if (!team)
    return;
  struct {
    const char *what;
    Prediction &step;
  } steps[] = {{"prefill", decided.prefill}, {"decode", decided.decode}};
  for (auto &[what, step] : steps) {
    StepShape shape{1, step.tokens, step.context};
    Expected<StepTime> time = timeStep(launched, *team, measured->links, stepOptions(inputs.spec, decided, shape));
    std::string subject =
        std::string(what) + " of " + std::to_string(step.tokens) + (step.tokens == 1 ? " token: " : " tokens: ");
    if (!time) {
      decided.remarks.push_back({"attach-plan", subject + "no time, " + time.error().text(), {}});
      continue;
    }
    step.seconds = time->seconds;
    decided.remarks.push_back({"attach-plan",
                               subject + "about " + format(step.seconds) +
                                   " by the rates that k2c calibrate measured on " + measured->date + " with " +
                                   std::to_string(team->workers) + " workers",
                               {{"seconds", step.seconds.value}}});
  }
}

/// dist.plan counts nanoseconds in 64 bits. Error: a step that takes longer, by the rates of a file.
static Status checkSeconds(const Plan &plan, const std::string &topology) {
  constexpr Seconds most(9e9);
  const Seconds longest = std::max(plan.prefill.seconds, plan.decode.seconds);
  if (longest <= most)
    return {};
  return Error{"topology '" + shortened(topology) + "'",
               "a step takes " + format(longest) + " by its rates, a plan can state " + format(most),
               "correct the rates"};
}

Status Road::start(Form form) {
  Expected<Plan> plan = planHost(inputs.spec, inputs.topology, inputs.limits, inputs.planOptions);
  if (!plan && form >= Form::Scheduled) {
    // What does not fit is refused where the arena is known: with the limits that do fit beside it.
    PlanOptions any = inputs.planOptions;
    any.mustFit = false;
    plan = planHost(inputs.spec, inputs.topology, inputs.limits, any);
  }
  if (!plan)
    return plan.takeError();
  if (Status status = checkSeconds(*plan, inputs.topology.name); !status)
    return status;
  decided = std::move(*plan);
  ImportOptions import;
  import.compute = inputs.planOptions.compute;
  import.cache = inputs.planOptions.cache;
  import.stepTokens = inputs.limits.stepTokens;
  import.maxSequences = inputs.limits.maxSequences;
  import.maxContext = inputs.limits.maxContext;
  Expected<OwningOpRef<ModuleOp>> imported = importModel(*context, inputs.spec, import);
  if (!imported)
    return imported.takeError();
  ir = std::move(*imported);
  return {};
}

std::vector<PackagedKernel> Road::kernels() {
  std::vector<PackagedKernel> kernels;
  for (auto kernel : ir->getOps<rt::KernelOp>()) {
    std::string name = kernel.getSymName().str();
    PackagedKernel packaged{name, kernel.getHash().str(), {}, costs.at(name)};
    for (StringRef variant : kernel.getVariants().getAsValueRange<StringAttr>())
      packaged.variants.push_back(variant.str());
    kernels.push_back(std::move(packaged));
  }
  return kernels;
}

/// The planner's own remarks, then those of the passes.
std::string Road::remarks() const {
  std::string text;
  for (const Remark &remark : decided.remarks)
    text += "[" + remark.pass + "] " + remark.text + "\n";
  return text + passRemarks;
}

Status Road::drive(Form form) {
  if (!ir)
    if (Status status = start(form); !status)
      return status;
  struct Stage {
    Form form;
    const char *name;
    void (*build)(OpPassManager &, const PipelineOptions &);
  };
  constexpr Stage stages[] = {{Form::Model, "model", buildModelForm},
                              {Form::Planned, "planned", buildPlannedForm},
                              {Form::Distributed, "distributed", buildDistributedForm},
                              {Form::Scheduled, "scheduled", buildScheduledForm},
                              {Form::Runtime, "runtime", buildRuntimeForm},
                              {Form::Llvm, "llvm", buildLlvmForm}};
  for (; next < std::size(stages) && stages[next].form <= form; ++next) {
    const Stage &stage = stages[next];
    if (Status status = run(stage.build, stage.name); !status)
      return status;
    if (stage.form == Form::Scheduled)
      if (Status status = certify(); !status)
        return status;
  }
  return {};
}

} // namespace k2c
