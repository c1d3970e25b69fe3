//===- Console.cpp - What the commands print on stderr --------------------===//
#include "Commands.h"
#include "base/TimeLeft.h"
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <unistd.h>

using namespace k2c;

namespace {

/// Whether the last line of stderr is a bar.
std::atomic<bool> isBarShown = false;

} // namespace

void k2c::eraseBar() {
  if (isBarShown.exchange(false))
    (void)!write(STDERR_FILENO, "\r\033[K", 4);
}

std::function<void(const std::string &)> Console::note() const {
  if (quiet)
    return nullptr;
  return [](const std::string &text) {
    eraseBar();
    std::fprintf(stderr, "k2c: note: %s\n", text.c_str());
  };
}

std::function<void(const std::string &, int64_t, int64_t)> Console::bar() const {
  const bool always = progress == "always";
  if (quiet || progress == "never" || (!always && !isatty(STDERR_FILENO)))
    return nullptr;
  using Clock = std::chrono::steady_clock;
  struct State {
    std::mutex mutex;
    Clock::time_point start = Clock::now(), shown{}, stageStart{};
    std::string stage;
    int64_t first = 0; ///< done when the stage began: what an earlier try left
  };
  auto state = std::make_shared<State>();
  return [state, always](const std::string &stage, int64_t done, int64_t total) {
    std::lock_guard<std::mutex> lock(state->mutex);
    const Clock::time_point now = Clock::now();
    if (stage != state->stage) {
      state->stage = stage;
      state->stageStart = now;
      state->first = done;
    }
    if (total > 0 && done >= total)
      return eraseBar();
    if ((!always && now - state->start < std::chrono::seconds(2)) ||
        now - state->shown < std::chrono::milliseconds(100))
      return;
    state->shown = now;
    const int64_t percent = total > 0 ? done * 100 / total : 0;
    constexpr int width = 30;
    const int filled = int(percent * width / 100);
    const double elapsed = std::chrono::duration<double>(now - state->stageStart).count();
    std::fprintf(stderr, "\r\033[K%-10s [%.*s%*s] %3d %%%s", stage.c_str(), filled, "##############################",
                 width - filled, "", int(percent), timeLeft(state->first, done, total, elapsed).c_str());
    isBarShown = true;
  };
}

std::shared_ptr<Console> k2c::addConsole(CLI::App &command) {
  auto console = std::make_shared<Console>();
  command
      .add_option("--progress", console->progress,
                  "bars of work over two seconds: where stderr is a terminal, wherever it goes and at once, or none")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  command.add_flag("--quiet", console->quiet, "no bars and notes: results and errors alone");
  return console;
}
