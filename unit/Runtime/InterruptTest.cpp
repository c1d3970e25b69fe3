// DIR/run that is interrupted.
#include "fake/FakeBundle.h"
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

TEST(Interrupt, Is130AndLeavesATrace) {
  FakeBundle fake("fake_slow");
  const std::string path = fake.path("trace.json");
  const int startMs = K2RT_INSTRUMENTED ? 4000 : 300; // an interrupt before the first step leaves no trace
  const Outcome outcome = runBundle(
      fake, {"generate", "--prompt-ids", "1,2,3", "-n", "900", "--ignore-eos", "--json", "--trace", path}, startMs);
  EXPECT_EQ(outcome.exitCode, 130) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "");
  std::ifstream trace(path);
  EXPECT_TRUE(json::parse(trace, nullptr, false).contains("traceEvents"));
}

TEST(Interrupt, LeavesNoHoleInATraceThatWaitsForItsReader) {
  FakeBundle fake;
  const std::string path = fake.path("trace.json");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  const int interruptMs = K2RT_INSTRUMENTED ? 4000 : 1000; // by then the pipe is full
  std::string text;
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2 * interruptMs));
    ::fcntl(reader, F_SETFL, 0);
    char piece[4096];
    for (ssize_t got; (got = ::read(reader, piece, sizeof piece)) > 0;)
      text.append(piece, static_cast<size_t>(got));
  });
  const Outcome outcome = runBundle(
      fake, {"generate", "--prompt-ids", "1,2,3", "-n", "900", "--ignore-eos", "--json", "--trace", path}, interruptMs);
  late.join();
  ::close(reader);
  EXPECT_EQ(outcome.err, "");
  EXPECT_GT(text.size(), size_t(1) << 17) << "no more than a pipe holds";
  EXPECT_TRUE(json::parse(text, nullptr, false).contains("traceEvents"));
}
