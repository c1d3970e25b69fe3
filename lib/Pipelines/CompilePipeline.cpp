//===- CompilePipeline.cpp - Takes the IR through the forms ---------------===//
//
// One compile: the model is imported, then each form's passes run until the form that was asked for. What the planner
// decides must be known before the first pass, but exact sizes only after the scheduled form, so that it is asked
// twice:
//
//   start     a plan without the arena; what cannot fit is an error, unless the scheduled form will be reached
//   certify   the plan again with the arena and scratch of the scheduled form: refuses, and names limits that do fit
//
// Refusing where sizes are exact is why the first plan may be one that does not fit. Afterwards times of the program's
// own kernels replace the bounds of the roofline where the machine was measured. The verifier runs after every pass,
// errors of passes are collected as text, and MLIR's threads are off, as objects are compiled in forked children.
//
//===----------------------------------------------------------------------===//
#include "ProgramFacts.h"
#include "Remarks.h"
#include "Stages.h"
#include "Workers.h"
#include "base/Utf8.h"
#include "dialects/Dialects.h"
#include "k2c/Kernels/Cpu.h"
#include "k2c/Planner/PlanDevice.h"
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

CompilePipeline::CompilePipeline(const Inputs &inputs, const CompileOptions &options)
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

PipelineOptions CompilePipeline::pipelineOptions() const {
  PipelineOptions p;
  p.numerics.compute = name(inputs.planOptions.compute);
  p.numerics.mla = options.mla;
  const Device &device = inputs.topology.device;
  const std::vector<std::string> features = requiredFeatures(inputs.target.features);
  p.plan.topology = inputs.topology.name;
  p.plan.layout = compiledText(inputs.planOptions.layout);
  p.plan.ranks = inputs.topology.ranks();
  p.plan.nodes = inputs.topology.nodes();
  if (const std::vector<int64_t> stages = stageBounds(inputs.spec, inputs.planOptions.layout); stages.size() > 2)
    p.plan.stages.assign(stages.begin(), stages.end());
  p.plan.numa.assign(device.numa.begin(), device.numa.end());
  p.plan.cpu = inputs.target.cpu;
  p.plan.features.assign(features.begin(), features.end());
  p.plan.cores = inputs.gpu ? 1 : device.cores;
  if (inputs.gpu) {
    p.plan.gpu = inputs.gpu->arch;
    p.plan.sms = device.cores;
    p.plan.threads = inputs.gpu->threads;
    p.plan.workersOfCta = inputs.gpu->workersPerCta();
    p.plan.ctas = inputs.gpuCtas();
  }
  p.plan.l1Bytes = inputs.target.l1Bytes;
  p.plan.l2Bytes = inputs.target.l2Bytes;
  p.plan.weights = inputs.planOptions.weights == WeightLayout::Rows ? "rows" : "panels";
  p.plan.expandedFrom = decided.expandedFrom;
  p.plan.without.assign(options.without.begin(), options.without.end());
  p.plan.tileChoice = options.tileChoice;
  p.plan.routeLimit = inputs.bound.limit;
  p.plan.localityPenalty = inputs.bound.penalty;
  p.plan.halvesFrom = inputs.halvesFrom;
  return p;
}

Status CompilePipeline::run(Form form) {
  Diagnostics diagnostics(context.get());
  PassManager pm(context.get());
  pm.enableVerifier(true);
  buildForm(form, pm, pipelineOptions());
  if (failed(pm.run(*ir)))
    return Error{std::string(nameOf(form)) + " form", diagnostics.text, ""};
  return {};
}

Expected<Plan> CompilePipeline::planWith(const PlanOptions &chosen, const MeasuredSizes &measured) const {
  return inputs.gpu ? planDevice(inputs.spec, inputs.topology, inputs.limits, chosen, measured, launched)
                    : planHost(inputs.spec, inputs.topology, inputs.limits, chosen, measured);
}

/// The plan again, now that arena and scratch are known exactly: refuses what does not fit. Of weights the planner's
/// count is exact (test/Planner/weights.long).
Status CompilePipeline::certify() {
  launched = programKernels(*ir);
  coded = kernelCodes(*ir);
  auto exact = (*ir)->getAttrOfType<mem::CertificateAttr>(mem::MemDialect::certificateAttrName);
  MeasuredSizes measured;
  measured.arena = Bytes(exact.getArena());
  measured.scratchPerWorker = Bytes(exact.getScratch());
  if (inputs.gpu)
    measured.workers = inputs.gpu->workersPerCta() * inputs.gpuCtas();
  measured.tokenizerFile = Bytes(inputs.folder.empty() ? 0 : tokenizerBytes(inputs.folder));
  Expected<Plan> plan = planWith(inputs.planOptions, measured);
  if (!plan)
    return plan.takeError();
  decided = std::move(*plan);
  predictByRates();
  if (!inputs.gpu)
    remarkWorkers(inputs.topology.device, slotShares(*ir), launched, decided);
  return {};
}

/// Where the machine was measured, times of the program's own kernels take the place of bounds.
void CompilePipeline::predictByRates() {
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
    step.byRates = true;
    decided.remarks.push_back({"attach-plan",
                               subject + "about " + format(step.seconds) +
                                   " by the rates that k2c calibrate measured on " + measured->date + " with " +
                                   std::to_string(team->workers) + " workers",
                               {{"seconds", step.seconds.value}}});
  }
}

Status CompilePipeline::start(Form form) {
  Expected<Plan> plan = planWith(inputs.planOptions, {});
  if (!plan && form >= Form::Scheduled) {
    // What does not fit is refused where the arena is known: with the limits that do fit beside it.
    PlanOptions any = inputs.planOptions;
    any.mustFit = false;
    plan = planWith(any, {});
  }
  if (!plan)
    return plan.takeError();
  decided = std::move(*plan);
  ImportOptions import;
  import.compute = inputs.planOptions.compute;
  import.cache = inputs.planOptions.cache;
  import.stepTokens = inputs.programTokens();
  import.maxSequences = inputs.limits.maxSequences;
  import.maxContext = inputs.limits.maxContext;
  import.outputRows = inputs.limits.outputRows;
  Expected<OwningOpRef<ModuleOp>> imported = importModel(*context, inputs.spec, import);
  if (!imported)
    return imported.takeError();
  ir = std::move(*imported);
  return {};
}

/// What --widen makes of weights of few bits.
static std::vector<Remark> widenedRemarks(const ModelSpec &spec) {
  std::vector<Remark> out;
  for (const WidenedWeights &of : spec.widened)
    out.push_back({"import-onnx",
                   std::to_string(of.tensors) + " tensors of " + of.format +
                       " are widened to f32: " + format(Bytes(of.storedBytes)) + " in the file, " +
                       format(Bytes(of.widenedBytes)) + " as the program reads them",
                   {{"stored_bytes", double(of.storedBytes)}, {"widened_bytes", double(of.widenedBytes)}}});
  return out;
}

/// What --narrow makes of weights in f32.
static std::vector<Remark> narrowedRemarks(const ModelSpec &spec) {
  double bytes = 0;
  for (const std::string &id : spec.narrowed)
    bytes += spec.find(id)->storedBytes().value;
  if (spec.narrowed.empty())
    return {};
  return {{"narrow",
           "f32 weights of " + std::to_string(spec.narrowed.size()) + " of " + std::to_string(spec.weights.size()) +
               " roles are numbers of bf16 and are stored as these: " + format(Bytes(2 * bytes)) + " in f32, " +
               format(Bytes(bytes)) + " as the program reads them",
           {{"f32_bytes", 2 * bytes}, {"narrowed_bytes", bytes}}}};
}

/// What the import of a graph decided.
static std::vector<Remark> importRemarks(const Inputs &inputs) {
  std::vector<Remark> out = widenedRemarks(inputs.spec);
  for (Remark &remark : narrowedRemarks(inputs.spec))
    out.push_back(std::move(remark));
  const MlaSpec *const latent = inputs.isOnnx ? inputs.spec.latentAttention() : nullptr;
  if (!latent)
    return out;
  const PlanOptions &options = inputs.planOptions;
  const AttentionSizes sizes = attentionSizes(*latent);
  const int64_t bytes = inputs.spec.layerCount() * byteWidth(options.cache.value_or(options.compute));
  const int64_t kept = bytes * sizes.cachedElements(), expanded = bytes * sizes.expandedElements();
  out.push_back(
      {"import-onnx",
       "the graph computes latent attention with keys and values of all heads: the program keeps the latent, " +
           format(Bytes(kept)) + " a token; keys and values would take " + format(Bytes(expanded)),
       {{"latent_bytes_per_token", double(kept)}, {"expanded_bytes_per_token", double(expanded)}}});
  return out;
}

/// Those of the import and the planner's own, then those of the passes.
std::string CompilePipeline::remarks() const {
  std::string text;
  std::vector<Remark> all = importRemarks(inputs);
  all.insert(all.end(), decided.remarks.begin(), decided.remarks.end());
  for (const Remark &remark : all) {
    std::string metrics;
    for (const auto &[name, value] : remark.metrics)
      metrics += (metrics.empty() ? " {" : ", ") + name + " = " + formatNumber(value, 12);
    text += "[" + remark.pass + "] " + remark.text + metrics + (metrics.empty() ? "\n" : "}\n");
  }
  return text + passRemarks;
}

Status CompilePipeline::runTo(Form form) {
  if (!ir)
    if (Status status = start(form); !status)
      return status;
  for (; next <= std::min(form, Form::Llvm); next = Form(uint8_t(next) + 1)) {
    if (Status status = run(next); !status)
      return status;
    if (next == Form::Scheduled)
      if (Status status = certify(); !status)
        return status;
  }
  return {};
}

} // namespace k2c
