//===- Sentences.h - A bundle's decisions in sentences ---------------------===//
#ifndef K2C_TOOLS_K2C_SENTENCES_H
#define K2C_TOOLS_K2C_SENTENCES_H

#include "base/Error.h"
#include "base/Json.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace k2c {

/// A line of a bundle's remarks.txt: "[pass] text {metric = number, ...}".
struct RemarkLine {
  std::string pass, text;
  std::map<std::string, double> metrics;
};

/// Lines of another shape are left out. Error: a metric that is no finite number; `file` is where `text` is from.
Expected<std::vector<RemarkLine>> readRemarks(const std::string &text, const std::string &file);

/// The same for programs.
nlohmann::ordered_json toJson(const RemarkLine &remark);

/// What the compiler decided of one thing, and why.
struct Sentence {
  std::string about, text;
  int64_t bytes = 0; ///< that it decides: of memory, or moved by the kernels it is about in a step of one token
};

/// One for each thing that was decided, by falling bytes. Throws json::exception where a manifest is not one.
std::vector<Sentence> sentencesOf(const nlohmann::json &manifest, const std::vector<RemarkLine> &remarks);

} // namespace k2c

#endif // K2C_TOOLS_K2C_SENTENCES_H
