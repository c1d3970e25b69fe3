//===- Cached.cpp - Compile once into the user's cache --------------------===//
#include "k2c/Pipelines/Compile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <filesystem>

namespace fs = std::filesystem;

namespace k2c {

namespace {

fs::path cacheFolder() {
  if (const char *folder = std::getenv("XDG_CACHE_HOME"); folder && *folder)
    return fs::path(folder) / "k2c";
  return fs::path(std::getenv("HOME") ? std::getenv("HOME") : ".") / ".cache/k2c";
}

/// Names, sizes and times of the source's files, and of k2c itself: what a bundle was made from.
std::string fingerprint(const fs::path &source) {
  std::string text;
  auto add = [&](const fs::path &file) {
    std::error_code error;
    text += file.string() + "|" + std::to_string(fs::file_size(file, error)) + "|" +
            std::to_string(fs::last_write_time(file, error).time_since_epoch().count()) + "\n";
  };
  std::vector<fs::path> files;
  std::error_code error;
  if (fs::is_directory(source, error))
    for (const fs::directory_entry &entry : fs::directory_iterator(source, error))
      files.push_back(entry.path());
  else
    files.push_back(source);
  std::sort(files.begin(), files.end());
  std::for_each(files.begin(), files.end(), add);
  add(fs::read_symlink("/proc/self/exe", error));
  return llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, 16);
}

} // namespace

Expected<std::string> compileCached(const std::string &source,
                                    const std::function<void(const std::string &, int64_t, int64_t)> &progress) {
  std::error_code error;
  fs::path bundle = cacheFolder() / "bundles" / fingerprint(fs::absolute(source));
  if (fs::exists(bundle / "manifest.json", error))
    return bundle.string();
  fs::create_directories(bundle.parent_path(), error);
  CompileOptions options;
  options.source = source;
  options.output = bundle.string();
  options.progress = progress;
  if (Status status = compile(options); !status)
    return status.takeError();
  return bundle.string();
}

} // namespace k2c
