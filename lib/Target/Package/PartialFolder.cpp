//===- PartialFolder.cpp - DIR.partial becomes DIR --------------------------------------------===//
//
// A bundle is assembled in DIR.partial. Three rules keep everything that is not k2c's out of danger:
//
//   marker   DIR.partial/.k2c-partial says that the folder is k2c's own; a folder without it is never touched
//   lock     the marker is locked while a process works in the folder, also after it has become DIR, until the folder
//            that DIR was is removed: it lies at DIR.partial then, under a marker and a lock of its own
//   rename   DIR changes in one exchange; where the file system has none (NFS, FUSE), DIR steps aside first
//
// An interrupted compile leaves the folder to the next one, which keeps finished blobs only: they carry hashes.
//
//===----------------------------------------------------------------------===//
#include "k2c/Target/Package.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace fs = std::filesystem;

namespace k2c {

namespace {

constexpr const char *markerName = ".k2c-partial";

Error failure(const fs::path &where, const std::string &action, int code, const std::string &remedy = "") {
  return {where.string(), action + ": " + std::strerror(code), remedy};
}

bool isThere(const fs::path &path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

bool isBundle(const fs::path &folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "manifest.json", error) && fs::is_regular_file(folder / "program.so", error);
}

/// With what --emit ptx writes, and nothing else.
bool isPtxFolder(const fs::path &folder) {
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error))
    if (entry.path().filename() != "ptx" && entry.path().filename() != "cubin")
      return false;
  return fs::is_regular_file(folder / "ptx" / "index.json", error);
}

/// What a folder is called that has such contents, and whether one is of that kind.
const char *nameOf(FolderContents contents) {
  switch (contents) {
  case FolderContents::Bundle:
    return "k2c bundle";
  case FolderContents::Ptx:
    return "folder of --emit ptx";
  case FolderContents::Export:
    break;
  }
  return "folder of k2c export";
}

bool hasContents(const fs::path &folder, FolderContents contents) {
  std::error_code error;
  switch (contents) {
  case FolderContents::Bundle:
    return isBundle(folder);
  case FolderContents::Ptx:
    return isPtxFolder(folder);
  case FolderContents::Export:
    break;
  }
  return fs::is_regular_file(folder / exportFile, error);
}

bool isEmptyFolder(const fs::path &folder) {
  std::error_code error;
  return fs::is_directory(folder, error) && fs::is_empty(folder, error);
}

/// A folder that is another file system, or the root of all.
bool isMountPoint(const fs::path &folder) {
  struct stat own{}, parent{};
  if (::lstat(folder.c_str(), &own) != 0 || ::lstat((folder / "..").c_str(), &parent) != 0 || !S_ISDIR(own.st_mode))
    return false;
  return own.st_dev != parent.st_dev || own.st_ino == parent.st_ino;
}

/// Folders that replacing would pull from under someone. `output` is what the user wrote.
Status checkReplaceable(const fs::path &target, const std::string &output, bool force, FolderContents contents) {
  std::error_code error;
  if (!isThere(target))
    return {};
  if (isMountPoint(target))
    return Error{output, "is a mount point, which cannot be replaced", "name a folder inside it"};
  if (const char *home = std::getenv("HOME"); home && fs::equivalent(target, home, error))
    return Error{output, "is the home folder, which k2c does not replace", "name a folder inside it"};
  for (fs::path folder = fs::current_path(error); folder.has_relative_path(); folder = folder.parent_path())
    if (fs::equivalent(target, folder, error))
      return Error{output, "is or contains the working folder, which k2c does not replace",
                   "name another folder, or call k2c from elsewhere"};
  const bool isPtx = contents == FolderContents::Ptx;
  if (isPtx && fs::exists(target / "manifest.json", error))
    return Error{output, "is a bundle, whose kernels --emit ptx does not replace", "choose another folder"};
  if (!hasContents(target, contents) && !isEmptyFolder(target) && !force)
    return Error{output, std::string("exists and is not a ") + nameOf(contents),
                 "choose another folder, or replace it with --force"};
  return {};
}

/// Opens (creates) the marker of `folder` and locks it. None: another process holds it, or took it away meanwhile.
Expected<Descriptor> lockMarker(const fs::path &folder) {
  fs::path path = folder / markerName;
  Descriptor marker(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (marker.number < 0)
    return failure(path, "cannot be created", errno, "check space and permissions");
  struct stat info{};
  if (::flock(marker.number, LOCK_EX | LOCK_NB) == 0 && ::fstat(marker.number, &info) == 0 && info.st_nlink > 0)
    return marker;
  return Descriptor();
}

/// Creates the folder or makes sure that it is k2c's; locks it.
Expected<Descriptor> enter(const fs::path &partial, const std::string &output) {
  std::error_code error;
  fs::create_directories(partial.parent_path(), error);
  if (!error && ::mkdir(partial.c_str(), 0777) != 0 && errno != EEXIST)
    error = std::error_code(errno, std::generic_category());
  if (error)
    return Error{output, "cannot be created: " + error.message(), "name a folder where you may write"};
  bool isFolder = fs::symlink_status(partial, error).type() == fs::file_type::directory;
  bool isOurs = isFolder && (fs::is_empty(partial, error) ||
                             fs::symlink_status(partial / markerName, error).type() == fs::file_type::regular);
  if (!isOurs)
    return Error{partial.string(), "is in the way: k2c assembles its output there and did not make it",
                 "move it away, or choose another output folder"};
  Expected<Descriptor> marker = lockMarker(partial);
  if (marker && marker->number < 0)
    return Error{output, "another k2c is writing to it", "wait for it, or choose another output folder"};
  return marker;
}

/// Removes what an earlier compile left, but for the blobs and the list of their hashes.
Status clear(const fs::path &partial) {
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (const fs::directory_entry &entry : fs::directory_iterator(partial, error))
    if (entry.path().filename() != markerName &&
        (entry.path().filename() != "weights" || !entry.is_directory(error) || entry.is_symlink(error)))
      leftovers.push_back(entry.path());
  fs::create_directory(partial / "weights", error);
  for (const fs::directory_entry &entry : fs::directory_iterator(partial / "weights", error))
    if (entry.path().extension() != ".bin" && entry.path().filename() != "finished.txt")
      leftovers.push_back(entry.path());
  for (const fs::path &leftover : leftovers)
    if (fs::remove_all(leftover, error); error)
      return failure(leftover, "cannot be removed", error.value(), "check permissions");
  fs::create_directory(partial / "weights", error);
  if (error)
    return failure(partial / "weights", "cannot be created", error.value(), "check space and permissions");
  return {};
}

/// Removes a folder whose marker this process holds: the marker last, for another process may come meanwhile. A link is
/// removed, not followed.
void removeMarked(const fs::path &folder) {
  std::error_code error;
  if (fs::symlink_status(folder, error).type() != fs::file_type::directory) {
    fs::remove(folder, error);
    return;
  }
  std::vector<fs::path> entries;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error))
    if (entry.path().filename() != markerName)
      entries.push_back(entry.path());
  for (const fs::path &entry : entries)
    fs::remove_all(entry, error);
  fs::remove(folder / markerName, error);
  fs::remove(folder, error);
}

/// Brings the files that only a rename protects to the disk; blobs are there already.
Status flush(const fs::path &folder) {
  constexpr const char *message = "cannot be flushed to disk", *remedy = "check space and permissions";
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const bool isFlushed = entry->path().extension() != ".bin" && entry->is_regular_file(error);
    if (error)
      break;
    if (!isFlushed)
      continue;
    const Descriptor file(::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC));
    if (file.number < 0 || ::fsync(file.number) != 0)
      return failure(entry->path(), message, errno, remedy);
  }
  return error ? Status(failure(folder, message, error.value(), remedy)) : Status();
}

/// The way without an exchange: DIR is missing for a moment, and comes back when the second rename fails.
Status replaceInTwoSteps(const std::string &partial, const std::string &output) {
  std::string aside = output + ".replaced-" + std::to_string(::getpid());
  if (::rename(output.c_str(), aside.c_str()) != 0)
    return failure(output, "cannot be replaced", errno, "choose another output folder");
  if (::rename(partial.c_str(), output.c_str()) != 0) {
    int code = errno;
    (void)::rename(aside.c_str(), output.c_str());
    return failure(output, "cannot be replaced", code, "choose another output folder");
  }
  std::error_code error;
  fs::remove_all(aside, error);
  if (error)
    return failure(aside, "was replaced and cannot be removed", error.value(), "remove it");
  return {};
}

} // namespace

/// Error: `output` is the file or folder `source`, or one above it or, where it is a link, above what it leads to.
static Status checkKeepsSource(const std::string &output, const std::string &source) {
  std::error_code error;
  for (const fs::path &begin : {fs::path(source), fs::absolute(source, error).parent_path()})
    for (fs::path place = fs::canonical(begin, error); place.has_relative_path(); place = place.parent_path())
      if (fs::equivalent(output, place, error))
        return Error{output, "is or contains the source, which it would replace", "name another folder"};
  return {};
}

static const char *partialSuffix(FolderContents contents) {
  if (contents == FolderContents::Bundle)
    return ".partial";
  return contents == FolderContents::Ptx ? ".ptx.partial" : ".export.partial";
}

Expected<BundleFolder> BundleFolder::begin(const std::string &output, const std::string &source, bool force,
                                           FolderContents contents) {
  if (Status status = checkKeepsSource(output, source); !status)
    return status.takeError();
  fs::path target = fs::absolute(output).lexically_normal();
  if (!target.has_filename() && target.has_relative_path())
    target = target.parent_path();
  if (Status status = checkReplaceable(target, output, force, contents); !status)
    return status.takeError();
  BundleFolder bundle;
  bundle.output = target.string();
  bundle.partial = target.string() + partialSuffix(contents);
  Expected<Descriptor> marker = enter(bundle.partial, output);
  if (!marker)
    return marker.takeError();
  bundle.marker = std::move(*marker);
  if (Status status = clear(bundle.partial); !status)
    return status.takeError();
  std::error_code error;
  if (contents != FolderContents::Bundle)
    fs::remove_all(fs::path(bundle.partial) / "weights", error); // no others have blobs
  return bundle;
}

Error BundleFolder::abandon(Error error) const {
  std::error_code ignored;
  bool hasBlobs = false;
  for (const fs::directory_entry &entry : fs::directory_iterator(fs::path(partial) / "weights", ignored))
    hasBlobs |= entry.path().extension() == ".bin";
  if (!hasBlobs) {
    removeMarked(partial);
    return error;
  }
  error.remedy +=
      (error.remedy.empty() ? "" : "; ") + partial + " keeps the finished weights for the next compile into " + output;
  return error;
}

/// Swaps the new folder and what is there. False: the file system cannot. What DIR was lies at DIR.partial for a while:
/// marked and locked, so that another compile waits, and the next one removes it if this process dies.
static Expected<bool> exchange(const std::string &partial, const std::string &output) {
  std::error_code error;
  Descriptor replaced;
  if (fs::is_directory(fs::symlink_status(output, error))) {
    Expected<Descriptor> locked = lockMarker(output);
    if (!locked)
      return locked.takeError();
    replaced = std::move(*locked);
  }
  long result = ::syscall(SYS_renameat2, AT_FDCWD, partial.c_str(), AT_FDCWD, output.c_str(), RENAME_EXCHANGE);
  int code = errno;
  if (result == 0)
    removeMarked(partial);
  if (result == 0)
    return true;
  if (code == EINVAL || code == ENOSYS || code == EOPNOTSUPP)
    return false;
  return failure(output, "cannot be replaced", code, "choose another output folder");
}

Status BundleFolder::finish(bool canExchange) const {
  if (Status status = flush(partial); !status)
    return status;
  std::error_code error;
  if (!isThere(output) || (isEmptyFolder(output) && !fs::is_symlink(output, error))) {
    if (::rename(partial.c_str(), output.c_str()) != 0)
      return failure(output, "cannot be created", errno, "choose another output folder");
  } else {
    Expected<bool> exchanged = canExchange ? exchange(partial, output) : false;
    if (!exchanged)
      return exchanged.takeError();
    if (!*exchanged)
      if (Status status = replaceInTwoSteps(partial, output); !status)
        return status;
  }
  fs::remove(fs::path(output) / markerName, error);
  return {};
}

} // namespace k2c
