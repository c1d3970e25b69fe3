//===- Inputs.cpp - Source and flags, checked -----------------------------===//
#include "Stages.h"
#include "k2c/Model/CheckWeights.h"
#include "k2c/Support/Json.h"
#include <filesystem>

namespace fs = std::filesystem;

namespace k2c {

namespace {

/// A folder of the Hugging Face cache: $HF_HOME/hub/models--org--name/snapshots/<the one refs/main names>.
std::string cachedSnapshot(const std::string &name) {
  size_t slash = name.find('/');
  if (slash == std::string::npos || name.find('/', slash + 1) != std::string::npos)
    return "";
  const char *home = std::getenv("HF_HOME");
  fs::path hub = home ? fs::path(home) / "hub"
                      : fs::path(std::getenv("HOME") ? std::getenv("HOME") : "") / ".cache/huggingface/hub";
  fs::path model = hub / ("models--" + name.substr(0, slash) + "--" + name.substr(slash + 1));
  Expected<std::string> revision = readTextFile((model / "refs/main").string(), 256);
  if (!revision)
    return "";
  std::string text = revision->substr(0, revision->find_last_not_of(" \n\r") + 1);
  std::error_code error;
  fs::path snapshot = model / "snapshots" / text;
  return text.find('/') == std::string::npos && fs::is_directory(snapshot, error) ? snapshot.string() : "";
}

Expected<std::string> resolveSource(const std::string &source) {
  std::error_code error;
  fs::path path(source);
  if (path.extension() == ".gguf")
    return Error{source, "is a GGUF file, which loses the published layout",
                 "compile the safetensors checkpoint it was made from"};
  if (path.extension() == ".onnx")
    return Error{source, "importing ONNX is not in this build", "compile the safetensors checkpoint"};
  if (fs::exists(path, error))
    return source;
  if (std::string snapshot = cachedSnapshot(source); !snapshot.empty())
    return snapshot;
  return Error{source, "no such file or folder, and not in the Hugging Face cache",
               "give a folder with config.json; k2c downloads nothing"};
}

/// Flags this build knows by name and does not have.
Status refuseUnbuilt(const CompileOptions &options) {
  auto refuse = [](const std::string &flag, const std::string &what, const std::string &remedy) {
    return Status(Error{flag, what + " is not in this build", remedy});
  };
  if (options.weights == "reference")
    return Error{"--weights reference", "kernels read packed panels, so the checkpoint cannot be mapped as it is",
                 "use --weights packed"};
  if (options.emit == "ptx")
    return refuse("--emit ptx", "the NVIDIA back end", "use --emit llvm");
  return {};
}

Expected<Limits> limitsOf(const CompileOptions &options, const ModelSpec &spec) {
  ImportOptions import;
  import.maxContext = options.maxContext.value_or(0);
  Expected<int64_t> context = chooseContext(spec, import);
  if (!context)
    return context.takeError();
  Limits limits;
  limits.stepTokens = options.stepTokens;
  limits.maxSequences = options.maxSequences;
  limits.maxContext = *context;
  return limits;
}

} // namespace

Expected<Inputs> readInputs(const CompileOptions &options) {
  if (Status status = refuseUnbuilt(options); !status)
    return status.takeError();
  Expected<std::string> source = resolveSource(options.source);
  if (!source)
    return source.takeError();
  LoadOptions load;
  load.ignoreKeys = options.ignoreKeys;
  Expected<ModelSpec> spec = loadModelSpec(*source, load);
  if (!spec)
    return spec.takeError();
  Inputs inputs;
  inputs.spec = std::move(*spec);
  if (*source != options.source) // a snapshot of the cache is named by a hash
    inputs.spec.name = options.source;
  std::error_code error;
  if (fs::is_directory(*source, error))
    inputs.folder = *source;
  if (!inputs.folder.empty() && Checkpoint::hasWeights(inputs.folder)) {
    Expected<Checkpoint> checkpoint = Checkpoint::open(inputs.folder);
    if (!checkpoint)
      return checkpoint.takeError();
    if (Status status = checkWeights(inputs.spec, *checkpoint); !status)
      return status.takeError();
    inputs.checkpoint = std::move(*checkpoint);
  }
  Expected<Topology> topology = loadTopology(options.topology);
  if (!topology)
    return topology.takeError();
  inputs.topology = std::move(*topology);
  Expected<HostTarget> target = HostTarget::forCpu(options.target.empty() ? "host" : options.target);
  if (!target)
    return target.takeError();
  inputs.target = std::move(*target);
  Expected<Limits> limits = limitsOf(options, inputs.spec);
  if (!limits)
    return limits.takeError();
  inputs.limits = *limits;
  inputs.planOptions.mustFit = inputs.checkpoint.has_value();
  inputs.planOptions.compute = options.compute == "bf16" ? DType::BF16 : DType::F32;
  if (!options.cache.empty())
    inputs.planOptions.cache = options.cache == "bf16" ? DType::BF16 : DType::F32;
  inputs.planOptions.mla = options.mla == "absorbed"   ? MlaForms::Absorbed
                           : options.mla == "expanded" ? MlaForms::Expanded
                                                       : MlaForms::Phased;
  return inputs;
}

} // namespace k2c
