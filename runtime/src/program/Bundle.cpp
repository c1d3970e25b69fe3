// Every file is checked before it is used: its size and hash, then the manifest field by field, and the CPU before a
// program meets it.
//
// A placement comes before the weights, as it says which of them this rank maps. Files of --placement are in no list:
// only what ranks say of them to one another vouches for them.
#include "program/Bundle.h"
#include "program/CpuFeatures.h"
#include "program/PackedRanks.h"
#include <sys/stat.h>

namespace k2c::runtime {

static constexpr int64_t maxManifestBytes = int64_t(64) << 20;
static constexpr int64_t maxIndexBytes = int64_t(256) << 20;
static const char manifestFile[] = "manifest.json";
static const char weightMapFile[] = "weights/map.json";
static const char *const tokenizerFiles[] = {"tokenizer.json", "tiktoken.model"};

std::string tokenizerFile(const std::string &folder) {
  for (const char *name : tokenizerFiles)
    if (bundleFileExists(folder, name))
      return name;
  return "";
}

static int64_t fileBytes(const std::string &path) {
  struct stat facts;
  return ::stat(path.c_str(), &facts) == 0 ? facts.st_size : 0;
}

Expected<FileList> readFileList(const std::string &folder) {
  if (!bundleFileExists(folder, manifestFile))
    return Error{K2RT_INVALID_BUNDLE, folder, "is not a bundle: it has no manifest.json",
                 "name a folder that k2c compile wrote"};
  Expected<FileList> files = FileList::read(folder);
  if (!files)
    return files;
  if (Status right = files->checkSizes(); !right)
    return right.takeError();
  return files;
}

Expected<Manifest> readManifest(const FileList &files) {
  Expected<std::string> text = files.text(manifestFile, maxManifestBytes);
  if (!text)
    return text.takeError();
  const std::string tokenizer = tokenizerFile(files.folder());
  const int64_t tokenizerBytes = tokenizer.empty() ? 0 : fileBytes(files.folder() + "/" + tokenizer);
  return parseManifest(*text, files.folder() + "/" + manifestFile, tokenizerBytes);
}

Expected<ListedManifest> readListedManifest(const std::string &folder) {
  Expected<FileList> files = readFileList(folder);
  if (!files)
    return files.takeError();
  Expected<Manifest> manifest = readManifest(*files);
  if (!manifest)
    return manifest.takeError();
  return ListedManifest{std::move(*files), std::move(*manifest)};
}

/// Its own holds until one of `given` does.
static Expected<Placement> readPlacement(const FileList &files, const Manifest &manifest, int32_t rank,
                                         std::vector<PlacementText> given) {
  if (!manifest.ranks.divideExperts && !given.empty())
    return Error{K2RT_INVALID_ARGUMENT, "--placement",
                 std::string("says which rank has which experts, and the program has one rank") +
                     (manifest.ranks.areSeveral() ? " a stage" : ""),
                 "leave it out"};
  if (!manifest.ranks.divideExperts)
    return Placement();
  if (given.empty() || given.front().fromStep > 0) {
    const std::string &file = manifest.ranks.placement.file;
    Expected<std::string> text = files.text(file, maxPlacementBytes);
    if (!text)
      return text.takeError();
    given.insert(given.begin(), {files.folder() + "/" + file, std::move(*text), 0, /*isOwn=*/true});
  }
  return Placement::parse(given, manifest, rank);
}

static Expected<Weights> mapWeights(const FileList &files, const Manifest &manifest, int32_t rank,
                                    const Placement &placement, const Program &program) {
  const std::string &folder = files.folder();
  const std::string place = folder + "/" + manifest.weightsIndex;
  if (!bundleFileExists(folder, manifest.weightsIndex))
    return Error{K2RT_INVALID_BUNDLE, folder, "has no weights: it was compiled from shapes only",
                 "run k2c pack " + folder + " --checkpoint FOLDER"};
  Expected<std::string> index = files.text(manifest.weightsIndex, maxIndexBytes);
  if (!index)
    return index.takeError();
  const RankFacts &ranks = manifest.ranks;
  RankPart part;
  if (!ranks.stages.empty()) {
    const std::array<int64_t, 2> layers = ranks.layersOf(rank, manifest.layers);
    part = {layers[0], layers[1], ranks.isFirstStage(rank), ranks.isLastStage(rank)};
  }
  part.place = ranks.placeOf(rank);
  Expected<Weights> weights = Weights::map(folder, manifest.weightsIndex, *index, program.description().n_weights,
                                           manifest.shares, placement, part);
  if (!weights)
    return weights.takeError();
  if (Status fits = weights->checkFits(program.description(), place); !fits)
    return fits.takeError();
  if (weights->arePieces() && !manifest.device)
    return Error{K2RT_INVALID_BUNDLE, place,
                 "names pieces of a checkpoint, which only a program of a GPU reads, and the manifest has no device",
                 "compile the bundle again"};
  const int64_t stated = ranks.areSeveral() ? ranks.each[static_cast<size_t>(rank)].weights : manifest.memory.weights;
  if (weights->firstBytes() > stated)
    return Error{K2RT_INVALID_BUNDLE, place,
                 "maps " + std::to_string(weights->firstBytes()) + " bytes, the manifest states " +
                     std::to_string(stated),
                 "compile the bundle again"};
  return weights;
}

Expected<Bundle> Bundle::open(ListedManifest read, int32_t rank, std::vector<PlacementText> placements) {
  auto &[files, manifest] = read;
  const std::string &folder = files.folder();
  if (Status cpu = checkCpuFeatures(manifest.cpuFeatures, manifest.cpu); !cpu)
    return cpu.takeError();
  // The list vouches for what it names, and what it does not name is not to be used.
  const std::string placementFile = manifest.ranks.divideExperts ? manifest.ranks.placement.file : manifestFile;
  for (const std::string &file : {std::string(manifestFile), std::string(programFile), std::string(weightMapFile),
                                  manifest.weightsIndex, placementFile})
    if (bundleFileExists(folder, file))
      if (Status listed = files.checkListed(file); !listed)
        return listed.takeError();
  // main checks `run` before anything else, and a tokenizer is checked when it is read.
  std::set<std::string> checkedElsewhere = {"run", manifestFile, manifest.weightsIndex, placementFile};
  checkedElsewhere.insert(std::begin(tokenizerFiles), std::end(tokenizerFiles));
  if (Status right = files.checkHashesBut(checkedElsewhere); !right)
    return right.takeError();
  Expected<Program> program = Program::load(folder, manifest);
  if (!program)
    return program.takeError();
  Expected<PackedRanks> packed = readPackedRanks(files, manifest);
  if (!packed)
    return packed.takeError();
  if (Status there = checkPacked(*packed, folder, rank); !there)
    return there.takeError();
  Expected<Placement> placement = readPlacement(files, manifest, rank, placements);
  if (!placement)
    return placement.takeError();
  Expected<Weights> weights = mapWeights(files, manifest, rank, *placement, *program);
  if (!weights)
    return weights.takeError();
  return Bundle{folder, std::move(manifest),       std::move(*program),  std::move(*placement), std::move(*weights),
                rank,   files.hashOf(programFile), std::move(placements)};
}

Error startedAlone(const std::string &folder, const RankFacts &ranks) {
  return Error{K2RT_UNSUPPORTED, folder,
               "is of " + std::to_string(ranks.count) + " ranks, which this call does not start",
               "use DIR/launch.sh COMMAND, or DIR/run COMMAND --transport local: ranks as threads of one process"};
}

Expected<Bundle> Bundle::open(const std::string &folder) {
  Expected<ListedManifest> read = readListedManifest(folder);
  if (!read)
    return read.takeError();
  if (read->manifest.ranks.areSeveral())
    return startedAlone(folder, read->manifest.ranks);
  return open(std::move(*read), /*rank=*/0, {});
}

Expected<Bundle> Bundle::open(const std::string &folder, int32_t rank, std::vector<PlacementText> placements) {
  Expected<ListedManifest> read = readListedManifest(folder);
  return read ? open(std::move(*read), rank, std::move(placements)) : read.takeError();
}

} // namespace k2c::runtime
