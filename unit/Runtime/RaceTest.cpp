// ThreadSanitizer sees what the barrier's orders are for: the barrier as it is has no report, and with any of them
// weakened it has one. Only in builds with K2C_INSTRUMENT=thread.
#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>

namespace {

struct Outcome {
  int exitCode;
  std::string text;
};

Outcome runProgram(const std::string &name) {
  FILE *pipe =
      ::popen(("TSAN_OPTIONS=exitcode=66:halt_on_error=1 " K2RT_RACE_FOLDER "/meet-" + name + " 2>&1").c_str(), "r");
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

void expectReport(const std::string &name) {
  const Outcome weak = runProgram(name);
  EXPECT_EQ(weak.exitCode, 66) << weak.text;
  EXPECT_NE(weak.text.find("WARNING: ThreadSanitizer: data race"), std::string::npos) << weak.text;
  EXPECT_NE(weak.text.find("Meet.cpp"), std::string::npos) << weak.text;
}

} // namespace

TEST(Race, TheBarrierOrdersWhatIsAroundIt) {
  const Outcome strong = runProgram("barrier");
  EXPECT_EQ(strong.exitCode, 0) << strong.text;
  EXPECT_EQ(strong.text, "");
}

TEST(Race, AnArrivalWithoutOrderIsReported) { expectReport("arrival"); }

TEST(Race, ALeaveWithoutOrderIsReported) { expectReport("leave"); }
