// `run links` on bundles of the fake program: the lines of topology.yaml that it replaces, what it refuses, its ends.
#include "fake/FakeBundle.h"
#include "program/TopologyFile.h"
#include <filesystem>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;

namespace {

const char head[] = "k2topo: 1\nname: \"two\"\ndevice:\n  kind: cpu\n  cores: 1\n";

std::string tier(const std::string &name, int64_t count) {
  return "  - name: \"" + name + "\"\n    count: " + std::to_string(count) +
         "\n    link: \"ethernet\"\n    bandwidth: {value: 25 MB/s, source: \"assumed\"}\n"
         "    latency: {value: 100 us, source: \"assumed\"}\n    efficiency: {value: 1, source: \"nominal\"}\n";
}

std::string twoRanks() { return head + ("tiers:\n" + tier("network", 2)); }

std::string said(const std::string &text) {
  Expected<TopologyFile> file = TopologyFile::parse(text, "topology.yaml", 2);
  return file ? "" : file.error().text();
}

std::string changed(const std::string &from, const std::string &to) {
  std::string text = twoRanks();
  return text.replace(text.find(from), from.size(), to);
}

} // namespace

TEST(TopologyFile, NumbersOfTiersAreReplaced) {
  const std::string text = head + ("tiers:\n" + tier("no\\\"de", 2) + tier("network", 3)) + "nodes:\n  - \"a\"\n";
  Expected<TopologyFile> file = TopologyFile::parse(text, "topology.yaml", 6);
  ASSERT_TRUE(file) << file.error().text();
  ASSERT_EQ(file->tiers().size(), 2u);
  EXPECT_EQ(file->tiers()[0].name, "no\"de");
  EXPECT_EQ(file->tiers()[1].count, 3);
  EXPECT_EQ(file->with({{}, {}}), text);
  std::string network = tier("network", 3);
  network.replace(network.find("25 MB/s"), 7, "9 MB/s");
  network.replace(network.find("100 us"), 6, "7 us");
  network.replace(network.find("value: 1,"), 9, "value: 0.5,");
  EXPECT_EQ(file->with({{},
                        {"{value: 9 MB/s, source: \"assumed\"}", "{value: 7 us, source: \"assumed\"}",
                         "{value: 0.5, source: \"nominal\"}"}}),
            head + ("tiers:\n" + tier("no\\\"de", 2) + network) + "nodes:\n  - \"a\"\n");
}

TEST(TopologyFile, RefusesWhatNoCompilerWrites) {
  const auto line = [](int number, const std::string &text) {
    return "topology.yaml:" + std::to_string(number) + ": '" + text +
           "' is no line of a tier as k2c compile writes it; compile the bundle again";
  };
  EXPECT_EQ(said(twoRanks()), "");
  EXPECT_EQ(said(changed("    count: 2", "    count: 2x")), line(8, "    count: 2x"));
  EXPECT_EQ(said(changed("    count: 2", "    count: -2")), line(8, "    count: -2"));
  EXPECT_EQ(said(changed("    count: 2", "    count: 1048577")), line(8, "    count: 1048577"));
  EXPECT_EQ(said(changed("\"network\"", "network")), line(7, "  - name: network"));
  EXPECT_EQ(said(changed("\"network\"", "[\"network\"]")), line(7, "  - name: [\"network\"]"));
  EXPECT_EQ(said(changed("    link: ", "    lines: ")), line(9, "    lines: \"ethernet\""));
  EXPECT_EQ(said(head + std::string("tiers:\n    count: 2\n")), line(7, "    count: 2"));
  std::string nine = head + std::string("tiers:\n");
  for (int i = 0; i < 9; ++i)
    nine += tier("t" + std::to_string(i), 1);
  EXPECT_EQ(said(nine), line(6 + 8 * 6 + 1, "  - name: \"t8\""));
  const std::string lacks =
      "topology.yaml: tier network lacks its count, bandwidth, latency or efficiency; compile the bundle again";
  for (const char *key : {"    count: 2\n", "    latency: {value: 100 us, source: \"assumed\"}\n"})
    EXPECT_EQ(said(changed(key, "")), lacks);
  EXPECT_EQ(said(changed("count: 2", "count: 3")),
            "topology.yaml: has tiers of 3 ranks, the manifest says 2; compile the bundle again");
  EXPECT_EQ(said(""), "topology.yaml: has tiers of 1 ranks, the manifest says 2; compile the bundle again");
}

TEST(Links, WhatKeepsItFromMeasuring) {
  const FakeBundle one, several("fake_ranks2");
  const auto saying = [](const FakeBundle &fake, std::vector<std::string> words) {
    words.insert(words.begin(), "links");
    const Outcome outcome = runBundle(fake, words);
    EXPECT_EQ(outcome.exitCode, 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_EQ(saying(one, {"-o", "m.yaml"}),
            "run: error: links: the program has 1 rank, which has no links to others; compile it for a topology of "
            "several ranks\n");
  EXPECT_EQ(saying(several, {"-o", "m.yaml"}).find("run: error: " + several.folder + ": is of 2 ranks"), 0u);
  EXPECT_EQ(saying(several, {"-o", "m.yaml", "--transport", "local"}).find("run: error: " + several.folder), 0u)
      << "it has no topology.yaml";
  several.writeFile("topology.yaml", twoRanks());
  const std::string listed = several.path("manifest.json"), nowhere = several.path("none/m.yaml");
  EXPECT_EQ(saying(several, {"-o", listed, "--transport", "local"}),
            "run: error: -o " + listed + ": is a file of the bundle, which would be damaged; name another file\n");
  EXPECT_EQ(saying(several, {"-o", nowhere, "--transport", "local"}),
            "run: error: -o " + nowhere +
                ": cannot be written: No such file or directory; name a file in an existing "
                "folder\n");
}

TEST(Links, AnInterruptLeavesNoFile) {
  const FakeBundle fake("fake_ranks2");
  fake.writeFile("topology.yaml", twoRanks());
  const Outcome outcome = runBundle(fake, {"links", "-o", fake.path("m.yaml"), "--transport", "local"}, 150);
  EXPECT_EQ(outcome.exitCode, 130) << outcome.err;
  for (const auto &entry : std::filesystem::directory_iterator(fake.folder))
    EXPECT_NE(entry.path().filename().string().substr(0, 6), "m.yaml") << entry.path();
}
