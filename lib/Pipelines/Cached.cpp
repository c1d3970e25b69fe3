//===- Cached.cpp - Compile once into the user's cache --------------------===//
#include "Stages.h"
#include "base/File.h"
#include "k2c/Model/Source.h"
#include "k2c/Weights/BundleFiles.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace k2c {

namespace {

/// Names, sizes and times of the source's files (a link's are its file's) and of k2c itself, and the CPU: what a bundle
/// was made from and for. A home folder may be shared by machines.
std::string fingerprint(const fs::path &source, const HostTarget &target) {
  std::string text = target.cpu + "\n";
  for (const std::string &feature : target.features)
    text += feature + ",";
  auto add = [&](const fs::path &file) {
    std::error_code error;
    text += file.string() + "|" + std::to_string(fs::file_size(file, error)) + "|" +
            std::to_string(fs::last_write_time(file, error).time_since_epoch().count()) + "\n";
  };
  std::vector<fs::path> files;
  std::error_code error;
  if (fs::is_directory(source, error))
    for (fs::directory_iterator entries(source, error), end; entries != end && !error; entries.increment(error))
      files.push_back(entries->path());
  else
    files.push_back(source);
  std::sort(files.begin(), files.end());
  std::for_each(files.begin(), files.end(), add);
  add(fs::read_symlink("/proc/self/exe", error));
  return llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, 16);
}

/// Bytes of the files that a bundle is made from.
uintmax_t bytesOf(const fs::path &source) {
  std::error_code error;
  if (!fs::is_directory(source, error))
    return fs::file_size(source, error);
  uintmax_t bytes = 0;
  for (fs::directory_iterator entries(source, error), end; entries != end && !error; entries.increment(error))
    if (std::error_code unread; entries->is_regular_file(unread))
      bytes += entries->file_size(unread);
  return bytes;
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

} // namespace

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
  const std::string name = fingerprint(fs::absolute(*resolved), *target);
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
  if (status)
    return CachedBundle{options.output, ""};
  // The weights of a bundle take about what those of its source do, and its programs some megabytes.
  constexpr uintmax_t programs = 32 << 20;
  if (fs::space(bundles, error).available >= bytesOf(*resolved) + programs)
    return status.takeError();
  fs::remove_all(options.output + ".partial", error);
  return cannotKeep(bundles, ENOSPC);
}

} // namespace k2c
