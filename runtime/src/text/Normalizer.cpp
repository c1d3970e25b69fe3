// One function a step. utf8proc does not need its input terminated, and returns memory of its own.
#include "text/Normalizer.h"
#include "base/Utf8.h"
#include <algorithm>
#include <cstdlib>
#include <utf8proc.h>

namespace k2c::runtime {

namespace {

bool isAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return uint8_t(c) < 0x80; });
}

Status run(const ComposeStep &step, std::string &text) {
  // ASCII is in every form already.
  if (isAscii(text))
    return {};
  int options = UTF8PROC_STABLE;
  options |= step.form == ComposeStep::nfc || step.form == ComposeStep::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (step.form == ComposeStep::nfkc || step.form == ComposeStep::nfkd)
    options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t *mapped = nullptr;
  const utf8proc_ssize_t length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
                                               utf8proc_ssize_t(text.size()), &mapped, utf8proc_option_t(options));
  std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(mapped, &std::free);
  if (length < 0)
    return Error{K2RT_OUT_OF_MEMORY, "text", std::string("normalization: ") + utf8proc_errmsg(length), ""};
  text.assign(reinterpret_cast<char *>(mapped), size_t(length));
  return {};
}

Status run(const LowercaseStep &, std::string &text) {
  std::string lower;
  for (size_t at = 0; at < text.size();) {
    const std::string_view character = std::string_view(text).substr(at, utf8Step(text, at).length);
    at += character.size();
    const uint32_t codePoint = utf8CodePoint(character);
    utf8proc_uint8_t bytes[4];
    lower.append(reinterpret_cast<char *>(bytes),
                 size_t(utf8proc_encode_char(utf8proc_tolower(int32_t(codePoint)), bytes)));
    // The only character whose full mapping is longer than the simple one: U+0130, a capital I with a dot, keeps it.
    if (codePoint == 0x130)
      lower += utf8Encode(0x307);
  }
  text = std::move(lower);
  return {};
}

Status run(const PrependStep &step, std::string &text) {
  if (!text.empty())
    text.insert(0, step.content);
  return {};
}

Status run(const ReplaceStep &step, std::string &text) {
  Expected<std::string> replaced = step.pattern.replaceAll(text, step.content);
  if (!replaced)
    return replaced.takeError();
  text = std::move(*replaced);
  return {};
}

} // namespace

Status Normalizer::apply(std::string &text) const {
  for (const Step &step : steps)
    if (Status status = std::visit([&](const auto &which) { return run(which, text); }, step); !status)
      return status.takeError();
  return {};
}

} // namespace k2c::runtime
