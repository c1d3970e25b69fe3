// Loading runs code of the bundle; everything around it is checked first (Bundle.cpp orders the steps).
#include "program/Program.h"
#include "base/File.h"
#include <cstring>
#include <dlfcn.h>

namespace k2c::runtime {

void Program::Closer::operator()(void *handle) const { ::dlclose(handle); }

static std::vector<std::string> split(const char *names) {
  std::vector<std::string> parts;
  if (!names || !*names)
    return parts;
  for (const char *begin = names;;) {
    const char *end = std::strchr(begin, '|');
    parts.emplace_back(begin, end ? end : begin + std::strlen(begin));
    if (!end)
      return parts;
    begin = end + 1;
  }
}

/// What the program says of its sites against the manifest: a quota is memory of the arena.
static Status checkCollectives(const k2rt_ir_program &facts, const Manifest &manifest, const std::string &path) {
  const auto *sites = static_cast<const k2rt_ir_collective *>(facts.collectives);
  for (size_t site = 0; site < manifest.ranks.collectives.size(); ++site) {
    const CollectiveFacts &wanted = manifest.ranks.collectives[site];
    const bool isKnown = sites && sites[site].op == wanted.op && sites[site].axis == wanted.axis &&
                         sites[site].to >= 0 && sites[site].to < facts.n_collectives;
    if (!isKnown || sites[site].quota != wanted.quotaRows || sites[site].row_bytes != wanted.rowBytes ||
        sites[site].members != wanted.members)
      return Error{K2RT_INVALID_BUNDLE, path,
                   "collective " + std::to_string(site) + " is another one than the manifest says, " +
                       std::to_string(wanted.quotaRows) + " rows of " + std::to_string(wanted.rowBytes) +
                       " bytes to each of " + std::to_string(wanted.members) + " ranks of group " + wanted.group,
                   "compile the bundle again"};
  }
  return {};
}

/// The program's own numbers against the manifest's: they were written by one compile or the bundle is a mixture.
static Status checkDescription(const k2rt_ir_program &facts, const Manifest &manifest, const std::string &path) {
  struct Pair {
    const char *what;
    int64_t program, manifest;
  };
  const Pair pairs[] = {
      {"arena_bytes", facts.arena_bytes, manifest.memory.arena},
      {"scratch_bytes", facts.scratch_bytes, manifest.memory.scratchPerWorker},
      {"n_planes", facts.n_planes, int64_t(manifest.planes.size())},
      {"n_groups", facts.n_groups, int64_t(manifest.groups.size())},
      {"n_kernels", facts.n_kernels, int64_t(manifest.kernels.size())},
      {"n_collectives", facts.n_collectives, int64_t(manifest.ranks.collectives.size())},
  };
  for (const Pair &pair : pairs)
    if (pair.program != pair.manifest)
      return Error{K2RT_INVALID_BUNDLE, path,
                   std::string(pair.what) + " is " + std::to_string(pair.program) + ", the manifest says " +
                       std::to_string(pair.manifest),
                   "compile the bundle again"};
  if (facts.n_weights < 0 || facts.n_entries < 1 || !facts.entry_names || !facts.entries ||
      (facts.n_kernels > 0 && !facts.kernel_names) ||
      (facts.n_weights > 0 && (!facts.slot_bytes || !facts.slot_experts || !facts.slot_parts)))
    return Error{K2RT_INVALID_BUNDLE, path, "has no entries, no kernel names or no sizes of weight slots",
                 "compile the bundle again"};
  return checkCollectives(facts, manifest, path);
}

Expected<Program> Program::load(const std::string &folder, const Manifest &manifest) {
  const std::string path = folder + "/" + programFile;
  {
    // Refuses links and what is no file; the loader itself would follow them.
    Expected<int64_t> bytes = bundleFileBytes(folder, programFile);
    if (!bytes)
      return bytes.takeError();
  }
  Program program;
  program.handle.reset(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!program.handle) {
    const char *reason = ::dlerror();
    return Error{K2RT_INVALID_BUNDLE, path, std::string("cannot be loaded: ") + (reason ? reason : "unknown reason"),
                 "compile the bundle again"};
  }
  auto query = reinterpret_cast<k2rt_ir_query_fn>(::dlsym(program.handle.get(), K2RT_PROGRAM_QUERY_NAME));
  if (!query)
    return Error{K2RT_INVALID_BUNDLE, path, "does not export " K2RT_PROGRAM_QUERY_NAME, "compile the bundle again"};
  program.facts = query(K2RT_ABI_VERSION);
  if (!program.facts || program.facts->abi != K2RT_ABI_VERSION)
    return Error{K2RT_INVALID_BUNDLE, path,
                 "has ABI " + (program.facts ? std::to_string(program.facts->abi) : "other") + ", this runtime has " +
                     std::to_string(K2RT_ABI_VERSION),
                 "compile the bundle again with this version of k2c"};
  Status agrees = checkDescription(*program.facts, manifest, path);
  if (!agrees)
    return agrees.takeError();
  for (const char *entry : {serveEntry, halvesEntry})
    if (!program.entry(entry) && (entry == serveEntry || manifest.ranks.halves.rows > 0))
      return Error{K2RT_INVALID_BUNDLE, path, std::string("has no entry '") + entry + "'", "compile the bundle again"};
  const auto *names = static_cast<const char *const *>(program.facts->variant_names);
  for (int32_t kernel = 0; kernel < program.facts->n_kernels; ++kernel)
    program.variants.push_back(split(names ? names[kernel] : nullptr));
  return program;
}

k2rt_ir_step_fn Program::entry(std::string_view name) const {
  const auto *names = static_cast<const char *const *>(facts->entry_names);
  const auto *functions = static_cast<const k2rt_ir_step_fn *>(facts->entries);
  for (int32_t i = 0; i < facts->n_entries; ++i)
    if (name == names[i])
      return functions[i];
  return nullptr;
}

const char *Program::kernelName(int32_t kernel) const {
  if (kernel < 0 || kernel >= facts->n_kernels)
    return "?";
  return static_cast<const char *const *>(facts->kernel_names)[kernel];
}

const std::string &Program::variantName(int32_t kernel, int32_t variant) const {
  static const std::string none;
  if (kernel < 0 || size_t(kernel) >= variants.size() || variant < 0 || size_t(variant) >= variants[kernel].size())
    return none;
  return variants[kernel][variant];
}

} // namespace k2c::runtime
