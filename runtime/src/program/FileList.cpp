// Sizes are compared first, of all files: one system call each. Hashes are asked for by those who read the file.
#include "program/FileList.h"
#include "base/File.h"
#include "base/Hash.h"
#include "base/JsonFields.h"
#include "base/Utf8.h"
#include <sys/stat.h>

namespace k2c::runtime {

static const char listFile[] = "files.json";
static const char runFile[] = "run";
static constexpr int64_t maxListBytes = int64_t(16) << 20;
static constexpr size_t maxFiles = 1 << 16;
static constexpr int64_t maxFileBytes = int64_t(1) << 46;
static const char remedy[] =
    "compile the bundle again, copy the whole folder, or repeat the k2c pack that was interrupted";

Expected<FileList> FileList::read(const std::string &folder) {
  Expected<std::string> text = readBundleFile(folder, listFile, maxListBytes);
  if (!text)
    return text.takeError();
  const auto readFiles = [&](const JsonFields &root) {
    root.integer("format", 1, 1);
    FileList list;
    list.root = folder;
    for (const JsonFields &entry : root.objects("files", maxFiles)) {
      const std::string &name = entry.string("file");
      const int64_t bytes = entry.integer("bytes", 0, maxFileBytes);
      const std::optional<uint64_t> hash = parseHash(entry.string("xxh3"));
      if (!isInsidePath(name))
        entry.fail("file", "is not a path inside the bundle");
      if (!hash)
        entry.fail("xxh3", "is not 16 hex digits");
      if (!list.files.emplace(name, Facts{bytes, *hash}).second)
        entry.fail("file", shortened(name) + " is listed twice");
    }
    return list;
  };
  return readJsonFields(*text, folder + "/" + listFile, readFiles, remedy);
}

Expected<FileList::Facts> FileList::factsOf(const std::string &file) const {
  if (const auto found = files.find(file); found != files.end())
    return found->second;
  return Error{K2RT_INVALID_BUNDLE, root + "/" + shortened(file), std::string("is not in ") + listFile, remedy};
}

Status FileList::checkListed(const std::string &file) const {
  Expected<Facts> facts = factsOf(file);
  return facts ? Status() : Status(facts.takeError());
}

uint64_t FileList::hashOf(const std::string &file) const {
  const auto found = files.find(file);
  return found == files.end() ? 0 : found->second.hash;
}

uint64_t FileList::hashBut(const std::set<std::string> &others) const {
  RunningHash running;
  for (const auto &[file, facts] : files) {
    if (others.count(file))
      continue;
    running.update(file.c_str(), file.size() + 1);
    running.update(&facts.bytes, sizeof facts.bytes);
    running.update(&facts.hash, sizeof facts.hash);
  }
  return running.value();
}

Status FileList::checkSizes() const {
  for (const auto &[file, facts] : files) {
    Expected<int64_t> bytes = bundleFileBytes(root, file);
    if (!bytes && !bundleFileExists(root, file))
      return Error{K2RT_INVALID_BUNDLE, root + "/" + shortened(file),
                   std::string("is missing, ") + listFile + " names it", remedy};
    if (!bytes)
      return bytes.takeError();
    if (*bytes != facts.bytes)
      return Error{K2RT_INVALID_BUNDLE, root + "/" + shortened(file),
                   "has " + std::to_string(*bytes) + " bytes, " + listFile + " says " + std::to_string(facts.bytes),
                   remedy};
  }
  return {};
}

Status FileList::compare(const std::string &file, int64_t bytes, uint64_t hash) const {
  Expected<Facts> facts = factsOf(file);
  if (!facts)
    return facts.takeError();
  if (bytes == facts->bytes && hash == facts->hash)
    return {};
  return Error{K2RT_INVALID_BUNDLE, root + "/" + shortened(file),
               "hashes to " + hashText(hash) + ", " + listFile + " says " + hashText(facts->hash), remedy};
}

Status FileList::checkHash(const std::string &file) const {
  RunningHash hash;
  Expected<int64_t> bytes =
      visitBundleFile(root, file, [&](const char *data, size_t count) { hash.update(data, count); });
  return bytes ? compare(file, *bytes, hash.value()) : Status(bytes.takeError());
}

Status FileList::checkHashesBut(const std::set<std::string> &others) const {
  for (const auto &[file, facts] : files)
    if (others.count(file) == 0)
      if (Status right = checkHash(file); !right)
        return right;
  return {};
}

Expected<std::string> FileList::text(const std::string &file, int64_t limitBytes) const {
  Expected<std::string> text = readBundleFile(root, file, limitBytes);
  if (!text)
    return text;
  if (Status right = compare(file, static_cast<int64_t>(text->size()), k2c::hashOf(text->data(), text->size())); !right)
    return right.takeError();
  return text;
}

Status checkOwnProgram(const std::string &folder) {
  struct stat own, listed;
  if (::stat("/proc/self/exe", &own) != 0 || ::stat((folder + "/" + runFile).c_str(), &listed) != 0 ||
      own.st_dev != listed.st_dev || own.st_ino != listed.st_ino)
    return {};
  Expected<FileList> list = FileList::read(folder);
  return list ? list->checkHash(runFile) : Status();
}

} // namespace k2c::runtime
