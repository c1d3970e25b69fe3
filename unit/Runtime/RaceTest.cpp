// ThreadSanitizer sees what the barrier's orders are for: the barrier as it is has no report, and with one of them
// weakened it has one: that of an arrival, of the last one's release, and of the loads by which a thread leaves, which
// spins or sleeps. The orders of `sleepers` keep wake-ups from being lost, which is no race. Only in builds with
// K2C_INSTRUMENT=thread.
#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>

namespace {

struct Outcome {
  int exitCode;
  std::string text;
};

/// meet-NAME, with an argument where `command` is "NAME ARGUMENT".
Outcome runProgram(const std::string &command) {
  const std::string program = "\"" K2RT_RACE_FOLDER "\"/meet-" + command;
  FILE *pipe = ::popen(("TSAN_OPTIONS=exitcode=66:halt_on_error=1 " + program + " 2>&1").c_str(), "r");
  Outcome outcome{-1, ""};
  if (!pipe)
    return outcome;
  char buffer[4096];
  while (size_t count = std::fread(buffer, 1, sizeof buffer, pipe))
    outcome.text.append(buffer, count);
  const int status = ::pclose(pipe);
  outcome.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

void expectReport(const std::string &command) {
  const Outcome weak = runProgram(command);
  EXPECT_EQ(weak.exitCode, 66) << weak.text;
  EXPECT_NE(weak.text.find("WARNING: ThreadSanitizer: data race"), std::string::npos) << weak.text;
  EXPECT_NE(weak.text.find("Meet.cpp"), std::string::npos) << weak.text;
}

} // namespace

TEST(Race, TheBarrierOrdersWhatIsAroundIt) {
  for (const char *command : {"barrier", "barrier asleep"}) {
    const Outcome strong = runProgram(command);
    EXPECT_EQ(strong.exitCode, 0) << command << ": " << strong.text;
    EXPECT_EQ(strong.text, "") << command;
  }
}

TEST(Race, AnArrivalWithoutOrderIsReported) { expectReport("arrival"); }

TEST(Race, ALeaveWithoutOrderIsReported) { expectReport("leave"); }

TEST(Race, AReleaseWithoutOrderIsReported) {
  expectReport("release");
  expectReport("release asleep");
}

TEST(Race, ASleepersLeaveWithoutOrderIsReported) { expectReport("wake asleep"); }
