//===- Pack.cpp - A checkpoint into a shape-only bundle ---------------------===//
//
// The bundle says what it was compiled for (manifest "spec"), so the checkpoint's config.json must say the same, and
// its tensors must have the shapes that follow. Then everything that the bundle lacks is added: tokenizer, the ids that
// end a text, the tokenizer's share of the memory certificate, the weights. The index comes last but for the list of
// hashes: a bundle with an index is complete. Of a program that reads the checkpoint's own bytes no weights are added,
// but their hashes and a link to the checkpoint.
//
//===----------------------------------------------------------------------===//
#include "PackedRanks.h"
#include "Stages.h"
#include "base/File.h"
#include "base/Hash.h"
#include "base/JsonText.h"
#include "base/Utf8.h"
#include "k2c/Model/CheckWeights.h"
#include "k2c/Model/Source.h"
#include "k2c/Model/SpecJson.h"
#include "k2c/Onnx/Import.h"
#include "k2c/Support/Units.h"
#include "k2c/Weights/BundleFiles.h"
#include "k2c/Weights/CheckpointTensors.h"
#include "k2rt/program.h"
#include "k2rt/reserve.h"
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

namespace fs = std::filesystem;
using nlohmann::json;

namespace k2c {

static constexpr const char *packedRanksFile = "weights/ranks.json";

Status writePackedRanks(const std::string &bundle, const std::vector<int64_t> &ranks, uint64_t common) {
  json packed = {{"format", 1}, {"common", hashText(common)}};
  if (!ranks.empty())
    packed["ranks"] = ranks;
  return replaceFile((fs::path(bundle) / packedRanksFile).string(), jsonText(packed) + "\n");
}

namespace {

/// Members that pack reads and rewrites, checked before they are touched.
Status checkManifest(const std::string &path, const json &manifest) {
  for (const char *key :
       {"/limits/step_tokens", "/limits/max_sequences", "/limits/max_context", "/model/vocab", "/memory/reserve_bytes",
        "/predicted/peak_bytes", "/topology/ranks", "/topology/nodes", "/topology/cores"}) {
    json::json_pointer pointer(key);
    if (!manifest.contains(pointer) || !manifest[pointer].is_number_integer())
      return damaged(path, std::string("'") + key + "' must be a whole number");
  }
  const json &topology = manifest["topology"];
  if (const int64_t ranks = topology["ranks"], nodes = topology["nodes"]; nodes < 1 || ranks % nodes != 0)
    return damaged(path, "has " + std::to_string(ranks) + " ranks on " + std::to_string(nodes) + " nodes");
  if (!manifest.contains("spec"))
    return damaged(path, "does not say which model was compiled ('spec')");
  if (!manifest.contains("cache") || !manifest["cache"].is_array())
    return damaged(path, "'cache' must be a list");
  for (const json &plane : manifest["cache"])
    if (auto group = plane.find("group"); plane.is_object() && group != plane.end())
      if (!group->is_number_unsigned() || group->get<uint64_t>() >= K2RT_MAX_CACHE_GROUPS)
        return damaged(path, "'cache' has a plane of group " + shortenedJson(*group) + ", groups are 0 to " +
                                 std::to_string(K2RT_MAX_CACHE_GROUPS - 1));
  return {};
}

/// What the folder of the checkpoint adds to a manifest that was made without it.
void addFolderFacts(json &manifest, const ModelSpec &spec, int64_t tokenizer, int64_t experts) {
  int64_t groups = 1;
  for (const json &plane : manifest["cache"])
    if (auto group = plane.find("group"); plane.is_object() && group != plane.end())
      groups = std::max(groups, group->get<int64_t>() + 1);
  const json &limits = manifest["limits"];
  k2rt_limits runtime{limits["step_tokens"],
                      limits["max_sequences"],
                      limits["max_context"],
                      groups,
                      manifest["model"]["vocab"],
                      tokenizer,
                      experts};
  json &reserve = manifest["memory"]["reserve_bytes"], &peak = manifest["predicted"]["peak_bytes"];
  int64_t needed = k2rt_reserve_bytes(&runtime);
  if (!manifest.contains("device")) // a GPU's is without what its process takes
    peak = peak.get<int64_t>() - reserve.get<int64_t>() + needed;
  reserve = needed;
  manifest["eos"] = spec.eos;
}

/// Writes again what states the peak of the certificate for a cluster, and adds its name to `changed`.
Status updateLaunch(const std::string &bundle, const json &manifest, const ModelSpec &spec,
                    std::vector<std::string> &changed) {
  const json &topology = manifest["topology"], &name = manifest["model"]["name"];
  const LaunchFacts facts{name.is_string() ? name.get<std::string>() : spec.name, topology["ranks"], topology["nodes"],
                          topology["cores"], manifest["predicted"]["peak_bytes"]};
  if (facts.ranks > 1)
    for (const LaunchFile &file : launchFiles(facts))
      if (file.name == kubernetesFile) {
        changed.push_back(file.name);
        return replaceFile((fs::path(bundle) / file.name).string(), file.text);
      }
  return {};
}

/// What is packed: a checkpoint's weights, or those of an ONNX file.
struct PackedModel {
  ModelSpec spec;
  std::shared_ptr<const TensorSource> tensors;
  std::string folder;
};

/// The spec of the model as its source has it.
json storedSpec(const json &manifest) {
  json spec = manifest["spec"];
  if (spec.is_object())
    spec.erase("narrowed");
  return spec;
}

/// The model of the bundle, as `onnx`, a .onnx file, has it.
Expected<PackedModel> sameOnnx(const std::string &onnx, const json &manifest) {
  Expected<OnnxModel> model = importOnnx(onnx);
  if (!model)
    return model.takeError();
  if (Status status = checkSameSpec(model->spec, onnx, storedSpec(manifest)); !status)
    return status.takeError();
  return PackedModel{std::move(model->spec), std::move(model->tensors), std::move(model->folder)};
}

/// The same, as the checkpoint in `folder` has it.
Expected<PackedModel> sameCheckpoint(const std::string &folder, Checkpoint checkpoint, const json &manifest) {
  LoadOptions load;
  load.ignoreKeys = textsAt(manifest, ignoredKeys);
  Expected<ModelSpec> spec = loadModelSpec(folder, load);
  if (!spec)
    return spec.takeError();
  if (Status status = checkSameSpec(*spec, (fs::path(folder) / "config.json").string(), storedSpec(manifest)); !status)
    return status.takeError();
  if (Status status = checkWeights(*spec, checkpoint); !status)
    return status.takeError();
  return PackedModel{std::move(*spec), std::make_shared<CheckpointTensors>(std::move(checkpoint)), folder};
}

/// What `source` has of the model of a bundle, whose manifest is read and checked on the way.
Expected<PackedModel> sameModel(const std::string &source, const std::string &manifestPath, json &manifest) {
  const Expected<std::string> found = resolveSource(source);
  const Expected<std::string> onnx = found ? onnxFile(*found) : Expected<std::string>(found.error());
  if (!onnx)
    return onnx.error();
  std::optional<Checkpoint> checkpoint;
  if (onnx->empty()) {
    Expected<Checkpoint> opened = Checkpoint::open(*found);
    if (!opened)
      return opened.takeError();
    checkpoint = std::move(*opened);
  }
  Expected<JsonDocument> document = readJsonFile(manifestPath);
  if (!document)
    return document.takeError();
  manifest = document->root();
  if (Status status = checkManifest(manifestPath, manifest); !status)
    return status.takeError();
  Expected<PackedModel> model =
      checkpoint ? sameCheckpoint(*found, std::move(*checkpoint), manifest) : sameOnnx(*onnx, manifest);
  if (model)
    if (Status status = narrow(textsAt(manifest, narrowedFamilies), *found, model->spec, model->tensors); !status)
      return status.takeError();
  return model;
}

/// Says that there is nothing to pack where a program reads the checkpoint's own bytes.
Status noteReference(const WeightMap &map, const PackBundleOptions &options) {
  if (!map.isReference)
    return {};
  if (!options.blobStore.empty())
    return Error{"--blob-store " + shortened(options.blobStore),
                 "keeps packed weights, and " + options.bundle +
                     " was compiled with --weights reference, which packs none",
                 "leave it out"};
  if (options.note)
    options.note("nothing to pack: the program reads the bytes of " + options.checkpoint + ", " +
                 format(Bytes(map.referenceBytes())) + ", whose hashes are written");
  return {};
}

/// Keeps a second pack out of a bundle while it lives. A file system without locks keeps nobody out.
class BundleLock {
public:
  explicit BundleLock(const std::string &bundle) : folder(::open(bundle.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    isTaken = folder.number >= 0 && ::flock(folder.number, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  }
  bool isTakenByAnother() const { return isTaken; }

private:
  Descriptor folder;
  bool isTaken;
};

} // namespace

Error damaged(const std::string &manifest, const std::string &why) {
  return {manifest, why, "the bundle is damaged, or of another k2c: compile again"};
}

std::vector<std::string> textsAt(const json &manifest, const char *pointer) {
  std::vector<std::string> texts;
  const json::json_pointer at(pointer);
  if (manifest.contains(at) && manifest[at].is_array())
    for (const json &text : manifest[at])
      if (text.is_string())
        texts.push_back(text.get<std::string>());
  return texts;
}

Status checkIsBundle(const std::string &folder) {
  std::error_code error;
  if (fs::is_regular_file(fs::path(folder) / "manifest.json", error))
    return {};
  return Error{folder, "is not a bundle: it has no manifest.json", "name a folder that k2c compile wrote"};
}

Expected<JsonDocument> readManifest(const std::string &bundle) {
  if (Status status = checkIsBundle(bundle); !status)
    return status.takeError();
  const std::string path = (fs::path(bundle) / "manifest.json").string();
  Expected<JsonDocument> manifest = readJsonFile(path);
  if (manifest && (!manifest->root().is_object() || !manifest->root().contains("model")))
    return Error{path, "is not the manifest of a model", "compile the model again"};
  return manifest;
}

Expected<std::string> readBundleRemarks(const std::string &bundle) {
  constexpr size_t maxBytes = size_t(64) << 20;
  return readTextFile((fs::path(bundle) / "remarks.txt").string(), maxBytes);
}

Expected<PackReport> packCheckpoint(const WeightMap &map, const TensorSource &tensors, const std::string &folder,
                                    const std::string &bundle, const PackOptions &options) {
  Expected<PackReport> report = packWeights(map, tensors, bundle, options);
  if (report && map.isReference)
    if (Status status = linkCheckpoint(folder, bundle); !status)
      return status.takeError();
  return report;
}

Status packBundle(const PackBundleOptions &options) {
  const std::string &bundle = options.bundle;
  if (Status status = checkIsBundle(bundle); !status)
    return status;
  const BundleLock lock(bundle);
  if (lock.isTakenByAnother())
    return Error{bundle, "another k2c is packing weights into it", "wait for it"};
  const std::string manifestPath = (fs::path(bundle) / "manifest.json").string();
  json manifest;
  Expected<PackedModel> model = sameModel(options.checkpoint, manifestPath, manifest);
  if (!model)
    return model.takeError();
  Expected<WeightMap> map = readWeightMap(bundle);
  if (!map)
    return map.takeError();
  if (Status status = noteReference(*map, options); !status)
    return status;
  Expected<PackedRanks> ranks = readPackedRanks(bundle, options.ranks, manifest, model->spec, *map);
  if (!ranks)
    return ranks.takeError();
  Expected<std::optional<std::string>> textless = checkTokenizer(model->folder, model->spec.tiktoken);
  if (!textless)
    return textless.takeError();
  if (*textless && options.note)
    options.note(**textless);
  Expected<std::vector<std::string>> changed = copyModelFiles(model->folder, bundle);
  if (!changed)
    return changed.takeError();
  addFolderFacts(manifest, model->spec, tokenizerBytes(bundle), map->experts());
  if (Status status = replaceFile(manifestPath, jsonText(manifest, 2) + "\n"); !status)
    return status;
  if (Status status = updateLaunch(bundle, manifest, model->spec, *changed); !status)
    return status;
  PackOptions pack;
  pack.sharedFolder = options.blobStore;
  if (!ranks->ranks.empty())
    pack.takes = [&](const WeightSlot &slot, int64_t expert) { return ranks->takes(slot, expert); };
  if (options.progress)
    pack.progress = [&](int64_t done, int64_t total) { options.progress("weights", done, total); };
  Expected<PackReport> report = packCheckpoint(*map, *model->tensors, model->folder, bundle, pack);
  if (!report)
    return report.takeError();
  if (Status status = removeStrayBlobs(bundle); !status)
    return status;
  if (manifest["topology"]["ranks"] != 1)
    if (Status status = writePackedRanks(bundle, ranks->ranks, report->common); !status)
      return status;
  changed->insert(changed->end(), {"manifest.json", "weights/index.json", packedRanksFile});
  return updateBundleFiles(bundle, *changed);
}

} // namespace k2c
