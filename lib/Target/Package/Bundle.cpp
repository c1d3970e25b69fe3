//===- Bundle.cpp - The folder of a bundle --------------------------------===//
#include "k2c/Support/Json.h"
#include "k2c/Target/Package.h"
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace k2c {

namespace {

/// Files of a checkpoint folder that the runtime reads, if they are there.
constexpr const char *runtimeFiles[] = {"tokenizer.json", "tokenizer_config.json", "generation_config.json",
                                        "config.json"};
/// The regular-expression library of the tokenizer, opened from the bundle by commands that take or print text.
constexpr const char *regexLibrary = "libonig.so.5";

bool isBundle(const fs::path &folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "manifest.json", error) && fs::is_regular_file(folder / "program.so", error);
}

bool isEmptyFolder(const fs::path &folder) {
  std::error_code error;
  return fs::is_directory(folder, error) && fs::is_empty(folder, error);
}

Error systemError(const std::string &where, const std::error_code &error) { return {where, error.message(), ""}; }

Status copyFile(const fs::path &from, const fs::path &to) {
  std::error_code error;
  fs::copy_file(fs::canonical(from, error), to, fs::copy_options::overwrite_existing, error);
  if (error)
    return systemError(to.string(), error);
  return {};
}

/// Where the dynamic loader finds `library`.
std::string locateLibrary(const char *library) {
  for (const char *folder :
       {"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"})
    if (std::error_code error; fs::exists(fs::path(folder) / library, error))
      return (fs::path(folder) / library).string();
  return "";
}

} // namespace

Expected<BundleFolder> BundleFolder::begin(const std::string &output, bool force) {
  BundleFolder bundle;
  fs::path target = fs::absolute(output).lexically_normal();
  if (!target.has_filename())
    target = target.parent_path();
  std::error_code error;
  if (fs::exists(fs::symlink_status(target, error)) && !isBundle(target) && !isEmptyFolder(target) && !force)
    return Error{output, "exists and is not a k2c bundle", "choose another folder, or replace it with --force"};
  bundle.output = target.string();
  bundle.partial = target.string() + ".partial";
  fs::create_directories(fs::path(bundle.partial) / "weights", error);
  if (error)
    return systemError(bundle.partial, error);
  return bundle;
}

Status BundleFolder::write(const std::string &name, const std::string &text) const {
  fs::path path = fs::path(partial) / name;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file)
    return Error{path.string(), "cannot be written: " + std::string(std::strerror(errno)),
                 "check space and permissions"};
  return {};
}

Status BundleFolder::addRuntime(const std::string &runtime, const std::string &checkpoint) const {
  fs::path root(partial);
  if (Status status = copyFile(runtime, root / "run"); !status)
    return status;
  std::error_code error;
  for (const char *name : runtimeFiles)
    if (!checkpoint.empty() && fs::exists(fs::path(checkpoint) / name, error))
      if (Status status = copyFile(fs::path(checkpoint) / name, root / name); !status)
        return status;
  if (std::string library = locateLibrary(regexLibrary); !library.empty()) {
    fs::create_directories(root / "lib", error);
    return copyFile(library, root / "lib" / regexLibrary);
  }
  return {};
}

Status BundleFolder::finish() const {
  std::error_code error;
  if (fs::exists(fs::symlink_status(output, error))) {
    // One system call exchanges the folders; what was there before is then removed.
    if (syscall(SYS_renameat2, AT_FDCWD, partial.c_str(), AT_FDCWD, output.c_str(), RENAME_EXCHANGE) != 0)
      return Error{output, "cannot be replaced: " + std::string(std::strerror(errno)), "choose another folder"};
    fs::remove_all(partial, error);
    return {};
  }
  fs::rename(partial, output, error);
  if (error)
    return systemError(output, error);
  return {};
}

int64_t tokenizerBytes(const std::string &checkpoint) {
  std::error_code error;
  auto bytes = fs::file_size(fs::path(checkpoint) / "tokenizer.json", error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

Expected<std::string> findRuntime() {
  std::error_code error;
  fs::path tool = fs::read_symlink("/proc/self/exe", error);
  fs::path runtime = tool.parent_path() / "k2rt-run";
  if (!fs::exists(runtime, error))
    return Error{runtime.string(), "the prebuilt runtime is not there", "build the target k2rt-run"};
  return runtime.string();
}

} // namespace k2c
