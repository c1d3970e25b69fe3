// A progress line on the terminal for work over two seconds.
#ifndef K2RT_RUN_PROGRESS_H
#define K2RT_RUN_PROGRESS_H

#include <cstdint>
#include <string>

namespace k2c::runtime {

/// Shows "label 12 % (480 of 4096 tokens), about 4 min left" on stderr once two seconds have passed, when stderr is a
/// terminal. What is left is reckoned from the first tokens on, whose prompt may have taken long. The line is wiped at
/// the end.
class Progress {
public:
  Progress(std::string label, int64_t total);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;
  void advance(int64_t tokens);

private:
  const std::string label;
  const int64_t total;
  const bool terminal;
  const int64_t startNs;
  int64_t done = 0, shownNs = 0;
  int64_t first = 0, firstNs = 0; ///< what was done first, and when
};

} // namespace k2c::runtime

#endif
