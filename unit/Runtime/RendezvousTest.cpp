// Ranks that meet through sockets of this host: threads here, processes elsewhere.
#include "transport/ucx/Rendezvous.h"
#include "transport/ucx/RendezvousMessages.h"
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace k2c;
using namespace k2c::runtime;

namespace {

/// A socket of this host: one that listens on a port that was free, or one that connects to it.
class LoopbackSocket {
public:
  LoopbackSocket() {
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place;
    EXPECT_EQ(::bind(descriptor, reinterpret_cast<sockaddr *>(&place), size), 0);
    EXPECT_EQ(::listen(descriptor, 1), 0);
    ::getsockname(descriptor, reinterpret_cast<sockaddr *>(&place), &size);
  }
  /// Connects, once somebody listens, and says `text`.
  LoopbackSocket(const std::string &port, const std::string &text) {
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    place.sin_port = ::htons(static_cast<uint16_t>(std::stoi(port)));
    while (::connect(descriptor, reinterpret_cast<sockaddr *>(&place), sizeof place) != 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  ~LoopbackSocket() { ::close(descriptor); }
  LoopbackSocket(const LoopbackSocket &) = delete;
  LoopbackSocket &operator=(const LoopbackSocket &) = delete;

  std::string port() const { return std::to_string(::ntohs(place.sin_port)); }
  /// Whether the other side has ended the connection, without a word.
  bool isDropped() const {
    char byte;
    return ::recv(descriptor, &byte, 1, 0) <= 0;
  }

private:
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place = {};
};

JobMember memberOf(int32_t rank, int32_t ranks, const std::string &port, double seconds = 20) {
  JobMember member;
  member.rank = rank;
  member.ranks = ranks;
  member.host = "127.0.0.1";
  member.port = port;
  member.token = "a job";
  member.limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  return member;
}

std::string freePort() { return LoopbackSocket().port(); }

/// What each of some ranks gets, as text: the addresses or the error.
std::vector<std::string> outcomes(const std::vector<JobMember> &members) {
  std::vector<std::string> said(members.size());
  std::vector<std::thread> ranks;
  for (size_t i = 0; i < members.size(); ++i)
    ranks.emplace_back([&, i] {
      Expected<std::vector<std::string>> met = meet(members[i], "address " + std::to_string(members[i].rank));
      if (!met)
        said[i] = met.error().text();
      for (size_t j = 0; met && j < met->size(); ++j)
        said[i] += (*met)[j] + ";";
    });
  for (std::thread &rank : ranks)
    rank.join();
  return said;
}

std::string remedy() {
  return "; start all ranks with the same MASTER_ADDR, MASTER_PORT and K2RT_JOB_TOKEN, or give them longer: "
         "--deadline S";
}

constexpr uint64_t token = 0x123456789abcdef0;

/// Reads a whole text in the pieces that the reader wants.
template <class Reader> Reading read(Reader &reader, const std::string &text) {
  Reading reading = Reading::unfinished;
  for (size_t at = 0; reading == Reading::unfinished;) {
    const std::string piece = text.substr(at, reader.wanted());
    if (piece.size() < reader.wanted())
      return reading;
    at += piece.size();
    reading = reader.take(piece);
  }
  return reading;
}

Reading readHello(const std::string &text) {
  HelloReader reader(token);
  return read(reader, text);
}

Reading readAnswer(const std::string &text, int32_t ranks = 2) {
  AnswerReader reader(token, ranks);
  return read(reader, text);
}

std::string changed(std::string text, size_t at, char byte) {
  text[at] = byte;
  return text;
}

} // namespace

TEST(RendezvousMessages, AreReadAsTheyWereWritten) {
  HelloReader hello(token);
  EXPECT_EQ(read(hello, helloText(token, 3, 4, "here")), Reading::finished);
  EXPECT_EQ(hello.rank, 3);
  EXPECT_EQ(hello.ranks, 4);
  EXPECT_EQ(hello.address, "here");
  AnswerReader answer(token, 2);
  EXPECT_EQ(read(answer, answerText(token, {"here", "there"})), Reading::finished);
  EXPECT_FALSE(answer.isRefusal);
  EXPECT_EQ(answer.parts, (std::vector<std::string>{"here", "there"}));
  AnswerReader refusal(token, 2);
  EXPECT_EQ(read(refusal, refusalText(token, std::string(2000, 'x'))), Reading::finished);
  EXPECT_TRUE(refusal.isRefusal);
  EXPECT_EQ(refusal.parts[0].size(), maxReasonBytes);
}

TEST(RendezvousMessages, AHelloIsOfTheJobOrForeign) {
  const std::string text = helloText(token, 1, 2, "here");
  EXPECT_EQ(readHello(text.substr(0, text.size() - 1)), Reading::unfinished);
  EXPECT_EQ(readHello(changed(text, 3, '2')), Reading::foreign);
  EXPECT_EQ(readHello(changed(text, 4, 1)), Reading::foreign);
  EXPECT_EQ(readHello(helloText(token + 1, 1, 2, "here")), Reading::foreign);
  for (const auto &[rank, ranks] : {std::pair(0, 2), {2, 2}, {-1, 2}, {1, 0}, {1, -1}})
    EXPECT_EQ(readHello(helloText(token, rank, ranks, "here")), Reading::foreign) << rank << " of " << ranks;
  EXPECT_EQ(readHello(helloText(token, 1, 2, "")), Reading::foreign);
  EXPECT_EQ(readHello(helloText(token, 1, 2, std::string(maxAddressBytes, 'x'))), Reading::finished);
  EXPECT_EQ(readHello(helloText(token, 1, 2, std::string(maxAddressBytes + 1, 'x'))), Reading::foreign);
}

TEST(RendezvousMessages, AnAnswerIsOfTheJobOrForeign) {
  const std::string text = answerText(token, {"here", "there"});
  EXPECT_EQ(readAnswer(text.substr(0, text.size() - 1)), Reading::unfinished);
  EXPECT_EQ(readAnswer(text, 3), Reading::foreign);
  EXPECT_EQ(readAnswer(changed(text, 4, 2)), Reading::foreign);
  EXPECT_EQ(readAnswer(answerText(token + 1, {"here", "there"})), Reading::foreign);
  EXPECT_EQ(readAnswer(answerText(token, {"here", ""})), Reading::foreign);
  EXPECT_EQ(readAnswer(answerText(token, {"here", std::string(maxAddressBytes + 1, 'x')})), Reading::foreign);
  EXPECT_EQ(readAnswer(changed(refusalText(token, "why"), 22, 127)), Reading::foreign);
  EXPECT_EQ(readAnswer(helloText(token, 1, 2, "here")), Reading::foreign);
}

TEST(Rendezvous, RanksFindEachOther) {
  const std::string port = freePort();
  for (const std::string &said : outcomes({memberOf(2, 3, port), memberOf(0, 3, port), memberOf(1, 3, port)}))
    EXPECT_EQ(said, "address 0;address 1;address 2;");
  EXPECT_EQ(outcomes({memberOf(0, 1, "none")}), std::vector<std::string>{"address 0;"});
}

TEST(Rendezvous, RanksThatDoNotComeAreNamed) {
  const std::string port = freePort();
  const std::string place = "rendezvous at 127.0.0.1:" + port + ": the deadline of ";
  const std::vector<std::string> said = outcomes({memberOf(0, 4, port, 0.5), memberOf(2, 4, port)});
  EXPECT_EQ(said[0], place + "0.5 s has passed: ranks 1 and 3 of 4 have not come" + remedy());
  EXPECT_EQ(said[1], "rank 0: " + said[0]);
  EXPECT_EQ(outcomes({memberOf(1, 2, port, 0.3)})[0],
            place + "0.3 s has passed: rank 0 does not listen there: Connection refused" + remedy());
}

TEST(Rendezvous, ANameMayBeUnknown) {
  for (int32_t rank : {0, 1}) {
    JobMember member = memberOf(rank, 2, "29500", 0.2);
    member.host = std::string(300, 'x'); // longer than any name: nobody is asked for it
    const std::string said = outcomes({member})[0];
    EXPECT_NE(said.find("0.2 s has passed: its name is unknown here: "), std::string::npos) << said;
  }
}

TEST(Rendezvous, AnotherTokenIsNoRankOfTheJob) {
  const std::string port = freePort();
  JobMember other = memberOf(1, 2, port, 0.6);
  other.token = "another job";
  const std::vector<std::string> said = outcomes({memberOf(0, 2, port, 1), other});
  EXPECT_NE(said[0].find("1 s has passed: rank 1 of 2 has not come"), std::string::npos) << said[0];
  EXPECT_NE(said[1].find("0.6 s has passed: who listens there is not of this job, or was told another token"),
            std::string::npos)
      << said[1];
}

TEST(Rendezvous, ARankComesOnce) {
  const std::string port = freePort();
  const std::vector<std::string> said = outcomes({memberOf(0, 3, port), memberOf(1, 3, port), memberOf(1, 3, port)});
  EXPECT_NE(said[0].find(": rank 1 has come twice, from 127.0.0.1:"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find(" and from 127.0.0.1:"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("; start each rank once; jobs that run beside each other need different MASTER_PORT"),
            std::string::npos)
      << said[0];
  EXPECT_EQ(said[1].substr(0, 24), "rank 0: rendezvous at 12");
}

TEST(Rendezvous, ARankThatHasLeftMayComeAgain) {
  const std::string port = freePort();
  std::vector<std::string> said;
  std::thread host([&] { said = outcomes({memberOf(0, 3, port)}); });
  const std::string early = outcomes({memberOf(1, 3, port, 0.4)})[0];
  EXPECT_NE(early.find("0.4 s has passed: rank 0 waits for other ranks;"), std::string::npos) << early;
  for (const std::string &late : outcomes({memberOf(1, 3, port), memberOf(2, 3, port)}))
    EXPECT_EQ(late, "address 0;address 1;address 2;");
  host.join();
  EXPECT_EQ(said[0], "address 0;address 1;address 2;");
}

TEST(Rendezvous, AllAreOfAsManyRanks) {
  const std::string port = freePort();
  const std::vector<std::string> said = outcomes({memberOf(0, 2, port), memberOf(1, 3, port)});
  EXPECT_NE(said[0].find(": rank 1 (127.0.0.1:"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find(") is of 3 ranks, rank 0 of 2; start all with one WORLD_SIZE"), std::string::npos) << said[0];
}

TEST(Rendezvous, StrangersHoldNobodyUp) {
  const std::string port = freePort();
  const Clock::time_point begin = Clock::now();
  std::vector<std::string> said;
  std::thread host([&] { said = outcomes({memberOf(0, 2, port)}); });
  std::vector<std::unique_ptr<LoopbackSocket>> strangers;
  for (int i = 0; i < 100; ++i)
    strangers.push_back(std::make_unique<LoopbackSocket>(port, i % 2 ? "" : "k2U1"));
  const LoopbackSocket web(port, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_TRUE(web.isDropped());
  EXPECT_TRUE(strangers[0]->isDropped()); // the oldest of a crowd
  EXPECT_EQ(outcomes({memberOf(1, 2, port)})[0], "address 0;address 1;");
  host.join();
  EXPECT_EQ(said[0], "address 0;address 1;");
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(4)); // before the time of any stranger is over
}

TEST(Rendezvous, APortMayBeTaken) {
  const LoopbackSocket taken;
  EXPECT_EQ(outcomes({memberOf(0, 2, taken.port())})[0],
            "rendezvous at 127.0.0.1:" + taken.port() +
                ": rank 0 cannot listen there, where MASTER_PORT chooses the port: Address already in use");
}

TEST(Rendezvous, AnAddressMayBeThatOfAServiceBeforeTheHost) {
  const std::string port = freePort();
  JobMember host = memberOf(0, 2, port);
  host.host = "192.0.2.1"; // of no host (RFC 5737)
  EXPECT_EQ(outcomes({host, memberOf(1, 2, port)})[0], "address 0;address 1;");
}

TEST(Rendezvous, AnAddressHasABound) {
  Expected<std::vector<std::string>> met = meet(memberOf(1, 2, "29500"), std::string(maxAddressBytes + 1, 'x'));
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().text(), "rendezvous at 127.0.0.1:29500: the address of UCX has 4097 bytes, more than 4096; "
                                "choose fewer devices: UCX_NET_DEVICES");
}
