//===- Cached.cpp - Compile once into the user's cache --------------------===//
//
// A bundle's name is a hash of all that it was made from and for, so that a changed source is another bundle. A lock
// beside it keeps a second process waiting that compiles the same; what it was made from is written beside it, too, for
// people. Kernels lie in the folder above.
//
//===----------------------------------------------------------------------===//
#include "Stages.h"
#include "base/File.h"
#include "k2c/Model/Source.h"
#include "k2c/Onnx/Import.h"
#include "k2c/Pipelines/Cache.h"
#include "k2c/Support/Units.h"
#include "k2c/Weights/BundleFiles.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/file.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace k2c {

namespace {

/// The flags of `k2c run` that decide what the bundle is, each behind a space, as they are typed.
std::string flagsOf(const CompileOptions &options) {
  return (options.compute.empty() ? "" : " --compute " + options.compute) + (options.widen ? " --widen" : "") +
         (options.narrow ? " --narrow" : "") +
         (options.maxContext ? " --max-context " + std::to_string(*options.maxContext) : "");
}

/// The files of a source: of a folder, or of what is beside a .onnx file, those in it, and all that hold tensors of the
/// latter.
Expected<std::vector<fs::path>> filesOf(const fs::path &source) {
  std::vector<fs::path> files;
  const Expected<std::string> onnx = onnxFile(source.string());
  if (!onnx)
    return onnx.error();
  if (!onnx->empty()) {
    Expected<std::vector<std::string>> tensors = filesOfOnnx(*onnx);
    if (!tensors)
      return tensors.takeError();
    files.assign(tensors->begin(), tensors->end());
  }
  std::error_code error;
  const fs::path folder = onnx->empty() ? source : fs::path(folderBeside(*onnx));
  if (fs::is_directory(folder, error))
    for (fs::directory_iterator entries(folder, error), end; entries != end && !error; entries.increment(error))
      files.push_back(entries->path());
  else
    files.push_back(source);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

/// Names, sizes and times of the source's files (a link's are its file's) and of k2c itself, the CPU and the flags:
/// what a bundle was made from and for. A home folder may be shared by machines.
std::string fingerprint(const std::vector<fs::path> &files, const HostTarget &target, const std::string &flags) {
  std::string text = target.cpu + "\n" + flags + "\n";
  for (const std::string &feature : target.features)
    text += feature + ",";
  auto add = [&](const fs::path &file) {
    std::error_code error;
    text += file.string() + "|" + std::to_string(fs::file_size(file, error)) + "|" +
            std::to_string(fs::last_write_time(file, error).time_since_epoch().count()) + "\n";
  };
  std::for_each(files.begin(), files.end(), add);
  std::error_code error;
  add(fs::read_symlink("/proc/self/exe", error));
  return llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, 16);
}

/// Waits for other processes that compile the same; released when the object dies.
class CacheLock {
public:
  explicit CacheLock(const std::string &path)
      : file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644)) {
    while (file.number >= 0 && ::flock(file.number, LOCK_EX) != 0 && errno == EINTR)
      ;
    // A full disk has room for names.
    constexpr char probe[4096] = {};
    if (file.number < 0 || ::pwrite(file.number, probe, sizeof probe, 0) < 0)
      reason = errno;
  }
  /// Why no file can be written there; 0: one can.
  int refusal() const { return reason; }

private:
  Descriptor file;
  int reason = 0;
};

CachedBundle cannotKeep(const fs::path &folder, int code) {
  return {"", folder.string() + ": cannot keep compiled models there: " + std::strerror(code)};
}

/// Of all files but weights, which the program compares when it starts.
bool isSound(const std::string &bundle) {
  std::error_code error;
  if (!fs::exists(bundle + "/manifest.json", error))
    return false;
  Expected<VerifyReport> report = verifyBundleFiles(bundle);
  return report && report->problems.empty();
}

/// Says what a bundle was made from, beside it.
fs::path sourceFile(const fs::path &bundles, const std::string &name) { return bundles / ("." + name + ".source"); }

} // namespace

int64_t bytesOfFiles(const std::string &path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const uintmax_t size = fs::file_size(path, error);
    return error ? 0 : static_cast<int64_t>(size);
  }
  int64_t bytes = 0;
  for (fs::recursive_directory_iterator entries(path, error), end; entries != end && !error; entries.increment(error))
    if (std::error_code unread; entries->is_regular_file(unread))
      bytes += static_cast<int64_t>(entries->file_size(unread));
  return bytes;
}

Expected<CachedBundle> compileCached(CompileOptions options) {
  Expected<std::string> resolved = resolveSource(options.source);
  if (!resolved)
    return resolved.takeError();
  options.source = *resolved;
  Expected<HostTarget> target = HostTarget::detect();
  if (!target)
    return target.takeError();
  std::error_code error;
  const std::string cache = userCacheFolder();
  if (cache.empty())
    return CachedBundle{"", "neither XDG_CACHE_HOME nor HOME is set"};
  const fs::path bundles = fs::path(cache) / "bundles";
  const std::string flags = flagsOf(options);
  const Expected<std::vector<fs::path>> files = filesOf(fs::absolute(*resolved));
  if (!files)
    return files.error();
  const std::string name = fingerprint(*files, *target, flags);
  options.output = (bundles / name).string();
  if (isSound(options.output))
    return CachedBundle{options.output, ""};
  fs::create_directories(bundles, error);
  if (error)
    return cannotKeep(bundles, error.value());
  const CacheLock lock(bundles / ("." + name + ".lock"));
  if (lock.refusal())
    return cannotKeep(bundles, lock.refusal());
  if (isSound(options.output))
    return CachedBundle{options.output, ""};
  if (options.note && fs::exists(options.output, error))
    options.note(options.output + ": is damaged, and compiled again");
  Status status = compile(options);
  if (status) {
    std::ofstream(sourceFile(bundles, name)) << fs::absolute(*resolved).string() << flags << "\n";
    if (options.note)
      options.note("compiled into " + options.output + ", " + format(Bytes(bytesOfFiles(options.output))) +
                   "; k2c cache --remove " + name + " frees them");
    return CachedBundle{options.output, ""};
  }
  // The weights of a bundle take about what those of its source do, and its programs some megabytes.
  uintmax_t needed = 32 << 20;
  for (const fs::path &file : *files)
    needed += static_cast<uintmax_t>(bytesOfFiles(file));
  if (fs::space(bundles, error).available >= needed)
    return status.takeError();
  fs::remove_all(options.output + ".partial", error);
  return cannotKeep(bundles, ENOSPC);
}

namespace {

/// HASH.o, HASH.ptx or HASH.cubin, and its sum beside it, as HASH.o.sum.
bool isObject(const fs::path &file) {
  const fs::path name = file.extension() == ".sum" ? file.stem() : file;
  return name.extension() == ".o" || name.extension() == ".ptx" || name.extension() == ".cubin";
}

Expected<fs::path> cacheFolder() {
  const std::string folder = userCacheFolder();
  if (folder.empty())
    return Error{"the cache", "has no folder: neither XDG_CACHE_HOME nor HOME is set", "set one of them"};
  return fs::path(folder);
}

/// The paths in `folder`, in order; none when it cannot be read.
std::vector<fs::path> pathsIn(const fs::path &folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entries(folder, error), end; entries != end && !error; entries.increment(error))
    paths.push_back(entries->path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

} // namespace

Expected<CacheListing> listCache() {
  Expected<fs::path> folder = cacheFolder();
  if (!folder)
    return folder.takeError();
  CacheListing listing{folder->string(), {}};
  for (const fs::path &bundle : pathsIn(*folder / "bundles")) {
    std::error_code error;
    if (!fs::is_directory(bundle, error))
      continue;
    std::string source;
    std::getline(std::ifstream(sourceFile(bundle.parent_path(), bundle.filename())), source);
    listing.entries.push_back({bundle.filename(), source, bytesOfFiles(bundle)});
  }
  CacheEntry kernels{"kernels", "shared by every compile", 0};
  for (const fs::path &file : pathsIn(*folder))
    if (isObject(file))
      kernels.bytes += bytesOfFiles(file);
  if (kernels.bytes > 0)
    listing.entries.push_back(kernels);
  return listing;
}

Expected<int64_t> removeCached(const std::string &name) {
  Expected<CacheListing> listing = listCache();
  if (!listing)
    return listing.takeError();
  const fs::path folder = listing->folder;
  int64_t bytes = 0;
  bool isKnown = name == "all";
  for (const CacheEntry &entry : listing->entries) {
    if (name != "all" && name != entry.name)
      continue;
    isKnown = true;
    std::vector<fs::path> gone;
    if (entry.name == "kernels")
      for (const fs::path &file : pathsIn(folder))
        gone.insert(gone.end(), isObject(file), file);
    else
      gone = {folder / "bundles" / entry.name, sourceFile(folder / "bundles", entry.name),
              folder / "bundles" / ("." + entry.name + ".lock")};
    for (const fs::path &path : gone) {
      std::error_code error;
      fs::remove_all(path, error);
      if (error)
        return Error{path.string(), "cannot be removed: " + error.message(), "check space and permissions"};
    }
    bytes += entry.bytes;
  }
  if (!isKnown)
    return Error{folder.string(), "has no entry '" + name + "'", "k2c cache lists them"};
  return bytes;
}

} // namespace k2c
