//===- Published.cpp - published configurations by name -------------------===//

#include "EmbeddedFamilies.h"
#include "base/Utf8.h"
#include "k2c/Model/ModelSpec.h"
#include "k2c/Support/Join.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

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

/// Models of the same configuration under another name; nothing of them that is planned differs.
constexpr struct {
  const char *name, *config;
} sameModels[] = {{"deepseek-r1", "deepseek-v3"}, {"r1", "deepseek-v3"}, {"deepseek-v3.1", "deepseek-v3"}};

/// A name of the Hugging Face hub, org/Name or org/Name-Variant, and the configuration of which it is a variant.
struct HubName {
  std::string config;          ///< "": none
  std::set<std::string> words; ///< of the variant, lower case: of Name-AWQ-4bit "awq" and "4bit"
};

HubName ofHub(const std::string &name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos || slash == 0 || name.find('/', slash + 1) != std::string::npos)
    return {};
  std::string variant = name.substr(slash + 1) + "-";
  std::transform(variant.begin(), variant.end(), variant.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  auto read = [&](const std::string &known, const std::string &config) {
    if (!begins(variant, known + "-"))
      return HubName();
    HubName found{config, {}};
    std::istringstream in(variant.substr(known.size() + 1));
    for (std::string word; std::getline(in, word, '-');)
      found.words.insert(word);
    return found.words.count("distill") ? HubName() : found; // another, smaller model
  };
  for (const EmbeddedFile &file : embeddedConfigs())
    if (HubName found = read(file.name, file.name); !found.config.empty())
      return found;
  for (const auto &[known, config] : sameModels)
    if (HubName found = read(known, config); !found.config.empty())
      return found;
  return {};
}

std::string sameAs(const std::string &wanted) {
  for (const auto &[known, config] : sameModels)
    if (wanted == simplified(known))
      return simplified(config);
  return wanted;
}

/// How a variant's name says that its weights are stored, where `config` does not say so; "": it says nothing else.
std::string otherStorage(const HubName &hub, const std::string &config) {
  static const std::set<std::string> formats = {"fp8",  "bf16", "fp4",  "nvfp4", "mxfp4", "mxfp8", "awq",
                                                "gptq", "int4", "int8", "w4a16", "w8a8",  "w4a8",  "4bit",
                                                "8bit", "3bit", "6bit", "bnb",   "gguf",  "mlx",   "quantized"};
  const std::string method = "\"quant_method\": \"";
  for (const std::string &word : hub.words)
    if (formats.count(word) && config.find(method + word + "\"") == std::string::npos &&
        (word != "bf16" || config.find(method) != std::string::npos))
      return word;
  return "";
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

bool k2c::isPublishedOnHub(const std::string &name) { return !ofHub(name).config.empty(); }

Expected<ModelSpec> k2c::loadPublishedModel(const std::string &name) {
  const HubName hub = ofHub(name);
  const std::string wanted = sameAs(simplified(hub.config.empty() ? name : hub.config));
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
  if (!spec)
    return spec;
  if (const std::string stored = otherStorage(hub, found[0]->text); !stored.empty())
    return Error{"model '" + shortened(name) + "'",
                 "is stored as its name says, " + stored + ", and the built-in configuration of " + found[0]->name +
                     " is not",
                 "plan " + std::string(found[0]->name) + ", or give the path of its config.json"};
  spec->name = found[0]->name;
  return spec;
}
