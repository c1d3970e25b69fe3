// The manifest is checked before any code of the bundle runs, and the CPU before a program meets it.
#include "program/Bundle.h"
#include "host/CpuFeatures.h"
#include <sys/stat.h>

namespace k2rt {

static constexpr int64_t mostManifestBytes = int64_t(64) << 20;
static const char manifestFile[] = "manifest.json";

std::string tokenizerFile(const std::string &folder) {
  for (const char *name : {"tokenizer.json", "tiktoken.model"})
    if (bundleFileExists(folder, name))
      return name;
  return "";
}

static int64_t fileBytes(const std::string &path) {
  struct stat facts;
  return ::stat(path.c_str(), &facts) == 0 ? facts.st_size : 0;
}

Result<Manifest> readManifest(const std::string &folder) {
  if (!bundleFileExists(folder, manifestFile))
    return Error{K2RT_INVALID_BUNDLE, folder, "is not a bundle: it has no manifest.json",
                 "name a folder that k2c compile wrote"};
  Result<std::string> text = readBundleFile(folder, manifestFile, mostManifestBytes);
  if (!text)
    return text.takeError();
  const std::string tokenizer = tokenizerFile(folder);
  const int64_t tokenizerBytes = tokenizer.empty() ? 0 : fileBytes(folder + "/" + tokenizer);
  return parseManifest(*text, folder + "/" + manifestFile, tokenizerBytes);
}

Result<Bundle> Bundle::open(const std::string &folder) {
  Result<Manifest> manifest = readManifest(folder);
  if (!manifest)
    return manifest.takeError();
  Status cpu = checkCpuFeatures(manifest->cpuFeatures, manifest->cpu);
  if (!cpu)
    return cpu.takeError();
  Result<Program> program = Program::load(folder, *manifest);
  if (!program)
    return program.takeError();
  if (!bundleFileExists(folder, manifest->weightsIndex))
    return Error{K2RT_INVALID_BUNDLE, folder, "has no weights: it was compiled from shapes only",
                 "run k2c pack " + folder + " --checkpoint FOLDER"};
  Result<Weights> weights =
      Weights::map(folder, manifest->weightsIndex, program->description().n_weights, manifest->shares);
  if (!weights)
    return weights.takeError();
  if (weights->bytes() > manifest->memory.weights)
    return Error{K2RT_INVALID_BUNDLE, folder + "/" + manifest->weightsIndex,
                 "maps " + std::to_string(weights->bytes()) + " bytes, the manifest states " +
                     std::to_string(manifest->memory.weights),
                 "compile the bundle again"};
  return Bundle{folder, std::move(*manifest), std::move(*program), std::move(*weights)};
}

} // namespace k2rt
