// The UCX transport over libraries that tests play: that a refusal of each function is reported. What it carries is for
// the conformance suite, where UCX is installed (test/Runtime).
#include "transport/ucx/UcxTransport.h"
#include "exchange/Exchange.h"
#include "transport/Job.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;

namespace {

/// What an all-gather of one rank and the end of its run say over the library in a folder of fakes.
std::string run(const std::string &fake) {
  const auto maker = [&] { return openUcx(K2RT_FAKE_UCX_FOLDER "/" + fake + "/" + ucxLibraryFile, JobMember()); };
  Expected<std::unique_ptr<Exchange>> exchange = Exchange::open(maker, defaultDeadline);
  if (!exchange)
    return exchange.error().text();
  EXPECT_TRUE(isInJob());
  Status closed = (*exchange)->close(); // a farewell to itself, too, is a message
  EXPECT_EQ(isInJob(), !closed);
  leaveJob(); // a process has one
  return closed ? "closed" : closed.error().text();
}

} // namespace

TEST(UcxTransport, CarriesMessages) { EXPECT_EQ(run("sound"), "closed"); }

TEST(UcxTransport, AnotherLibraryIsRefused) {
  EXPECT_NE(run("version").find("libk2rt-ucx.so: is not of this build of k2c; take both from one build"),
            std::string::npos);
  const std::string text = run("nowhere");
  EXPECT_NE(text.find("/nowhere/libk2rt-ucx.so: cannot be opened: "), std::string::npos) << text;
  EXPECT_NE(text.find("; install UCX (Debian: libucx0)"), std::string::npos) << text;
}

TEST(UcxTransport, RefusalsAreReported) {
  const std::string remedy = " has failed: error 7; UCX_TLS and UCX_NET_DEVICES choose what it uses";
  EXPECT_EQ(run("open"), "transport ucx: opening UCX" + remedy);
  EXPECT_EQ(run("connect"), "transport ucx: connecting to rank 0" + remedy);
  EXPECT_EQ(run("send"), "rank 0: a message from it or to it has failed: error 7");
  EXPECT_EQ(run("receive"), "transport ucx: a message from it or to it has failed: error 7");
  const std::string text = run("test"); // of whichever message is tested first behind the time for last words
  EXPECT_NE(text.find(": a message from it or to it has failed: error 7"), std::string::npos) << text;
  EXPECT_EQ(run("peer"), "rank 0: a message from it or to it has failed: error 7");
}
