//===- Cached.cpp - Compile once into the user's cache --------------------===//
#include "Stages.h"
#include "k2c/Model/Source.h"
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

/// Waits for other processes that compile the same; released when the object dies. False, with errno: no file can be
/// written there.
class CacheLock {
public:
  explicit CacheLock(const std::string &path) : file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    while (file >= 0 && ::flock(file, LOCK_EX) != 0 && errno == EINTR)
      ;
    // A full disk has room for names.
    constexpr char probe[4096] = {};
    isWritable = file >= 0 && ::pwrite(file, probe, sizeof probe, 0) == ssize_t(sizeof probe);
  }
  CacheLock(const CacheLock &) = delete;
  CacheLock &operator=(const CacheLock &) = delete;
  ~CacheLock() {
    if (file >= 0)
      ::close(file);
  }
  explicit operator bool() const { return isWritable; }

private:
  int file;
  bool isWritable;
};

/// Where the cache keeps no bundle: a folder of the system's temporary one.
Expected<CachedBundle> compileTemporary(CompileOptions options, const std::string &why) {
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "k2c-run-XXXXXX").string();
  if (error || !::mkdtemp(folder.data()))
    return Error{folder, std::string("cannot be created: ") + std::strerror(error ? error.value() : errno),
                 "set TMPDIR to a folder where you may write, or use k2c compile"};
  if (options.note)
    options.note(why + "; the compiled model is removed after this run (set XDG_CACHE_HOME to a folder where you may "
                       "write, or use k2c compile)");
  options.output = folder + "/bundle";
  Status status = compile(options);
  if (status)
    return CachedBundle{options.output, folder};
  fs::remove_all(folder, error);
  return status.takeError();
}

std::string cannotKeep(const fs::path &folder, int code) {
  return folder.string() + ": cannot keep compiled models there: " + std::strerror(code);
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
    return compileTemporary(std::move(options), "neither XDG_CACHE_HOME nor HOME is set");
  fs::path bundle = fs::path(cache) / "bundles" / fingerprint(fs::absolute(*resolved), *target);
  options.output = bundle.string();
  if (fs::exists(bundle / "manifest.json", error))
    return CachedBundle{options.output, ""};
  fs::create_directories(bundle.parent_path(), error);
  if (error)
    return compileTemporary(std::move(options), cannotKeep(bundle.parent_path(), error.value()));
  CacheLock lock(bundle.parent_path() / ("." + bundle.filename().string() + ".lock"));
  if (!lock)
    return compileTemporary(std::move(options), cannotKeep(bundle.parent_path(), errno));
  if (fs::exists(bundle / "manifest.json", error))
    return CachedBundle{options.output, ""};
  if (Status status = compile(options); !status)
    return status.takeError();
  return CachedBundle{options.output, ""};
}

} // namespace k2c
