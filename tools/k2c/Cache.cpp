//===- Cache.cpp - k2c cache ----------------------------------------------===//
#include "k2c/Pipelines/Cache.h"
#include "Commands.h"
#include "k2c/Support/Units.h"
#include <cstdio>
#include <memory>

namespace k2c {

static int list() {
  Expected<CacheListing> listing = listCache();
  if (!listing)
    return fail(listing.error());
  std::printf("%s\n", listing->folder.c_str());
  for (const CacheEntry &entry : listing->entries)
    std::printf("  %-16s  %22s  %s\n", entry.name.c_str(), format(Bytes(entry.bytes)).c_str(), entry.source.c_str());
  return 0;
}

static int removeEntry(const std::string &name) {
  Expected<int64_t> bytes = removeCached(name);
  if (!bytes)
    return fail(bytes.error());
  std::printf("removed %s\n", format(Bytes(*bytes)).c_str());
  return 0;
}

void addCache(CLI::App &app, std::function<int()> &run) {
  auto removed = std::make_shared<std::string>();
  CLI::App *c = app.add_subcommand("cache", "List or remove what k2c run and k2c compile have kept");
  c->footer("examples:\n  k2c cache\n  k2c cache --remove 3f09c2d1a7e4b865\n  k2c cache --remove all");
  c->add_option("--remove", *removed, "an entry's name, kernels, or all");
  c->callback([removed, &run] { run = [removed] { return removed->empty() ? list() : removeEntry(*removed); }; });
}

} // namespace k2c
