//===- Settings.h - What the environment says of the driver ---------------===//
//
//   K2C_EMULATED_DEVICES=N            devices, 1 to 16; 1
//   K2C_EMULATED_MEMORY=BYTES         of a device; 141000000000
//   K2C_EMULATED_MULTIPROCESSORS=N    of a device, each of which runs one CTA at a time; 132
//   K2C_EMULATED_L2=BYTES             that a device states; 62914560
//   K2C_EMULATED_ARCH=sm_NN           of all devices; sm_90a
//   K2C_EMULATED_SEED=N               of what is drawn: which operation is next, which warp; 1
//   K2C_EMULATED_STRICT=0|1           whether races between threads are errors; 0
//   K2C_EMULATED_INSTRUCTIONS=N       of the warps of a launch, which then times out; 0: no limit
//   K2C_EMULATED_LATE_ALLOCATIONS=0|1 whether cuMemAlloc works behind the first launch of a graph; 0
//   K2C_EMULATED_FAIL=[NAME:]N[:ERROR] the N-th call, of entry point NAME or of all, fails; CUDA_ERROR_UNKNOWN
//   K2C_EMULATED_CALLS=FILE           where a report is written at exit, as JSON
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_EMULATEDDRIVER_SETTINGS_H
#define K2C_LIB_EMULATEDDRIVER_SETTINGS_H

#include "EntryPoints.h"
#include "base/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace k2c::emulated {

/// The target of a PTX text, or what a device is: sm_90a is 9, 0 and 'a'.
struct Arch {
  int major = 9, minor = 0;
  char suffix = 0; ///< 'a': of this one only; 'f': of its family; 0: of this one and all later ones

  /// none: `text` is no architecture.
  static std::optional<Arch> parse(std::string_view text);
  /// Whether a device that is this runs code for `target`.
  bool runs(const Arch &target) const;
};

/// A call that fails.
struct Failure {
  std::optional<Entry> entry; ///< none: of all entry points
  uint64_t call = 0;          ///< from 1 on; 0: none fails
  CUresult error = CUDA_ERROR_UNKNOWN;
};

struct Settings {
  uint32_t devices = 1;
  uint64_t memoryBytes = 141000000000;
  uint64_t multiprocessors = 132; ///< and blocks of a launch that are resident at a time, as on an H200
  uint64_t l2Bytes = 60 << 20;
  std::string archName = "sm_90a";
  Arch arch{9, 0, 'a'};
  uint64_t seed = 1;
  bool isStrict = false;
  uint64_t instructions = 0;
  bool allowsLateAllocations = false;
  Failure failure;
  std::string callsFile;

  /// Those of the environment; an error names the variable.
  static Expected<Settings> read();
};

} // namespace k2c::emulated

#endif // K2C_LIB_EMULATEDDRIVER_SETTINGS_H
