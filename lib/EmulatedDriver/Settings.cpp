//===- Settings.cpp - What the environment says of the driver -------------===//
//
// A variable that is not set leaves its default, and one that is set has to be understood: what is misspelled would
// else be a test that tests nothing. Names of errors and of entry points are those of base/CudaErrors.def and
// base/CudaDriver.def.
//
//===----------------------------------------------------------------------===//
#include "Settings.h"
#include "base/Utf8.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <unistd.h>

namespace k2c::emulated {

namespace {

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

Error invalid(const char *name, const std::string &value, std::string remedy) {
  return {name, "is '" + shortened(value) + "'", std::move(remedy)};
}

/// A variable that begins as ours do and is none of them.
Status checkNames() {
  constexpr std::string_view prefix = "K2C_EMULATED_";
  constexpr std::string_view known[] = {"DEVICES", "MEMORY",       "MULTIPROCESSORS",  "L2",   "ARCH", "SEED",
                                        "STRICT",  "INSTRUCTIONS", "LATE_ALLOCATIONS", "FAIL", "CALLS"};
  for (char **variable = environ; *variable; ++variable) {
    const std::string_view text = *variable, name = text.substr(0, text.find('='));
    if (name.substr(0, prefix.size()) == prefix &&
        std::find(std::begin(known), std::end(known), name.substr(prefix.size())) == std::end(known))
      return Error{shortened(name), "there is no such variable", "docs/Emulator.md lists those that there are"};
  }
  return Status::success();
}

/// Sets `value` from the variable, which has to be a number of this range.
Status readNumber(const char *name, uint64_t min, uint64_t max, uint64_t &value) {
  const char *text = std::getenv(name);
  if (!text)
    return Status::success();
  const std::optional<uint64_t> read = number(text);
  if (!read || *read < min || *read > max)
    return invalid(name, text, "give a number from " + std::to_string(min) + " to " + std::to_string(max));
  value = *read;
  return Status::success();
}

std::optional<CUresult> errorNamed(std::string_view name) {
#define K2C_CUDA_ERROR(spelling, value, text)                                                                          \
  if (name == #spelling)                                                                                               \
    return spelling;
#include "base/CudaErrors.def"
  return std::nullopt;
}

/// [NAME:]N[:ERROR]
std::optional<Failure> parseFailure(std::string_view text) {
  Failure failure;
  const auto next = [&] {
    const std::string_view word = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    return word;
  };
  std::string_view word = next();
  if (const auto *found = std::find(std::begin(entryNames), std::end(entryNames), word);
      found != std::end(entryNames)) {
    failure.entry = static_cast<Entry>(found - entryNames);
    word = next();
  }
  const std::optional<uint64_t> call = number(word);
  if (!call || *call == 0)
    return std::nullopt;
  failure.call = *call;
  if (!text.empty()) {
    const std::optional<CUresult> error = errorNamed(text);
    if (!error || *error == CUDA_SUCCESS)
      return std::nullopt;
    failure.error = *error;
  }
  return failure;
}

} // namespace

const char *errorName(CUresult error) {
  switch (error) {
#define K2C_CUDA_ERROR(name, number, text)                                                                             \
  case name:                                                                                                           \
    return #name;
#include "base/CudaErrors.def"
  }
  return nullptr;
}

const char *errorText(CUresult error) {
  switch (error) {
#define K2C_CUDA_ERROR(name, number, text)                                                                             \
  case name:                                                                                                           \
    return text;
#include "base/CudaErrors.def"
  }
  return nullptr;
}

std::optional<Arch> Arch::parse(std::string_view text) {
  if (text.substr(0, 3) != "sm_")
    return std::nullopt;
  text.remove_prefix(3);
  Arch arch{0, 0, 0};
  if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) {
    arch.suffix = text.back();
    text.remove_suffix(1);
  }
  const std::optional<uint64_t> digits = number(text);
  if (!digits || *digits < 20 || *digits > 999)
    return std::nullopt;
  arch.major = static_cast<int>(*digits / 10);
  arch.minor = static_cast<int>(*digits % 10);
  return arch;
}

bool Arch::runs(const Arch &target) const {
  if (target.suffix == 'a')
    return suffix == 'a' && major == target.major && minor == target.minor;
  if (target.suffix == 'f')
    return major == target.major && minor >= target.minor;
  return major * 10 + minor >= target.major * 10 + target.minor;
}

Expected<Settings> Settings::read() {
  Settings settings;
  uint64_t devices = settings.devices, isStrict = 0, allowsLate = 0;
  for (Status status : {checkNames(), readNumber("K2C_EMULATED_DEVICES", 1, 16, devices),
                        readNumber("K2C_EMULATED_MEMORY", 1, uint64_t(1) << 50, settings.memoryBytes),
                        readNumber("K2C_EMULATED_MULTIPROCESSORS", 1, 1024, settings.multiprocessors),
                        readNumber("K2C_EMULATED_L2", 1, (uint64_t(1) << 31) - 1, settings.l2Bytes),
                        readNumber("K2C_EMULATED_SEED", 0, ~uint64_t(0), settings.seed),
                        readNumber("K2C_EMULATED_STRICT", 0, 1, isStrict),
                        readNumber("K2C_EMULATED_INSTRUCTIONS", 0, ~uint64_t(0), settings.instructions),
                        readNumber("K2C_EMULATED_LATE_ALLOCATIONS", 0, 1, allowsLate)})
    if (!status)
      return status.takeError();
  settings.devices = static_cast<uint32_t>(devices);
  settings.isStrict = isStrict != 0;
  settings.allowsLateAllocations = allowsLate != 0;
  if (const char *text = std::getenv("K2C_EMULATED_ARCH")) {
    const std::optional<Arch> arch = Arch::parse(text);
    if (!arch)
      return invalid("K2C_EMULATED_ARCH", text, "give an architecture of PTX, as sm_90a");
    settings.arch = *arch;
    settings.archName = text;
  }
  if (const char *text = std::getenv("K2C_EMULATED_FAIL")) {
    const std::optional<Failure> failure = parseFailure(text);
    if (!failure)
      return invalid("K2C_EMULATED_FAIL", text, "give [NAME:]N[:ERROR]: an entry point, a number from 1 on, an error");
    settings.failure = *failure;
  }
  if (const char *text = std::getenv("K2C_EMULATED_CALLS"))
    settings.callsFile = text;
  return settings;
}

} // namespace k2c::emulated
