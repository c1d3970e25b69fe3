//===- Compile.cpp - From a checkpoint to a bundle ------------------------===//
//
// The stages of `k2c compile` in order; each is a file of its own (Stages.h):
//
//   SearchLayout      a layout in place of --layout search
//   Inputs            source, config, weights, topology, target: everything a user can get wrong
//   CompilePipeline   plan, then IR through the forms; the certificate at the scheduled form
//   Emit              the form that was asked for, and no bundle
//   Link              kernels and host program to objects, objects to program.so
//   Package           weights, manifest and runtime beside it; one rename makes it a bundle
//
//===----------------------------------------------------------------------===//
#include "ProgramFacts.h"
#include "Stages.h"
#include "WeightMaps.h"
#include "k2c/Cluster/TierNames.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Weights/BundleFiles.h"
#include "k2c/Weights/Packer.h"
#include "k2rt/reserve.h"
#include <filesystem>

namespace fs = std::filesystem;
using namespace mlir;

namespace k2c {

namespace {

/// Refuses weights that cannot be packed, or mapped as they are, before anything is compiled.
Status checkMap(const WeightMap &map, const Inputs &inputs) {
  if (Status status = checkLayouts(map); !status || !inputs.tensors)
    return status;
  return checkSources(map, *inputs.tensors);
}

Status packWeights(const WeightMap &map, Inputs &inputs, const CompileOptions &options, const std::string &bundle) {
  if (Status status = writeWeightMap(map, bundle); !status)
    return status;
  if (!inputs.tensors)
    return removeStrayBlobs(bundle);
  PackOptions pack;
  pack.sharedFolder = options.blobStore;
  if (options.progress)
    pack.progress = [&](int64_t done, int64_t total) { options.progress("weights", done, total); };
  Expected<PackReport> report = packCheckpoint(map, *inputs.tensors, inputs.folder, bundle, pack);
  if (!report)
    return report.takeError();
  if (inputs.topology.ranks() > 1)
    if (Status status = writePackedRanks(bundle, {}, report->common); !status)
      return status;
  return removeStrayBlobs(bundle);
}

/// What the reserve has for the workers of the topology: the manifest's is without, since a run chooses how many.
int64_t workerReserve(const Inputs &inputs) {
  k2rt_limits limits = {};
  limits.max_sequences = inputs.limits.maxSequences;
  limits.vocab = inputs.spec.vocab;
  if (inputs.gpu)
    return 0; // its workers have no stacks here
  return k2rt_worker_bytes(&limits, inputs.topology.device.cores);
}

/// Adds what starts the ranks of the bundle as processes, and says what it takes to have more of that.
Status addLaunch(const BundleFolder &bundle, const LaunchFacts &facts, const CompileOptions &options) {
  if (options.note)
    for (const std::string &missing : missingTransports())
      options.note(missing);
  return bundle.addLaunch(facts);
}

/// What several ranks need beside the program: where experts are, and what starts them.
Status addRanks(const CompilePipeline &pipeline, const Inputs &inputs, const CompileOptions &options,
                const BundleFolder &bundle, const ProgramFacts &program, BundleFacts &facts) {
  if (inputs.planOptions.layout.dividesExperts()) {
    facts.placement = inputs.placement;
    facts.placementText = placementText(placedModel(inputs.spec, inputs.planOptions.layout), inputs.placement);
    if (Status status = bundle.write(placementFile, facts.placementText); !status)
      return status;
  }
  const LaunchFacts launch{inputs.spec.name, program.ranks, facts.nodes, program.cores,
                           pipeline.plan().memory.total().value + facts.codeBytes};
  return addLaunch(bundle, launch, options);
}

Status fillBundle(CompilePipeline &pipeline, Inputs &inputs, const CompileOptions &options,
                  const BundleFolder &bundle) {
  Expected<std::string> runtime = findRuntime();
  if (!runtime)
    return runtime.takeError();
  // What the bundle says of its program stands in the runtime form; the llvm form follows from it.
  if (Status status = pipeline.runTo(Form::Runtime); !status)
    return status;
  const ProgramFacts program = programFacts(pipeline.module(), pipeline.codes());
  WeightMap weights = weightMapOf(pipeline.module(), inputs.spec);
  weights.isReference = inputs.isReference;
  if (Status status = checkMap(weights, inputs); !status)
    return status;
  if (Status status = pipeline.runTo(Form::Llvm); !status)
    return status;
  if (Status status = linkProgram(pipeline, inputs, options, bundle.path() + "/program.so"); !status)
    return status;
  BundleFacts facts;
  if (inputs.gpu) {
    Expected<std::string> ptxas = writeGpuCode(pipeline, inputs, options, bundle.path());
    if (!ptxas)
      return ptxas.takeError();
    facts.ptxas = std::move(*ptxas);
  }
  if (Status status = packWeights(weights, inputs, options, bundle.path()); !status)
    return status;
  if (Status status = bundle.addRuntime(*runtime, inputs.folder.empty() ? inputs.source : inputs.folder); !status)
    return status;
  if (inputs.gpu)
    if (Status status = bundle.addEmulatedDriver(); !status)
      return status;
  if (Status status = bundle.write("remarks.txt", pipeline.remarks()); !status)
    return status;
  if (options.remark)
    options.remark(pipeline.remarks());
  facts.workerReserve = workerReserve(inputs);
  facts.codeBytes = bundle.codeBytes();
  facts.nodes = inputs.topology.nodes();
  facts.referenceBytes = weights.referenceBytes();
  facts.deviceMemory = inputs.gpu ? inputs.topology.device.memory.value.value : 0;
  facts.tiers = tierNames(inputs.topology);
  facts.foldedTiers = foldedTiers(inputs.topology);
  if (program.ranks > 1 || inputs.gpu)
    if (Status status = bundle.write(topologyFile, printTopology(inputs.topology)); !status)
      return status;
  if (program.ranks > 1)
    if (Status status = addRanks(pipeline, inputs, options, bundle, program, facts); !status)
      return status;
  if (Status status = bundle.write("manifest.json", manifestText(inputs.spec, pipeline.plan(), program, facts));
      !status)
    return status;
  return writeBundleFiles(bundle.path());
}

Status writeBundle(CompilePipeline &pipeline, Inputs &inputs, const CompileOptions &options) {
  Expected<BundleFolder> bundle = BundleFolder::begin(options.output, inputs.source, options.force);
  if (!bundle)
    return bundle.takeError();
  Status status = fillBundle(pipeline, inputs, options, *bundle);
  if (status)
    status = bundle->finish();
  return status ? status : Status(bundle->abandon(status.takeError()));
}

/// The kernels of a GPU alone, in a folder or printed.
Status emitPtx(CompilePipeline &pipeline, const Inputs &inputs, const CompileOptions &options) {
  auto run = [&] {
    Status status = pipeline.runTo(Form::Llvm);
    if (status && options.remark)
      options.remark(pipeline.remarks());
    return status;
  };
  if (options.output == "-") {
    Status status = run();
    return status ? printPtx(pipeline, inputs, options) : std::move(status);
  }
  Expected<BundleFolder> folder =
      BundleFolder::begin(options.output, inputs.source, options.force, FolderContents::Ptx);
  if (!folder)
    return folder.takeError();
  Status status = run();
  if (status)
    if (Expected<std::string> ptxas = writeGpuCode(pipeline, inputs, options, folder->path()); !ptxas)
      status = ptxas.takeError();
  if (status)
    status = folder->finish();
  return status ? std::move(status) : Status(folder->abandon(status.takeError()));
}

} // namespace

Expected<Plan> planCompile(const CompileOptions &options) {
  Expected<Inputs> inputs = readInputs(options);
  if (!inputs)
    return inputs.takeError();
  CompilePipeline pipeline(*inputs, options);
  if (Status status = pipeline.runTo(Form::Scheduled); !status)
    return status.takeError();
  return pipeline.plan();
}

Status compile(const CompileOptions &asked) {
  Expected<CompileOptions> searched = withSearchedLayout(asked);
  if (!searched)
    return searched.takeError();
  const CompileOptions &options = *searched;
  Expected<Inputs> inputs = readInputs(options);
  if (!inputs)
    return inputs.takeError();
  if (Status status = checkWiden(options.widen, inputs->spec, inputs->source); !status)
    return status;
  CompilePipeline pipeline(*inputs, options);
  if (options.emit == ptxForm)
    return emitPtx(pipeline, *inputs, options);
  // The code of kernels is part of the runtime form.
  const Form form = options.emit == kernelsForm ? Form::Runtime : formNamed(options.emit).value_or(Form::Program);
  if (form == Form::Program) {
    if (options.output == "-")
      return Error{"-o -", "a program is a folder", "name one, or choose a form with --emit"};
    return writeBundle(pipeline, *inputs, options);
  }
  if (Status status = pipeline.runTo(form); !status)
    return status;
  if (options.remark)
    options.remark(pipeline.remarks());
  return emitForm(pipeline, options, inputs->target);
}

std::vector<std::string> formNames() {
  std::vector<std::string> names;
  for (auto form = uint8_t(Form::Model); form <= uint8_t(Form::Program); ++form)
    names.push_back(nameOf(Form(form)));
  names.insert(names.begin() + uint8_t(Form::Llvm), kernelsForm);
  names.insert(names.end() - 1, ptxForm);
  return names;
}

std::vector<std::string> withoutNames() { return {optionalPassNames().begin(), optionalPassNames().end()}; }

std::string hostCpuName() {
  Expected<HostTarget> host = HostTarget::detect();
  return host ? host->cpu : host.error().text();
}

std::vector<std::string> hostCpuFeatures() {
  Expected<HostTarget> host = HostTarget::detect();
  return host ? requiredFeatures(host->features) : std::vector<std::string>();
}

} // namespace k2c
