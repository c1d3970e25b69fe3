//===- Published.cpp - published configurations by name -------------------===//

#include "EmbeddedFamilies.h"
#include "base/Utf8.h"
#include "k2c/Model/ModelSpec.h"
#include "k2c/Support/Join.h"

#include <algorithm>
#include <cctype>

using namespace k2c;

namespace {

/// Lower-case letters and digits of a name.
std::string simplified(const std::string &name) {
  std::string letters;
  for (char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

bool begins(const std::string &text, const std::string &with) { return text.compare(0, with.size(), with) == 0; }
bool ends(const std::string &text, const std::string &with) {
  return text.size() >= with.size() && text.compare(text.size() - with.size(), with.size(), with) == 0;
}

/// "llama405b" of "llama3.1405b": a beginning and an end.
bool abbreviates(const std::string &text, const std::string &with) {
  size_t head = 0;
  while (head < with.size() && head < text.size() && text[head] == with[head])
    ++head;
  return head >= 4 && head + 3 <= with.size() && with.size() < text.size() && ends(text, with.substr(head));
}

/// The configuration of which `name`, org/Name or org/Name-Variant of the Hugging Face hub, is a variant; "" for
/// others.
std::string ofHub(const std::string &name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos || slash == 0 || name.find('/', slash + 1) != std::string::npos)
    return "";
  std::string variant = name.substr(slash + 1) + "-";
  std::transform(variant.begin(), variant.end(), variant.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const EmbeddedFile &file : embeddedConfigs())
    if (begins(variant, std::string(file.name) + "-"))
      return file.name;
  return "";
}

/// Models of the same configuration under another name.
std::string sameAs(const std::string &wanted) {
  return wanted == "deepseekr1" || wanted == "r1" ? "deepseekv3" : wanted;
}

/// The configs whose simplified name passes the first test that any passes.
std::vector<const EmbeddedFile *> matches(const std::string &wanted) {
  using Test = bool (*)(const std::string &, const std::string &);
  std::vector<const EmbeddedFile *> found;
  for (Test test : {Test([](const std::string &a, const std::string &b) { return a == b; }), Test(begins), Test(ends),
                    Test(abbreviates)}) {
    for (const EmbeddedFile &file : embeddedConfigs())
      if (test(simplified(file.name), wanted))
        found.push_back(&file);
    if (!found.empty())
      break;
  }
  return found;
}

} // namespace

std::vector<std::string> k2c::publishedModels() {
  std::vector<std::string> names;
  for (const EmbeddedFile &file : embeddedConfigs())
    names.push_back(file.name);
  std::sort(names.begin(), names.end());
  return names;
}

bool k2c::isPublishedOnHub(const std::string &name) { return !ofHub(name).empty(); }

Expected<ModelSpec> k2c::loadPublishedModel(const std::string &name) {
  const std::string hub = ofHub(name), wanted = sameAs(simplified(hub.empty() ? name : hub));
  std::vector<const EmbeddedFile *> found;
  if (!wanted.empty())
    found = matches(wanted);
  if (found.size() != 1)
    return Error{"model '" + shortened(name) + "'",
                 found.empty() ? "is not a published configuration" : "could be several models",
                 "known: " + joined(publishedModels()) + "; or give the path of a config.json"};
  LoadOptions options;
  options.purpose = LoadPurpose::Plan;
  Expected<ModelSpec> spec =
      parseModelSpec(found[0]->text, std::string("configs/") + found[0]->name + "/config.json", options);
  if (spec)
    spec->name = found[0]->name;
  return spec;
}
