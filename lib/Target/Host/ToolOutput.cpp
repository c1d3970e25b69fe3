//===- ToolOutput.cpp - Programs that are spawned, and what they say ---------------------===//
#include "ToolOutput.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

using llvm::StringRef;

namespace k2c {

Expected<MemoryFile> MemoryFile::create() {
  const int file = memfd_create("k2c", 0); // not closed by exec: programs that are spawned inherit it
  if (file < 0)
    return Error{"a file in memory", std::string("cannot be made: ") + std::strerror(errno), ""};
  return MemoryFile(file);
}

MemoryFile::MemoryFile(MemoryFile &&from) noexcept : file(std::exchange(from.file, -1)) {}

MemoryFile::~MemoryFile() {
  if (file >= 0)
    close(file);
}

std::string MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(file); }

std::string MemoryFile::bytes() const {
  auto text = llvm::MemoryBuffer::getFile(path(), /*IsText=*/false, /*RequiresNullTerminator=*/false);
  return text ? (*text)->getBuffer().str() : "";
}

/// Replaces the child by the program. Calls only what may be called between fork and exec.
[[noreturn]] static void become(const char *tool, char *const *arguments, int out, int messages) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(messages, STDERR_FILENO);
  execv(tool, arguments);
  const char *reason = strerrordesc_np(errno);
  (void)!write(STDERR_FILENO, reason, std::strlen(reason));
  _exit(127);
}

/// Why it is no success, "" for one.
static std::string problemOf(int status, StringRef said) {
  if (WIFSIGNALED(status))
    return std::string("ended by signal ") + strsignal(WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : said.empty() ? "exit code " + std::to_string(code) : said.str();
}

Expected<ToolOutput> runTool(const std::string &tool, std::vector<std::string> arguments, const std::string &place) {
  Expected<MemoryFile> out = MemoryFile::create();
  if (!out)
    return out.takeError();
  Expected<MemoryFile> messages = MemoryFile::create();
  if (!messages)
    return messages.takeError();
  arguments.insert(arguments.begin(), tool);
  std::vector<char *> words;
  for (std::string &argument : arguments)
    words.push_back(argument.data());
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0)
    become(tool.c_str(), words.data(), out->descriptor(), messages->descriptor());
  std::string problem = child < 0 ? std::strerror(errno) : "";
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  ToolOutput output{out->bytes(), messages->bytes()};
  if (child > 0)
    problem = problemOf(status, StringRef(output.messages).rtrim());
  if (!problem.empty())
    return Error{place, llvm::sys::path::filename(tool).str() + " failed: " + problem, ""};
  return output;
}

} // namespace k2c
