//===- Explain.cpp - k2c explain, k2c diff --------------------------------===//
#include "Commands.h"
#include "k2c/Pipelines/Compile.h"
#include <filesystem>
#include <iostream>

using namespace k2c;
using nlohmann::json;

namespace {

/// Decisions of one compile; a bundle's remarks are text of at most this size.
constexpr size_t maxRemarkBytes = size_t(64) << 20;

int explain(const std::string &bundle) {
  if (Status status = checkIsBundle(bundle); !status)
    return fail(status.error().text());
  Expected<std::string> text = readTextFile((std::filesystem::path(bundle) / "remarks.txt").string(), maxRemarkBytes);
  if (!text)
    return fail(text.error().text());
  std::cout << *text;
  return 0;
}

/// One line for each value that differs: pointer, left, right.
int diff(const std::string &left, const std::string &right) {
  Expected<JsonDocument> a = readManifest(left), b = readManifest(right);
  for (const Expected<JsonDocument> *manifest : {&a, &b})
    if (!*manifest)
      return fail(manifest->error().text());
  json x = a->root().flatten(), y = b->root().flatten();
  for (const auto &[key, value] : x.items())
    if (!y.contains(key))
      std::cout << key << ": " << value << " only in " << left << "\n";
    else if (y[key] != value)
      std::cout << key << ": " << value << " | " << y[key] << "\n";
  for (const auto &[key, value] : y.items())
    if (!x.contains(key))
      std::cout << key << ": " << value << " only in " << right << "\n";
  return 0;
}

} // namespace

void k2c::addExplain(CLI::App &app, std::function<int()> &run) {
  auto bundle = std::make_shared<std::string>(), other = std::make_shared<std::string>();
  CLI::App *e = app.add_subcommand("explain", "Why a bundle is what it is: every decision with its numbers");
  e->footer("example:\n  k2c explain out | grep absorb-mla");
  e->add_option("DIR", *bundle, "the bundle")->required();
  e->callback([=, &run] { run = [=] { return explain(*bundle); }; });
  CLI::App *d = app.add_subcommand("diff", "What differs between two bundles");
  d->footer("example:\n  k2c diff out-1 out-2");
  d->add_option("DIR", *bundle, "a bundle")->required();
  d->add_option("OTHER", *other, "another bundle")->required();
  d->callback([=, &run] { run = [=] { return diff(*bundle, *other); }; });
}
