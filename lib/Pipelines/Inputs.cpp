//===- Inputs.cpp - Source and flags, checked -----------------------------===//
//
// The model first, since what flags may say depends on it, then the topology, which says how many ranks divide it, and
// with it layout and placement; limits come last, as `step` of a layout is one.
//
//===----------------------------------------------------------------------===//
#include "Stages.h"
#include "base/File.h"
#include "base/Utf8.h"
#include "k2c/Model/CheckWeights.h"
#include "k2c/Model/Source.h"
#include "k2c/Onnx/Import.h"
#include "k2c/Planner/ComputeType.h"
#include "k2c/Planner/Evaluate.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Weights/CheckpointTensors.h"
#include <algorithm>
#include <filesystem>

namespace fs = std::filesystem;

namespace k2c {

namespace {

/// Weights that are mapped as they are: matrices lie in rows then, and nothing is packed.
Status chooseWeights(const CompileOptions &options, Inputs &inputs) {
  if (options.weights != "reference")
    return {};
  if (inputs.isOnnx)
    return Error{"--weights reference", "of an ONNX file is not in this build", "use --weights packed"};
  if (!inputs.gpu)
    return Error{
        "--weights reference",
        "a processor's kernels read each operand in one piece that begins on a page of a mapping, and topology '" +
            shortened(inputs.topology.name) + "' has no GPU, whose memory is filled with a checkpoint's pieces",
        "use --weights packed, or --topology h200x1"};
  if (!inputs.spec.narrowed.empty())
    return Error{"--narrow", "stores weights in other bytes than the checkpoint's, which --weights reference reads",
                 "leave one of them out"};
  if (!options.blobStore.empty())
    return Error{"--blob-store " + shortened(options.blobStore),
                 "keeps packed weights, and --weights reference packs none", "leave one of them out"};
  inputs.isReference = true;
  inputs.planOptions.weights = WeightLayout::Rows;
  return {};
}

/// In order, or as the file of --placement says, which also says how many slots there are where --layout does not.
Expected<ExpertPlacement> placementOf(const CompileOptions &options, const ModelSpec &spec, const Topology &topology,
                                      ParallelLayout &layout) {
  const std::string &file = options.placement;
  PlacedModel model = placedModel(spec, layout);
  if (file.empty())
    return defaultPlacement(model, options.routeLimit);
  if (!layout.dividesExperts())
    return Error{"--placement " + shortened(file),
                 "says which rank has which experts, and topology '" + shortened(topology.name) + "' has one" +
                     (layout.pp > 1 ? " a stage" : ""),
                 "leave it out, or choose another --topology"};
  Expected<std::string> text = readUserFile(file, maxPlacementBytes);
  if (!text)
    return text.takeError();
  if (options.layout.empty())
    model.slotsOfRank.reset();
  Expected<ExpertPlacement> placement = readExpertPlacement(*text, file, model, "write it with k2c place");
  if (!placement)
    return placement;
  if (placement->hasPhases())
    return Error{file, "has other experts for prompts than for tokens, which is more than a rank has slots for",
                 "compile with one for both, and give this one to the program: run COMMAND --placement FILE"};
  layout.redundantExperts = placement->slotsOfRank * layout.ep - model.experts;
  if (Status status = checkCompiles(spec, topology, layout); !status)
    return Error{file, status.error().message, "write it with k2c place"};
  return placement;
}

/// step of the layout is --step-tokens.
Expected<int64_t> stepTokensOf(const CompileOptions &options, const ParallelLayout &layout) {
  const int64_t step = layout.stepTokens, asked = options.stepTokens.value_or(step);
  if (step != 0 && asked != step)
    return Error{"--step-tokens", "is " + std::to_string(asked) + ", step of --layout is " + std::to_string(step),
                 "leave one of them out"};
  constexpr int64_t most = 1 << 20; // of the flag
  if (step < 0 || step > most)
    return Error{"--layout", "step is " + std::to_string(step) + ", must be 1 to " + std::to_string(most), ""};
  return asked > 0 ? asked : Limits().stepTokens;
}

Expected<Limits> limitsOf(const CompileOptions &options, const ModelSpec &spec, const ParallelLayout &layout) {
  ImportOptions import;
  import.maxContext = options.maxContext.value_or(0);
  Expected<int64_t> context = chooseContext(spec, import);
  if (!context)
    return context.takeError();
  Expected<int64_t> stepTokens = stepTokensOf(options, layout);
  if (!stepTokens)
    return stepTokens.takeError();
  Limits limits;
  limits.stepTokens = *stepTokens;
  limits.maxSequences = options.maxSequences;
  limits.maxContext = *context;
  limits.outputRows = options.outputRows;
  return limits;
}

/// `inputs` has its model, with the types that the checkpoint stores, and its target.
ComputeChoice computeOf(const CompileOptions &options, const Inputs &inputs) {
  if (std::optional<DType> asked = parseComputeType(options.compute))
    return {*asked, "--compute asks for it"};
  return chooseCompute(inputs.spec, inputs.gpu                                 ? Bf16Unit::Gpu
                                    : inputs.target.tileTarget().hasAvx512Bf16 ? Bf16Unit::Avx512
                                                                               : Bf16Unit::None);
}

/// What runs kernels and step function: of a GPU's program the latter is the least processor's.
Status readTargets(const CompileOptions &options, Inputs &inputs) {
  const Device &device = inputs.topology.device;
  const bool isGpu = device.kind != DeviceKind::Cpu;
  if (isGpu && !options.target.empty())
    return Error{"--target " + shortened(options.target),
                 "names a processor, and topology '" + shortened(inputs.topology.name) + "' has a GPU, " + device.arch,
                 "leave it out"};
  if (!isGpu && options.emit == ptxForm)
    return Error{"--emit ptx", "topology '" + shortened(inputs.topology.name) + "' has no GPU",
                 "choose one that has, --topology h200x1, or --emit llvm"};
  Expected<HostTarget> target = HostTarget::forCpu(isGpu                    ? "x86-64-v3"
                                                   : options.target.empty() ? "host"
                                                                            : options.target);
  if (!target)
    return target.takeError();
  inputs.target = std::move(*target);
  if (!isGpu)
    return {};
  Expected<NvidiaTarget> gpu = NvidiaTarget::forArch(device.arch);
  if (!gpu) {
    Error error = gpu.takeError();
    if (!device.archPlace.empty())
      error.where = device.archPlace + ": " + error.where;
    return error;
  }
  inputs.gpu = std::move(*gpu);
  return {};
}

/// In so many stages: embedding and head whole on each rank, then in parts, where the model takes these.
std::vector<ParallelLayout> layoutsOfStages(const Inputs &inputs, int64_t stages) {
  std::vector<ParallelLayout> layouts{compileLayout(inputs.spec, inputs.topology, stages)};
  if (std::optional<ParallelLayout> divided = withVocabularyParts(inputs.spec, layouts.front()))
    layouts.push_back(*divided);
  return layouts;
}

/// Why a program for which nobody says a layout does not have the first one.
std::string noteOfLayout(const ParallelLayout &layout) {
  const std::string stages = std::to_string(layout.pp) + " stages", named = "--layout " + compiledText(layout);
  if (layout.pp == 1)
    return "a rank has no memory for a whole embedding and head beside its part of all layers: the ranks divide "
           "both, " +
           named;
  return "a rank has no memory for its part of all layers: the program has " + stages +
         (layout.vocab > 1 ? ", whose ranks divide embedding and head, " : ", ") + named;
}

/// Where nobody says the layout, and a rank has no memory for a part of all layers, or for embedding and head beside
/// it: the fewest stages with which what is known before the passes fits, and a vocabulary in parts where it fits in no
/// other way. One stage where none do, so that the error is of it.
void chooseStages(const CompileOptions &options, Inputs &inputs) {
  if (!options.layout.empty() || !options.placement.empty() || !inputs.spec.moe)
    return;
  PlanOptions tried = inputs.planOptions;
  tried.mustFit = true;
  for (std::optional<int64_t> stages = 1; stages; stages = nextStages(inputs.spec, inputs.topology, *stages))
    for (const ParallelLayout &layout : layoutsOfStages(inputs, *stages)) {
      tried.layout = layout;
      if (!planHost(inputs.spec, inputs.topology, inputs.limits, tried))
        continue;
      if (options.note && (layout.pp > 1 || layout.vocab > 1))
        options.note(noteOfLayout(layout));
      inputs.planOptions.layout = layout;
      return;
    }
}

/// The bound of a program whose layout is known.
Status readBound(const CompileOptions &options, Inputs &inputs) {
  const RouteBound asked{options.routeLimit, options.localityPenalty};
  const int64_t experts = inputs.spec.moe ? inputs.spec.moe->experts : 0;
  const int64_t nodes = nodesOfStage(inputs.planOptions.layout, inputs.topology.nodes());
  inputs.bound = asked;
  return checkRouteBound(inputs.spec, inputs.topology,
                         expertNodes(inputs.placement, &PlacedExperts::decode, experts, nodes), asked);
}

/// From how many token rows on steps go in halves: as the planner predicts, where nobody says more; a layout that asks
/// for overlap has them for steps that it loses, too, if they are beyond a half.
void chooseHalves(const CompileOptions &options, Inputs &inputs) {
  ParallelLayout &layout = inputs.planOptions.layout;
  const bool isLeftOut = leavesOverlapOut(options);
  if (isLeftOut)
    layout.overlap = false;
  if ((!layout.dividesExperts() && layout.tp == 1) || isLeftOut || !(layout.overlap || options.layout.empty()))
    return;
  const Workload workload = defaultWorkload(inputs.spec);
  PlanRequest request{inputs.spec, inputs.topology, workload};
  request.compute = inputs.planOptions.compute;
  inputs.halvesFrom = overlapsFrom(request, layout, inputs.limits.stepTokens);
  if (layout.overlap && inputs.halvesFrom == 0)
    inputs.halvesFrom = inputs.limits.stepTokens;
  if (inputs.halvesFrom > 0)
    inputs.halvesFrom = std::min(inputs.halvesFrom, inputs.programTokens() + 1);
  layout.overlap = inputs.halvesFrom > 0;
}

/// Refuses a damaged tokenizer, and says what this build cannot do of one.
Status readTokenizer(const CompileOptions &options, const Inputs &inputs) {
  if (inputs.folder.empty())
    return {};
  Expected<std::optional<std::string>> note = checkTokenizer(inputs.folder, inputs.spec.tiktoken);
  if (!note)
    return note.takeError();
  if (*note && options.note)
    options.note(**note);
  return {};
}

/// The description of the model that `inputs.source` is, and its weights, as stored.
Status readStored(const CompileOptions &options, Inputs &inputs) {
  const Expected<std::string> file = onnxFile(inputs.source);
  if (!file)
    return file.error();
  if (!file->empty()) {
    if (Status status = checkNoIgnoredKeys(options.ignoreKeys, *file); !status)
      return status;
    Expected<OnnxModel> model = importOnnx(*file);
    if (!model)
      return model.takeError();
    inputs.spec = std::move(model->spec);
    inputs.tensors = std::move(model->tensors);
    inputs.source = *file;
    inputs.folder = std::move(model->folder);
    inputs.isOnnx = true;
    return {};
  }
  LoadOptions load;
  load.ignoreKeys = options.ignoreKeys;
  Expected<ModelSpec> spec = loadModelSpec(inputs.source, load);
  if (!spec)
    return spec.takeError();
  inputs.spec = std::move(*spec);
  std::error_code error;
  if (fs::is_directory(inputs.source, error))
    inputs.folder = inputs.source;
  if (inputs.folder.empty() || !Checkpoint::hasWeights(inputs.folder))
    return {};
  Expected<Checkpoint> checkpoint = Checkpoint::open(inputs.folder);
  if (!checkpoint)
    return checkpoint.takeError();
  if (Status status = checkWeights(inputs.spec, *checkpoint); !status)
    return status;
  inputs.tensors = std::make_shared<CheckpointTensors>(std::move(*checkpoint));
  return {};
}

/// Those of `--narrow`, which are looked for, or those that a bundle records.
Expected<std::vector<std::string>> familiesToNarrow(const CompileOptions &options, const Inputs &inputs) {
  if (!options.narrow && !options.narrowed.empty())
    return options.narrowed;
  const bool computesWide = options.compute != "bf16" && options.weights != "reference" && inputs.spec.widened.empty();
  if (!options.narrow && computesWide && options.note && inputs.tensors && seemOfBf16(inputs.spec, *inputs.tensors))
    options.note(
        "the f32 weights seem to be numbers of bf16; --narrow stores those that are as bf16: half the memory, and "
        "the same bits of f32 arithmetic");
  if (!options.narrow)
    return std::vector<std::string>();
  if (!inputs.tensors)
    return Error{"--narrow", shortened(inputs.source) + " has no weights whose numbers could be looked at",
                 "name a source with weights"};
  const auto report = [&](int64_t done, int64_t total) {
    if (options.progress)
      options.progress("numbers", done, total);
  };
  Expected<std::vector<std::string>> found = familiesOfBf16(inputs.spec, *inputs.tensors, report);
  if (found && found->empty())
    return Error{"--narrow",
                 "nothing to narrow: " + shortened(inputs.source) +
                     " has no weights in f32 that are all numbers of bf16",
                 "leave it out"};
  return found;
}

Status readModel(const CompileOptions &options, Inputs &inputs) {
  if (Status status = readStored(options, inputs); !status)
    return status;
  const Expected<std::vector<std::string>> narrowed = familiesToNarrow(options, inputs);
  if (!narrowed)
    return narrowed.error();
  return narrow(*narrowed, inputs.source, inputs.spec, inputs.tensors);
}

} // namespace

Status checkWiden(bool widen, const ModelSpec &spec, const std::string &source) {
  const std::vector<WidenedWeights> &widened = spec.widened;
  if (widen && widened.empty())
    return Error{"--widen", "nothing to widen: " + shortened(source) + " is no ONNX file with weights of few bits",
                 "leave it out"};
  if (!widen && !widened.empty())
    return Error{widened.front().place, widened.front().format + " are not in this build",
                 "use --widen, which computes in f32 from a widened copy"};
  return {};
}

Status checkNoIgnoredKeys(const std::vector<std::string> &ignoreKeys, const std::string &onnxFile) {
  if (ignoreKeys.empty())
    return {};
  return Error{"--ignore-key " + shortened(ignoreKeys.front()),
               "nothing to ignore: " + shortened(onnxFile) + " is an ONNX file, whose graph says the model",
               "leave it out"};
}

bool leavesOverlapOut(const CompileOptions &options) {
  return llvm::is_contained(options.without,
                            optionalPassNames()[static_cast<size_t>(OptionalPass::OverlapCommunication)]);
}

Expected<Inputs> readInputs(const CompileOptions &options) {
  if (options.compute == "fp8")
    return Error{"--compute fp8", "is not in this build", "use f32 or bf16"};
  Expected<std::string> source = resolveSource(options.source);
  if (!source)
    return source.takeError();
  Inputs inputs;
  inputs.source = *source;
  if (Status status = readModel(options, inputs); !status)
    return status.takeError();
  if (Status status = readTokenizer(options, inputs); !status)
    return status.takeError();
  Expected<Topology> topology = loadTopology(options.topology);
  if (!topology)
    return topology.takeError();
  inputs.topology = std::move(*topology);
  Expected<ParallelLayout> layout = parseCompileLayout(options.layout, inputs.spec, inputs.topology);
  if (!layout)
    return layout.takeError();
  if (Status status = readTargets(options, inputs); !status)
    return status.takeError();
  if (Status status = chooseWeights(options, inputs); !status)
    return status.takeError();
  Expected<Limits> limits = limitsOf(options, inputs.spec, *layout);
  if (!limits)
    return limits.takeError();
  inputs.limits = *limits;
  inputs.planOptions.layout = std::move(*layout);
  const bool isGpuProgram = inputs.gpu && formNamed(options.emit) == Form::Program;
  inputs.planOptions.mustFit = (inputs.tensors != nullptr) || isGpuProgram; // a GPU's memory is not this machine's
  const ComputeChoice compute = computeOf(options, inputs);
  inputs.planOptions.compute = compute.type;
  inputs.planOptions.computeReason = compute.reason;
  if (!options.cache.empty())
    inputs.planOptions.cache = parseComputeType(options.cache).value_or(DType::F32);
  inputs.planOptions.mla = parseMlaForms(options.mla).value_or(MlaForms::Phased);
  chooseStages(options, inputs);
  Expected<ExpertPlacement> placement = placementOf(options, inputs.spec, inputs.topology, inputs.planOptions.layout);
  if (!placement)
    return placement.takeError();
  inputs.placement = std::move(*placement);
  if (Status status = readBound(options, inputs); !status)
    return status.takeError();
  chooseHalves(options, inputs);
  return inputs;
}

} // namespace k2c
