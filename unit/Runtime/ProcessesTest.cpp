// Ranks that are processes, as the program `run` sees them: the first of them or another, over MPI libraries that tests
// play. What real ones do is for test/Cluster.
#include "fake/FakeBundle.h"
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace k2c;
using namespace k2c::runtime;

namespace {

/// A bundle of one rank, started by a launcher of MPICH, whose library is one of the fakes.
class Processes : public testing::Test {
protected:
  void TearDown() override { ::unsetenv("PMI_RANK"); }

  Outcome run(const std::string &library, std::vector<std::string> command, int interruptAfterMs = -1) {
    ::setenv("PMI_RANK", std::to_string(rank).c_str(), 1);
    std::ifstream file(std::string(K2RT_FAKE_MPI_FOLDER "/") + library + "/libk2rt-mpi-mpich.so", std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    bundle.writeFile("lib/libk2rt-mpi-mpich.so", bytes.str());
    command.insert(command.end(), {"--transport", "mpi", "--deadline", "0.3"});
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = runBundle(bundle, command, interruptAfterMs);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return outcome;
  }

  FakeBundle bundle;
  int rank = 0;
  double seconds = 0; ///< that the last run took
  const std::vector<std::string> logits = {"logits", "--prompt-ids", "1,2,3", "--json"};
};

} // namespace

TEST_F(Processes, ALibraryThatDoesNotFinishHoldsNothingUp) {
  const Outcome sound = run("sound", logits), hangs = run("finish-hangs", logits);
  EXPECT_EQ(sound.exitCode, 0) << sound.err;
  EXPECT_EQ(sound.err, "");
  EXPECT_EQ(hangs.exitCode, 0);
  EXPECT_EQ(hangs.out, sound.out);
  EXPECT_EQ(hangs.err, "run: note: rank 0: MPI_Finalize has not returned within the deadline of 0.3 s; the rank ends "
                       "without it\n");
  EXPECT_LT(seconds, 5);
}

TEST_F(Processes, AnInterruptEndsARankThatJoins) {
  const Outcome outcome = run("start-hangs", logits, 100);
  EXPECT_EQ(outcome.exitCode, 130) << outcome.err;
  EXPECT_LT(seconds, 5);
}

TEST_F(Processes, WhatFailsBeforeTheyMeetTheFirstSaysAtOnce) {
  const Outcome first = run("start", logits);
  EXPECT_EQ(first.exitCode, 3);
  EXPECT_EQ(first.err, "run: error: MPI_Init_thread: has failed: error 7\n");
  rank = 1;
  const Outcome other = run("start", logits);
  EXPECT_EQ(other.exitCode, first.exitCode);
  EXPECT_EQ(other.err, "run: error: rank 1: MPI_Init_thread: has failed: error 7\n");
  EXPECT_GT(seconds, 0.6) << "the first ends the job";
}

TEST_F(Processes, TheFirstAlonePrintsWhatABundleIs) {
  EXPECT_NE(run("sound", {"info"}).out, "");
  rank = 1;
  const Outcome other = run("sound", {"info"});
  EXPECT_EQ(other.exitCode, 0);
  EXPECT_EQ(other.out + other.err, "");
}
