//===- Links.h - What crosses between the processors of this machine ------===//
#ifndef K2C_LIB_CALIBRATE_LINKS_H
#define K2C_LIB_CALIBRATE_LINKS_H

#include "base/Error.h"
#include "k2c/Cluster/Calibration.h"
#include "k2c/Cluster/HostTiers.h"

namespace k2c::calibration {

/// Times of two processors that work on the same cache lines.
class LinkProbe {
public:
  enum class Access : uint8_t { Read, Write };

  virtual ~LinkProbe() = default;
  /// One way of a flag between `first` and `second`.
  virtual Expected<Seconds> latency(int first, int second) = 0;
  /// `first` reads, or writes over, `bytes` that `second` wrote last.
  virtual Expected<Seconds> transfer(int first, int second, Bytes bytes, Access access) = 0;
};

/// Threads pinned to the processors, timed at their fastest within `budget` for each number.
class ThreadLinkProbe : public LinkProbe {
public:
  explicit ThreadLinkProbe(Seconds budget) : budget(budget) {}
  /// Errors: a processor that this process may not use.
  Expected<Seconds> latency(int first, int second) override;
  Expected<Seconds> transfer(int first, int second, Bytes bytes, Access access) override;

private:
  Seconds budget;
};

/// The links of `tiers`: a flag, and sets from a cache line up to `largest`, which should exceed what one processor
/// caches for itself.
Expected<std::vector<LinkRates>> measureLinks(const std::vector<HostTier> &tiers, Bytes largest, LinkProbe &probe);

/// Of two measurements of the same links the faster numbers; `links` may be empty.
void keepFastest(std::vector<LinkRates> &links, const std::vector<LinkRates> &again);

} // namespace k2c::calibration

#endif // K2C_LIB_CALIBRATE_LINKS_H
