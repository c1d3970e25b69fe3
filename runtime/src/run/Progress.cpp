// Rewrites one line with carriage return and erase; silent where nobody watches.
#include "run/Progress.h"
#include "base/TimeLeft.h"
#include "engine/Trace.h"
#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace k2c::runtime {

static constexpr int64_t quietNs = 2'000'000'000;
static constexpr int64_t betweenNs = 200'000'000;

Progress::Progress(std::string label, int64_t total)
    : label(std::move(label)), total(std::max<int64_t>(total, 1)), terminal(::isatty(STDERR_FILENO)),
      startNs(Trace::nowNs()) {}

void Progress::advance(int64_t tokens) {
  done += tokens;
  if (!terminal)
    return;
  const int64_t now = Trace::nowNs();
  if (firstNs == 0) {
    first = done;
    firstNs = now;
  }
  if (now - startNs < quietNs || now - shownNs < betweenNs)
    return;
  shownNs = now;
  std::fprintf(stderr, "\r\033[K%s %3d %% (%lld of %lld tokens)%s", label.c_str(),
               static_cast<int>(std::min<int64_t>(100, done * 100 / total)), static_cast<long long>(done),
               static_cast<long long>(total), timeLeft(first, done, total, double(now - firstNs) * 1e-9).c_str());
  std::fflush(stderr);
}

Progress::~Progress() {
  if (shownNs != 0)
    std::fputs("\r\033[K", stderr);
}

} // namespace k2c::runtime
