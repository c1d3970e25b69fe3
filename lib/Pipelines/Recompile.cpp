//===- Recompile.cpp - The compile that a bundle records ------------------===//
//
// A manifest is hostile input: each value is checked against the bounds that the flags of k2c compile have. Options,
// target and cores are what descriptions and tiles follow from; flags of which it records nothing (--without,
// --tile-choice) show in the kernels' hashes, or in the tiles that remarks.txt states, which are compared.
//
//===----------------------------------------------------------------------===//
#include "Recompile.h"

#include "base/Utf8.h"
#include "k2c/Kernels/Cpu.h"
#include "k2c/Model/SpecJson.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <filesystem>

using nlohmann::json;

namespace k2c {

namespace {

/// Values of a manifest, checked one by one; the first that is wrong is the error.
class Record {
public:
  Record(const std::string &path, const json &manifest) : path(path), manifest(manifest) {}

  std::string text(const char *pointer) {
    const json *value = find(pointer);
    if (value && value->is_string())
      return value->get<std::string>();
    refuse(pointer, "must be a text");
    return "";
  }
  int64_t number(const char *pointer, int64_t least, int64_t greatest) {
    const json *value = find(pointer);
    const bool isWhole = value && value->is_number_integer();
    if (isWhole && value->get<int64_t>() >= least && value->get<int64_t>() <= greatest)
      return value->get<int64_t>();
    refuse(pointer, "must be a whole number from " + std::to_string(least) + " to " + std::to_string(greatest));
    return least;
  }
  double real(const char *pointer, double least, double greatest) {
    const json *value = find(pointer);
    if (value && value->is_number() && value->get<double>() >= least && value->get<double>() <= greatest)
      return value->get<double>();
    refuse(pointer, "must be a number from " + formatNumber(least, 3) + " to " + formatNumber(greatest, 3));
    return least;
  }
  bool has(const char *pointer) const { return find(pointer) != nullptr; }
  std::vector<std::string> texts(const char *pointer) {
    std::vector<std::string> all;
    const json *list = find(pointer);
    bool isList = list && list->is_array();
    for (size_t i = 0; isList && i < list->size(); ++i)
      if ((isList = (*list)[i].is_string()))
        all.push_back((*list)[i].get<std::string>());
    if (!isList)
      refuse(pointer, "must be a list of texts");
    return all;
  }
  Status takeStatus() { return std::move(status); }
  const std::string &file() const { return path; }

private:
  const json *find(const char *pointer) const {
    const json::json_pointer at(pointer);
    return manifest.contains(at) ? &manifest[at] : nullptr;
  }
  void refuse(const char *pointer, const std::string &why) {
    if (status)
      status = damaged(path, std::string("'") + pointer + "' " + why);
  }

  const std::string &path;
  const json &manifest;
  Status status;
};

/// Bounds are those of the flags of k2c compile, of cores and caches those of any machine.
Expected<CompileOptions> optionsOf(Record record, const std::string &bundle, const json &manifest) {
  CompileOptions options;
  options.source = bundle + "/config.json";
  options.compute = record.text("/numerics/compute");
  options.mla = record.text("/numerics/mla");
  options.target = record.text("/target/cpu");
  options.stepTokens = record.number("/limits/step_tokens", 1, 1 << 20);
  options.maxSequences = record.number("/limits/max_sequences", 1, 1 << 16);
  options.maxContext = record.number("/limits/max_context", 1, 1 << 24);
  options.cache = record.number("/cache/0/bytes_per_element", 2, 4) == byteWidth(DType::F32) ? "f32" : "bf16";
  options.ignoreKeys = textsAt(manifest, ignoredKeys);
  options.narrowed = textsAt(manifest, narrowedFamilies);
  if (Status status = record.takeStatus(); !status)
    return status.takeError();
  return options;
}

/// What routers are bound to, of a program that has that.
Status readBound(Record record, int64_t nodes, Inputs &inputs) {
  if (!record.has("/numerics/expert_nodes"))
    return {};
  inputs.bound = {record.number("/numerics/route_limit", 0, nodes - 1),
                  record.real("/numerics/locality_penalty", 0, 1)};
  return record.takeStatus();
}

/// Ranks and how they divide the work: a topology that has as many, whatever their links.
Status readRanks(Record record, Inputs &inputs) {
  const int64_t ranks = record.number("/topology/ranks", 1, maxCompiledRanks);
  if (Status status = record.takeStatus(); !status || ranks == 1)
    return status;
  const int64_t nodes = record.number("/topology/nodes", 1, ranks);
  inputs.topology.name = record.text("/topology/name");
  const std::string layout = record.text("/layout");
  if (Status status = record.takeStatus(); !status)
    return status;
  Tier node, network;
  node.name = "node", network.name = "network";
  node.count = ranks / nodes, network.count = nodes;
  inputs.topology.tiers = {node, network};
  Expected<ParallelLayout> parsed = parseCompileLayout(layout, inputs.spec, inputs.topology);
  if (!parsed)
    return damaged(record.file(), "'/layout' " + parsed.error().message);
  inputs.planOptions.layout = std::move(*parsed);
  if (record.has("/halves"))
    inputs.halvesFrom = record.number("/halves/from", 1, 1 << 20);
  return readBound(record, nodesOfStage(inputs.planOptions.layout, nodes), inputs);
}

/// What tiles depend on beside the options.
Status readMachine(Record record, Inputs &inputs) {
  Device &device = inputs.topology.device;
  device.cores = record.number("/topology/cores", 1, 1 << 20);
  device.numa.clear();
  inputs.target.features = record.texts("/target/features_required");
  std::sort(inputs.target.features.begin(), inputs.target.features.end());
  inputs.target.l1Bytes = record.number("/target/l1_bytes", 1, int64_t(1) << 40);
  inputs.target.l2Bytes = record.number("/target/l2_bytes", 1, int64_t(1) << 40);
  if (!record.has("/device"))
    return record.takeStatus();
  if (record.has("/device/reference_bytes") && record.number("/device/reference_bytes", 0, int64_t(1) << 50) > 0)
    inputs.planOptions.weights = WeightLayout::Rows;
  device.kind = DeviceKind::Nvidia;
  device.arch = record.text("/device/arch");
  if (Status status = record.takeStatus(); !status)
    return status;
  Expected<NvidiaTarget> gpu = NvidiaTarget::forArch(device.arch);
  if (!gpu)
    return damaged(record.file(), "'/device/arch' " + gpu.error().message);
  inputs.gpu = std::move(*gpu);
  return {};
}

std::string manifestOf(const std::string &bundle) { return (std::filesystem::path(bundle) / "manifest.json").string(); }

Status checkSameKernels(const RecordedCompile &recorded, const std::vector<ProgramKernel> &program) {
  const json kernels = recorded.manifest.root().value("kernels", json::array());
  bool same = kernels.is_array() && kernels.size() == program.size();
  for (size_t i = 0; same && i < program.size(); ++i)
    same = kernels[i].is_object() && kernels[i].value("hash", json()) == "k2c_" + kernelHash(program[i].desc);
  if (!same)
    return Error{manifestOf(recorded.bundle), "its kernels are not those that this k2c compiles of its model",
                 "compile it again"};
  return {};
}

std::vector<llvm::StringRef> tilesOf(llvm::StringRef remarks) {
  std::vector<llvm::StringRef> tiles;
  for (llvm::StringRef line : llvm::split(remarks, '\n'))
    if (isTileRemark(line))
      tiles.push_back(line);
  return tiles;
}

/// Tiles are no part of a kernel's hash, as no bit depends on them.
Status checkSameTiles(const RecordedCompile &recorded, const std::string &remarks) {
  Expected<std::string> text = readBundleRemarks(recorded.bundle);
  if (!text)
    return text.takeError();
  const std::vector<llvm::StringRef> stated = tilesOf(*text), chosen = tilesOf(remarks);
  for (size_t i = 0; i < std::max(stated.size(), chosen.size()); ++i) {
    const llvm::StringRef theirs = i < stated.size() ? stated[i] : "none",
                          ours = i < chosen.size() ? chosen[i] : "none";
    if (theirs != ours)
      return Error{(std::filesystem::path(recorded.bundle) / "remarks.txt").string(),
                   "the tile of the bundle is \"" + shortened(theirs) + "\", this k2c chooses \"" + shortened(ours) +
                       "\"",
                   "compile it again, without --tile-choice"};
  }
  return {};
}

} // namespace

Expected<RecordedCompile> readRecord(const std::string &bundle, const std::string &checkpoint) {
  Expected<JsonDocument> manifest = readManifest(bundle);
  if (!manifest)
    return manifest.takeError();
  const std::string path = manifestOf(bundle);
  const Record record(path, manifest->root());
  Expected<CompileOptions> options = optionsOf(record, bundle, manifest->root());
  if (!options)
    return options.takeError();
  const json spec = manifest->root().value("spec", json::object());
  if (checkpoint.empty() && spec.is_object() && spec.value("family", json()) == onnxFamily)
    return Error{bundle, "was compiled from an ONNX file, which it has no copy of to compile again",
                 "name the file: --checkpoint FILE.onnx"};
  if (!checkpoint.empty())
    options->source = checkpoint;
  Expected<Inputs> inputs = readInputs(*options);
  if (!inputs)
    return inputs.takeError();
  if (!checkpoint.empty())
    if (Status status = checkSameSpec(inputs->spec, checkpoint, spec); !status)
      return status.takeError();
  if (Status status = readMachine(record, *inputs); !status)
    return status.takeError();
  if (Status status = readRanks(record, *inputs); !status)
    return status.takeError();
  return RecordedCompile{bundle, std::move(*manifest), std::move(*options), std::move(*inputs)};
}

bool isTileRemark(llvm::StringRef line) { return line.starts_with("[choose-tiles] "); }

Status compileAgain(CompilePipeline &pipeline, const RecordedCompile &recorded) {
  if (Status status = pipeline.runTo(Form::Scheduled); !status)
    return status;
  if (Status status = checkSameKernels(recorded, pipeline.launches()); !status)
    return status;
  return checkSameTiles(recorded, pipeline.remarks());
}

} // namespace k2c
