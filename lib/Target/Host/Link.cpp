//===- Link.cpp - Objects -> one shared object by ld.lld ----------------------------------------===//
#include "k2c/Target/Host.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace k2c {

/// Ranks may be threads of one process: everything a program writes arrives by argument.
static Status checkNoWritableData(const std::string &path) {
  llvm::Expected<llvm::object::OwningBinary<llvm::object::ObjectFile>> file =
      llvm::object::ObjectFile::createObjectFile(path);
  if (!file)
    return Error{path, "is not an object file: " + llvm::toString(file.takeError()), "remove it from the object cache"};
  for (const llvm::object::SectionRef &section : file->getBinary()->sections()) {
    llvm::Expected<llvm::StringRef> name = section.getName();
    if (!name) {
      llvm::consumeError(name.takeError());
      continue;
    }
    llvm::object::ELFSectionRef elf(section);
    bool writable = (elf.getFlags() & llvm::ELF::SHF_WRITE) != 0 && section.getSize() > 0;
    if (writable && !name->starts_with(".data.rel.ro"))
      return Error{path, "section " + name->str() + " holds " + std::to_string(section.getSize()) + " writable bytes",
                   "generated code may have no writable globals"};
  }
  return Status::success();
}

static Status writeFile(const std::string &path, const std::string &text) {
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (!error) {
    file << text;
    file.close();
    error = file.error();
    file.clear_error();
  }
  return error ? Status(Error{path, "cannot write: " + error.message(), ""}) : Status::success();
}

Status linkShared(const std::vector<std::string> &objects, const std::vector<std::string> &exported,
                  const std::string &path) {
  llvm::ErrorOr<std::string> linker = llvm::sys::findProgramByName("ld.lld-22");
  if (!linker)
    return Error{"ld.lld-22", "is not on the PATH", "install the package lld-22"};
  for (const std::string &object : objects)
    if (Status status = checkNoWritableData(object); !status)
      return status;
  std::string script = path + ".exports", messages = path + ".log";
  std::string text = "{ global:";
  for (const std::string &symbol : exported)
    text += " " + symbol + ";";
  if (Status status = writeFile(script, text + " local: *; };\n"); !status)
    return status;
  std::vector<llvm::StringRef> arguments = {*linker,
                                            "-shared",
                                            "-z",
                                            "defs",
                                            "-z",
                                            "noexecstack",
                                            "-z",
                                            "now",
                                            "--gc-sections",
                                            "--build-id=none",
                                            "--hash-style=gnu",
                                            "--no-mmap-output-file", // a full disk is an error, not a SIGBUS
                                            "--version-script",
                                            script,
                                            "-o",
                                            path};
  arguments.insert(arguments.end(), objects.begin(), objects.end());
  std::string problem;
  int status = llvm::sys::ExecuteAndWait(*linker, arguments, std::nullopt, {llvm::StringRef(), messages, messages}, 0,
                                         0, &problem);
  std::string said = problem;
  if (auto log = llvm::MemoryBuffer::getFile(messages); log && status != 0)
    said += (*log)->getBuffer().rtrim().str();
  const bool isMute = status != 0 && said.find("error:") == std::string::npos;
  // Where a program has no room, what the linker says of it may have none.
  const Status room = isMute ? writeFile(script, std::string(1 << 20, '\n')) : Status::success();
  llvm::sys::fs::remove(script);
  llvm::sys::fs::remove(messages);
  if (!room)
    return room;
  if (isMute)
    return Error{path, "ld.lld-22 was ended by a signal", "check that its disk has space"};
  if (status != 0)
    return Error{path, "ld.lld-22 failed: " + said, ""};
  return Status::success();
}

} // namespace k2c
