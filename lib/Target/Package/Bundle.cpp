//===- Bundle.cpp - The files of a bundle -----------------------------------------------------===//
//
// What a bundle has beside its program and weights: the runtime with the libraries that it opens, what it reads of the
// checkpoint, and what starts several ranks. Links are followed, and a copy is there whole or not at all. The bytes of
// code that a run maps are counted from the files of the bundle, for the certificate.
//
//===----------------------------------------------------------------------===//
#include "k2c/Support/WriteFile.h"
#include "k2c/Target/Package.h"
#include <elf.h>
#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;

namespace k2c {

namespace {

/// Files of a checkpoint folder that the runtime reads, if they are there.
constexpr const char *runtimeFiles[] = {"tokenizer.json", "tiktoken.model", "tokenizer_config.json",
                                        "generation_config.json", "config.json"};
/// Files of a tokenizer that readers of checkpoints know.
constexpr const char *tokenizerFiles[] = {
    "tokenizer.json",    "tokenizer.model", "tiktoken.model", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "vocab.json",      "merges.txt",     "chat_template.jinja"};
constexpr const char *configFiles[] = {"generation_config.json", "config.json"};
/// The regular-expression library of the tokenizer, opened from the bundle by commands that take or print text.
constexpr const char *regexLibrary = "libonig.so.5";
/// What every program of the system loads.
constexpr const char *systemLibraries[] = {"ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6"};

/// Copies what `from` leads to; `to` appears whole or not at all.
Status copyFile(const fs::path &from, const fs::path &to) {
  std::error_code error;
  if (!fs::is_regular_file(from, error))
    return Error{from.string(), "not a regular file", "a checkpoint's files are regular files or links to them"};
  fs::path temporary = to.string() + ".tmp"; // the same for a retry, which removes what a killed one left
  fs::remove(temporary, error);
  if (!error)
    fs::copy_file(from, temporary, error); // follows no link
  if (!error)
    fs::rename(temporary, to, error);
  if (!error)
    return {};
  std::error_code unread, ignored;
  const uintmax_t bytes = fs::file_size(from, unread);
  // The library takes the short write of a full disk for an input/output error.
  if (error == std::errc::io_error && !unread && fs::space(to.parent_path(), ignored).available < bytes)
    error = std::make_error_code(std::errc::no_space_on_device);
  fs::remove(temporary, ignored);
  return Error{to.string(), "cannot be written: " + error.message(), "check space and permissions"};
}

/// Copies those of the files that are there; returns their names.
template <size_t Count>
Expected<std::vector<std::string>> copyFiles(const char *const (&names)[Count], const fs::path &from,
                                             const fs::path &to) {
  std::vector<std::string> copied;
  std::error_code error;
  for (const char *name : names) {
    if (!fs::exists(fs::symlink_status(from / name, error)))
      continue;
    if (Status status = copyFile(from / name, to / name); !status)
      return status.takeError();
    copied.push_back(name);
  }
  return copied;
}

/// Where the dynamic loader finds `library`.
std::string locateLibrary(const char *library) {
  for (const char *folder :
       {"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"})
    if (std::error_code error; fs::exists(fs::path(folder) / library, error))
      return (fs::path(folder) / library).string();
  return "";
}

/// Bytes of code and constants that the loader maps of the file, in whole pages: debug information is not among them,
/// nor what is written to, which is the process's own memory. 0: no such file.
int64_t codeBytesOf(const fs::path &path) {
  constexpr uint64_t page = 4096;
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header = {};
  file.read(reinterpret_cast<char *>(&header), sizeof header);
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  uint64_t bytes = 0;
  Elf64_Phdr segment = {};
  for (int i = 0; i < header.e_phnum && file.read(reinterpret_cast<char *>(&segment), sizeof segment); ++i)
    if (segment.p_type == PT_LOAD && !(segment.p_flags & PF_W))
      bytes += (segment.p_offset % page + segment.p_filesz + page - 1) / page * page;
  return static_cast<int64_t>(bytes);
}

} // namespace

Status BundleFolder::write(const std::string &name, const std::string &text) const {
  return writeFile((fs::path(partial) / name).string(), text);
}

Status BundleFolder::addRuntime(const std::string &runtime, const std::string &checkpoint) const {
  fs::path root(partial);
  if (Status status = copyFile(runtime, root / "run"); !status)
    return status;
  if (Expected<std::vector<std::string>> copied = copyModelFiles(checkpoint, partial); !copied)
    return copied.takeError();
  std::error_code error;
  if (std::string library = locateLibrary(regexLibrary); !library.empty()) {
    fs::create_directories(root / "lib", error);
    return copyFile(library, root / "lib" / regexLibrary);
  }
  return {};
}

Status BundleFolder::addEmulatedDriver() const {
  const std::string driver = libraryOfBuild(emulatedDriverFile);
  if (driver.empty())
    return {};
  std::error_code error;
  fs::create_directories(fs::path(partial) / "lib", error);
  return copyFile(driver, fs::path(partial) / "lib" / emulatedDriverFile);
}

Status BundleFolder::addLaunch(const LaunchFacts &facts) const {
  const fs::path root(partial);
  std::error_code error;
  for (const LaunchFile &file : launchFiles(facts)) {
    if (Status status = write(file.name, file.text); !status)
      return status;
    if (file.isProgram)
      fs::permissions(root / file.name, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                      fs::perm_options::add, error);
  }
  fs::create_directories(root / "lib", error);
  std::vector<LibraryTransport> transports = mpiTransports();
  transports.push_back(ucxTransport());
  for (const LibraryTransport &transport : transports)
    if (!transport.path.empty())
      if (Status status = copyFile(transport.path, root / "lib" / transport.file); !status)
        return status;
  return {};
}

Status copyTokenizerFiles(const std::string &from, const std::string &to) {
  const Expected<std::vector<std::string>> copied = copyFiles(tokenizerFiles, from, to);
  return copied ? Status() : Status(copied.error());
}

Status copyConfigFiles(const std::string &from, const std::string &to) {
  const Expected<std::vector<std::string>> copied = copyFiles(configFiles, from, to);
  return copied ? Status() : Status(copied.error());
}

Expected<std::vector<std::string>> copyModelFiles(const std::string &checkpoint, const std::string &bundle) {
  if (std::error_code error; fs::is_directory(checkpoint, error))
    return copyFiles(runtimeFiles, checkpoint, bundle);
  if (Status status = copyFile(checkpoint, fs::path(bundle) / "config.json"); !status)
    return status.takeError();
  return std::vector<std::string>{"config.json"};
}

int64_t BundleFolder::codeBytes() const {
  const fs::path root(partial);
  int64_t bytes = 0;
  for (const fs::path &file : {root / "run", root / "program.so", root / "lib" / regexLibrary})
    bytes += codeBytesOf(file);
  for (const char *library : systemLibraries)
    bytes += codeBytesOf(locateLibrary(library));
  return bytes;
}

int64_t tokenizerBytes(const std::string &checkpoint) {
  // The runtime reads the first that is there.
  for (const char *name : {"tokenizer.json", "tiktoken.model"}) {
    std::error_code error;
    auto bytes = fs::file_size(fs::path(checkpoint) / name, error);
    if (!error)
      return static_cast<int64_t>(bytes);
  }
  return 0;
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
