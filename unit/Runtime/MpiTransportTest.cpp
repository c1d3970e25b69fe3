// The MPI transport over libraries that tests play: which one is opened, and that a refusal of each function is
// reported. What it carries is for the conformance suite, where MPI is installed (test/Runtime).
#include "transport/mpi/MpiTransport.h"
#include "exchange/Exchange.h"
#include <cstdlib>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;

namespace {

/// A process that a launcher of MPICH started.
class MpiTransport : public testing::Test {
protected:
  void SetUp() override {
    for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"})
      ::unsetenv(name);
    ::setenv("PMI_RANK", "0", 1);
  }
  void TearDown() override { ::unsetenv("PMI_RANK"); }

  /// What an all-gather of one rank and the end of its run say over the library in a folder of fakes.
  static std::string run(const std::string &fake, Clock::duration deadline = defaultDeadline) {
    const std::string folder = K2RT_FAKE_MPI_FOLDER "/" + fake;
    const auto maker = [&]() -> Expected<std::unique_ptr<Transport>> {
      Expected<std::string> library = mpiLibraryOfLauncher();
      return library ? openMpi(folder + "/" + *library) : library.takeError();
    };
    Expected<std::unique_ptr<Exchange>> exchange = Exchange::open(maker, deadline);
    if (!exchange)
      return exchange.error().text();
    Status closed = (*exchange)->close(); // a farewell to itself, too, is a message
    return closed ? "closed" : closed.error().text();
  }
};

} // namespace

TEST_F(MpiTransport, CarriesMessages) { EXPECT_EQ(run("sound"), "closed"); }

TEST_F(MpiTransport, WhatStartedTheProcessChoosesTheLibrary) {
  ::unsetenv("PMI_RANK");
  EXPECT_EQ(run("sound"), "transport mpi: no launcher of MPI has started this process; start it with DIR/launch.sh, "
                          "mpirun, or srun --mpi=pmix");
  ::setenv("PMIX_RANK", "0", 1);
  const std::string text = run("sound");
  EXPECT_NE(text.find("/sound/libk2rt-mpi-openmpi.so: cannot be opened: "), std::string::npos) << text;
  EXPECT_NE(text.find("; install the MPI library that it was built for (Debian: openmpi-bin, mpich)"),
            std::string::npos)
      << text;
  ::unsetenv("PMIX_RANK");
}

TEST_F(MpiTransport, AnotherVersionIsRefused) {
  EXPECT_NE(run("version").find("libk2rt-mpi-mpich.so: is not of this build of k2c; take both from one build"),
            std::string::npos);
}

TEST_F(MpiTransport, ALibraryThatDoesNotFinishIsLeftToItsThread) {
  EXPECT_EQ(run("finish-hangs", std::chrono::milliseconds(100)), "closed");
  EXPECT_TRUE(isMpiFinishing());
}

TEST_F(MpiTransport, RefusalsNameTheFunction) {
  EXPECT_EQ(run("start"), "MPI_Init_thread: has failed: error 7");
  EXPECT_EQ(run("send"), "MPI_Isend: has failed: error 7");
  EXPECT_EQ(run("receive"), "MPI_Irecv: has failed: error 7");
  EXPECT_EQ(run("test"), "MPI_Test: has failed: error 7");
  EXPECT_EQ(run("finish"), "MPI_Finalize: has failed: error 7");
}
