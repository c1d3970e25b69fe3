//===- Work.h - What a stream or a graph does -----------------------------===//
#ifndef K2C_LIB_EMULATEDDRIVER_WORK_H
#define K2C_LIB_EMULATEDDRIVER_WORK_H

#include "k2c/Ptx/Machine.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

namespace k2c::emulated {

/// A module that is loaded, for as long as something may launch its kernels.
struct Image;

struct Copy {
  enum class Direction : uint8_t { ToDevice, ToHost, OnDevice };

  Direction direction = Direction::OnDevice;
  uint64_t to = 0, from = 0;
  uint64_t bytes = 0;
  bool isPinned = true;          ///< the side of the host, of which it has to be known then
  std::vector<std::byte> staged; ///< what it copies, if it has been read already
};

struct Fill {
  uint64_t to = 0, bytes = 0;
  unsigned char value = 0;
};

struct KernelLaunch {
  std::shared_ptr<const Image> image;
  const ptx::Kernel *kernel = nullptr; ///< of the image
  ptx::Extent grid{}, block{}, cluster{};
  uint64_t sharedBytes = 0;
  std::vector<std::vector<std::byte>> parameters;
};

/// The time at which what was recorded is done.
struct Mark {
  uint64_t event = 0;
  uint64_t record = 0; ///< how often it had been recorded
};

/// Nothing; others wait for it.
struct Join {};

struct Work {
  uint64_t context = 0;
  std::variant<Join, Copy, Fill, KernelLaunch, Mark> body;
};

} // namespace k2c::emulated

#endif // K2C_LIB_EMULATEDDRIVER_WORK_H
