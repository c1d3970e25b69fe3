//===- Objects.cpp - Compiles in child processes, keeps objects in a cache --------------------===//
//
// An object is what a code generator makes of a module: of the host's an object file, of a GPU's a text, and what ptxas
// makes of that.
//
// A child builds the module on its own context (the parent's thread pool does not survive fork), generates code and
// renames the finished object into place; it speaks to the parent through a pipe: nothing = done, text = the failure,
// behind a zero byte what to do.
//
// A cache folder that cannot be written is no obstacle: the object goes to the spare folder, and the child says why
// with status 0.
//
// An object of the cache is used when its bytes have the hash in the file beside it (KEY.o, KEY.o.sum): one that a full
// disk cut short or that lost a bit is compiled again.
//
//===----------------------------------------------------------------------===//
#include "Objects.h"
#include "Codegen.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace k2c {

namespace {

/// Where an object may be: in the cache, or in its stead; empty: there is no such folder.
struct Place {
  std::string name; ///< of the object: equal names, equal objects
  std::string cached, spare;
};

struct Child {
  size_t job;
  pid_t pid;
  int pipe;
  std::string text; ///< what it said so far
};

/// What KEY.o.sum holds.
std::string sumOf(llvm::StringRef object) {
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits({object.bytes_begin(), object.size()});
  return llvm::utohexstr(hash.high64, true, 16) + llvm::utohexstr(hash.low64, true, 16) + "\n";
}

bool isSound(const std::string &path) {
  if (!llvm::sys::fs::is_regular_file(path) || !llvm::sys::fs::is_regular_file(path + ".sum"))
    return false; // to open a fifo may take forever
  auto sum = llvm::MemoryBuffer::getFile(path + ".sum");
  auto object = llvm::MemoryBuffer::getFile(path);
  return sum && object && (*sum)->getBuffer() == sumOf((*object)->getBuffer());
}

/// The file appears whole or not at all.
std::error_code replaceFile(const std::string &path, llvm::StringRef bytes) {
  std::string temporary = path + "." + std::to_string(getpid());
  std::error_code error;
  {
    llvm::raw_fd_ostream file(temporary, error);
    if (!error) {
      file << bytes;
      file.close();
      error = file.error();
      file.clear_error();
    }
  }
  if (!error)
    error = llvm::sys::fs::rename(temporary, path);
  if (error)
    unlink(temporary.c_str());
  return error;
}

/// The object with its sum beside it, which comes last. Returns the reason, "" for success.
std::string keep(const std::string &path, const std::string &object) {
  std::error_code error = llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path));
  if (!error)
    error = replaceFile(path, object);
  if (!error)
    error = replaceFile(path + ".sum", sumOf(object));
  return error ? path + ": " + error.message() : "";
}

/// The path of the object that is there; "" for none.
std::string soundPath(const Place &place) {
  return isSound(place.cached) ? place.cached : isSound(place.spare) ? place.spare : "";
}

void writeAll(int file, llvm::StringRef text) {
  while (!text.empty()) {
    ssize_t n = write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return;
    text = text.drop_front(n);
  }
}

[[noreturn]] void leaveWith(int pipe, llvm::StringRef text, int status = 1) {
  writeAll(pipe, text);
  _exit(status);
}

void onFatalError(void *pipe, const char *reason, bool) {
  leaveWith(*static_cast<int *>(pipe), std::string("LLVM cannot compile it: ") + reason);
}

/// The child's whole life.
[[noreturn]] void compileInChild(const FileJob &job, const Place &place, int pipe) {
  llvm::remove_fatal_error_handler();
  llvm::install_fatal_error_handler(onFatalError, &pipe);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string diagnostics;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    diagnostics += (diagnostics.empty() ? "" : "; ") + diagnostic.str();
    return mlir::success();
  });
  Expected<std::string> object = job.make(context);
  if (!object) {
    std::string text = object.error().message; // empty: what MLIR has said
    if (text.empty() && diagnostics.empty())
      text = "no code could be emitted";
    text += (text.empty() || diagnostics.empty() ? "" : ": ") + diagnostics;
    leaveWith(pipe, text + '\0' + object.error().remedy);
  }
  const std::string refused = place.cached.empty() ? "" : keep(place.cached, *object);
  if (!place.cached.empty() && refused.empty())
    _exit(0);
  if (place.spare.empty())
    leaveWith(pipe, "cannot write " + refused);
  if (const std::string problem = keep(place.spare, *object); !problem.empty())
    leaveWith(pipe, "cannot write " + problem);
  leaveWith(pipe, refused, 0);
}

Expected<Child> startChild(size_t index, const FileJob &job, const Place &place) {
  int ends[2];
  if (pipe(ends) != 0)
    return Error{job.name, std::string("cannot make a pipe: ") + std::strerror(errno), ""};
  pid_t pid = fork();
  if (pid == 0) {
    // A child ends with its parent, and an interrupt is the parent's to report.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::signal(SIGINT, SIG_IGN);
    close(ends[0]);
    compileInChild(job, place, ends[1]);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return Error{job.name, std::string("cannot start a compiling process: ") + std::strerror(errno), ""};
  }
  return Child{index, pid, ends[0], ""};
}

/// Reads what the child says; true when it has finished, and `failure` says how, or `note` why the cache has nothing.
bool readChild(Child &child, const FileJob &job, Status &failure, std::string &note) {
  char buffer[4096];
  ssize_t n = read(child.pipe, buffer, sizeof buffer);
  if (n > 0) {
    child.text.append(buffer, n);
    return false;
  }
  if (n < 0 && errno == EINTR)
    return false;
  close(child.pipe);
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR)
    ;
  if (WIFSIGNALED(status))
    child.text = std::string("the compiling process was ended by signal ") + strsignal(WTERMSIG(status));
  else if (status != 0 && child.text.empty())
    child.text = "the compiling process ended with status " + std::to_string(WEXITSTATUS(status));
  if (status == 0 && !child.text.empty())
    note = child.text;
  else if (!child.text.empty()) {
    const auto [message, remedy] = llvm::StringRef(child.text).split('\0');
    failure = Error{job.name, message.str(), remedy.str()};
  }
  return true;
}

/// Waits until one of the children finishes and removes it.
Status waitForOne(std::vector<Child> &children, const std::vector<FileJob> &jobs, std::string &note) {
  while (true) {
    std::vector<pollfd> files;
    for (const Child &child : children)
      files.push_back({child.pipe, POLLIN, 0});
    poll(files.data(), files.size(), -1);
    for (size_t i = 0; i < files.size(); ++i) {
      Status result = Status::success();
      if (files[i].revents != 0 && readChild(children[i], jobs[children[i].job], result, note)) {
        children.erase(children.begin() + i);
        return result;
      }
    }
  }
}

} // namespace

std::string hashedName(const std::string &text, const std::string &suffix) {
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
  return llvm::utohexstr(hash.high64, true, 16) + llvm::utohexstr(hash.low64, true, 16) + suffix;
}

FileJob moduleJob(const ObjectJob &code, std::string file,
                  std::function<Expected<std::string>(mlir::ModuleOp)> generate) {
  return {code.name, std::move(file),
          [name = code.name, build = code.build,
           generate = std::move(generate)](mlir::MLIRContext &context) -> Expected<std::string> {
            mlir::OwningOpRef<mlir::ModuleOp> module = build(&context);
            if (!module)
              return Error{name, "", ""};
            return generate(*module);
          }};
}

std::string objectName(const ObjectJob &job, const HostTarget &target, const std::string &generator) {
  return hashedName(
      job.key + "\n" + target.cpu + "\n" + featureString(target) + "\n" LLVM_VERSION_STRING "\n" + generator, ".o");
}

std::string userCacheFolder() {
  if (std::optional<std::string> cache = llvm::sys::Process::GetEnv("XDG_CACHE_HOME");
      cache && llvm::sys::path::is_absolute(*cache))
    return *cache + "/k2c";
  std::optional<std::string> home = llvm::sys::Process::GetEnv("HOME");
  return home && !home->empty() ? *home + "/.cache/k2c" : "";
}

/// Places of the objects. `note`: why there is no cache, "" where there is one.
static std::vector<Place> placesOf(const std::vector<FileJob> &jobs, const ObjectOptions &options, std::string &note) {
  std::string dir = options.cacheDir.empty() ? userCacheFolder() : options.cacheDir;
  if (dir.empty())
    note = "neither XDG_CACHE_HOME nor HOME is set";
  std::vector<Place> places;
  for (const FileJob &job : jobs) {
    auto in = [&](const std::string &folder) { return folder.empty() ? "" : folder + "/" + job.file; };
    places.push_back({job.file, in(dir), in(options.spareDir)});
  }
  return places;
}

Expected<std::vector<std::string>> compileFiles(const std::vector<FileJob> &jobs, const ObjectOptions &options) {
  std::string note;
  const std::vector<Place> places = placesOf(jobs, options, note);
  size_t atOnce = options.jobs > 0 ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::string> started;
  std::vector<Child> children;
  Status failure;
  for (size_t i = 0; i < jobs.size() && failure; ++i) {
    const std::string &name = places[i].name;
    if (!soundPath(places[i]).empty() || std::find(started.begin(), started.end(), name) != started.end())
      continue;
    if (options.progress)
      options.progress(int64_t(i - children.size()), int64_t(jobs.size()));
    if (children.size() >= atOnce)
      failure = waitForOne(children, jobs, note);
    if (!failure)
      break;
    Expected<Child> child = startChild(i, jobs[i], places[i]);
    if (child)
      children.push_back(std::move(*child));
    else
      failure = child.takeError();
    started.push_back(name);
  }
  while (!children.empty()) {
    if (options.progress && failure)
      options.progress(int64_t(jobs.size() - children.size()), int64_t(jobs.size()));
    Status last = waitForOne(children, jobs, note);
    if (failure)
      failure = last;
  }
  if (!failure)
    return failure.takeError();
  if (options.progress)
    options.progress(int64_t(jobs.size()), int64_t(jobs.size()));
  if (options.note && !note.empty())
    options.note("compiled kernels are not kept for the next compile: " + note);
  std::vector<std::string> paths;
  for (size_t i = 0; i < places.size(); ++i) {
    paths.push_back(soundPath(places[i]));
    if (paths.back().empty())
      return Error{jobs[i].name, "its object was removed or changed while others were compiled",
                   "run the same command again"};
  }
  return paths;
}

Expected<std::vector<std::string>> compileObjects(const std::vector<ObjectJob> &jobs, const HostTarget &target,
                                                  const ObjectOptions &options) {
  std::vector<FileJob> files;
  for (const ObjectJob &job : jobs)
    files.push_back(moduleJob(job, objectName(job, target, codeGeneratorHash), [&](mlir::ModuleOp module) {
      return generateCode(module, target, job.name, CodeKind::Object);
    }));
  return compileFiles(files, options);
}

} // namespace k2c
