// Oniguruma by dlopen: the functions k2rt uses, looked up once per process.
#include "text/Regex.h"
#include "base/Utf8.h"
#include <dlfcn.h>
#include <oniguruma.h>
#include <unistd.h>

namespace k2c::runtime {

namespace {

constexpr const char *libraryName = "libonig.so.5";
constexpr unsigned long retryLimit = 10000000;

struct Oniguruma {
  decltype(&::onig_initialize) initialize = nullptr;
  decltype(&::onig_new) compile = nullptr;
  decltype(&::onig_free) release = nullptr;
  decltype(&::onig_search) search = nullptr;
  decltype(&::onig_region_new) newRegion = nullptr;
  decltype(&::onig_region_free) freeRegion = nullptr;
  decltype(&::onig_error_code_to_str) errorText = nullptr;
  decltype(&::onig_set_retry_limit_in_search) limitSearch = nullptr;
  OnigEncoding utf8 = nullptr;
  OnigSyntaxType **syntax = nullptr;
  std::string missing; ///< why the library cannot be used; empty: it can
};

template <class T> bool lookUp(void *library, const char *name, T &symbol) {
  symbol = reinterpret_cast<T>(dlsym(library, name));
  return symbol != nullptr;
}

Oniguruma openOniguruma() {
  Oniguruma onig;
  const std::string folder = executableFolder(), bundled = folder + "/" + bundledRegexLibrary;
  void *library = folder.empty() ? nullptr : dlopen(bundled.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    library = dlopen(libraryName, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    onig.missing = std::string(libraryName) + " is neither at " + bundled + " nor among the system's libraries";
    return onig;
  }
  const bool complete =
      lookUp(library, "onig_initialize", onig.initialize) && lookUp(library, "onig_new", onig.compile) &&
      lookUp(library, "onig_free", onig.release) && lookUp(library, "onig_search", onig.search) &&
      lookUp(library, "onig_region_new", onig.newRegion) && lookUp(library, "onig_region_free", onig.freeRegion) &&
      lookUp(library, "onig_error_code_to_str", onig.errorText) &&
      lookUp(library, "onig_set_retry_limit_in_search", onig.limitSearch) &&
      lookUp(library, "OnigEncodingUTF8", onig.utf8) && lookUp(library, "OnigDefaultSyntax", onig.syntax);
  if (!complete || onig.initialize(&onig.utf8, 1) != ONIG_NORMAL) {
    onig.missing = std::string(libraryName) + " is not Oniguruma 6.9.5 or newer";
    return onig;
  }
  onig.limitSearch(retryLimit);
  return onig;
}

const Oniguruma &oniguruma() {
  static const Oniguruma onig = openOniguruma();
  return onig;
}

const OnigUChar *bytesOf(std::string_view text) { return reinterpret_cast<const OnigUChar *>(text.data()); }

std::string errorText(int code, OnigErrorInfo *info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length = info ? oniguruma().errorText(text, code, info) : oniguruma().errorText(text, code);
  return std::string(reinterpret_cast<char *>(text), size_t(length));
}

} // namespace

std::string executableFolder() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0 || size_t(length) == sizeof path)
    return "";
  const std::string_view view(path, size_t(length));
  return std::string(view.substr(0, view.rfind('/')));
}

void Regex::Release::operator()(re_pattern_buffer *regex) const { oniguruma().release(regex); }

Expected<Regex> Regex::compile(std::string_view pattern, const std::string &place) {
  const Oniguruma &onig = oniguruma();
  if (!onig.missing.empty())
    return Error{K2RT_UNSUPPORTED, place, onig.missing, "install libonig5, or use token ids instead of text"};
  OnigRegex regex = nullptr;
  OnigErrorInfo info = {};
  const int code = onig.compile(&regex, bytesOf(pattern), bytesOf(pattern) + pattern.size(), ONIG_OPTION_NONE,
                                onig.utf8, *onig.syntax, &info);
  if (code != ONIG_NORMAL)
    return Error{K2RT_INVALID_BUNDLE, place, "not a valid pattern: " + shortened(errorText(code, &info), maxQuoted),
                 ""};
  return Regex(regex, place);
}

Status Regex::findAll(std::string_view text, std::vector<TextRange> &matches) const {
  const Oniguruma &onig = oniguruma();
  std::unique_ptr<OnigRegion, void (*)(OnigRegion *)> region(
      onig.newRegion(), [](OnigRegion *owned) { oniguruma().freeRegion(owned, 1); });
  const OnigUChar *begin = bytesOf(text), *end = begin + text.size();
  size_t from = 0, lastEnd = text.size() + 1;
  while (from <= text.size()) {
    const int found = onig.search(regex.get(), begin, end, begin + from, end, region.get(), ONIG_OPTION_NONE);
    if (found == ONIG_MISMATCH)
      break;
    if (found < 0)
      return Error{K2RT_INVALID_ARGUMENT, place, "the pattern gives up on this text: " + errorText(found, nullptr), ""};
    const TextRange match = {size_t(region->beg[0]), size_t(region->end[0])};
    from = match.end;
    if (match.begin == match.end && match.end == lastEnd) {
      from += from < text.size() ? utf8Step(text, from).length : 1;
      continue;
    }
    lastEnd = match.end;
    matches.push_back(match);
  }
  return {};
}

} // namespace k2c::runtime
