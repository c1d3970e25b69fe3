//===- Console.cpp - What the commands print on stderr --------------------===//
#include "Commands.h"
#include <chrono>
#include <cstdio>
#include <mutex>
#include <unistd.h>

void k2c::printNote(const std::string &text) { std::fprintf(stderr, "k2c: note: %s\n", text.c_str()); }

std::function<void(const std::string &, int64_t, int64_t)> k2c::progressBar() {
  if (!isatty(STDERR_FILENO))
    return nullptr;
  using Clock = std::chrono::steady_clock;
  struct State {
    std::mutex mutex;
    Clock::time_point start = Clock::now(), shown{};
    bool visible = false;
  };
  auto state = std::make_shared<State>();
  return [state](const std::string &stage, int64_t done, int64_t total) {
    std::lock_guard<std::mutex> lock(state->mutex);
    Clock::time_point now = Clock::now();
    bool last = total > 0 && done >= total;
    if (now - state->start < std::chrono::seconds(2) || (!last && now - state->shown < std::chrono::milliseconds(100)))
      return;
    if (last && !state->visible)
      return;
    state->shown = now;
    state->visible = !last;
    constexpr int width = 30;
    int filled = total > 0 ? static_cast<int>(done * width / total) : 0;
    std::fprintf(stderr, "\r\033[K%-10s [%.*s%*s] %3d %%%s", stage.c_str(), filled, "##############################",
                 width - filled, "", total > 0 ? static_cast<int>(done * 100 / total) : 0, last ? "\n" : "");
  };
}
