//===- ImportTest.cpp - Foreign descriptions, and how they are refused ----===//
#include "k2c/Cluster/Import.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

std::string errorOf(const std::string &text, const char *like = "4x8-h100") {
  Expected<Topology> topology = importTopology(text, "f", *loadTopology(like));
  return topology ? "" : topology.error().text();
}

std::string repeated(const std::string &text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i)
    out += text;
  return out;
}

/// What XML that is no topology is answered with.
const std::string remedy = "; give what NCCL_TOPO_DUMP_FILE wrote: elements and attributes";

/// Two GPUs with `link` in the first.
std::string twoGpus(const std::string &link, const std::string &sm = "90") {
  return "<system>\n<pci busid=\"1\"><gpu sm=\"90\">" + link + "</gpu></pci>\n<pci busid=\"2\"><gpu sm=\"" + sm +
         "\"/></pci>\n</system>";
}

} // namespace

TEST(Import, XmlThatGrowsOrReachesOutsideIsRefused) {
  EXPECT_EQ(errorOf("<?xml version=\"1.0\"?>\n<!DOCTYPE a [<!ENTITY b \"c\">]>\n<a/>"),
            "f:2:1: document types, CDATA and instructions are not accepted; write the values out");
  EXPECT_EQ(errorOf("<system a=\"&b;\"/>"), "f:1:9: entities are not accepted; write the value out");
  EXPECT_EQ(errorOf("<a><![CDATA[b]]></a>"),
            "f:1:4: document types, CDATA and instructions are not accepted; write the values out");
  EXPECT_EQ(errorOf("<a/><?b c?>"),
            "f:1:5: document types, CDATA and instructions are not accepted; write the values out");
  EXPECT_EQ(errorOf(repeated("<a>", 100000) + repeated("</a>", 100000)),
            "f:1:97: elements are nested deeper than 32 levels" + remedy);
  EXPECT_EQ(errorOf(repeated("<a>", 32) + repeated("</a>", 32)).find("f:1:1: the root is 'a'"), 0u);
  EXPECT_EQ(errorOf("<a>" + repeated("<b/>", 1000000) + "</a>"), "f:1:262144: more than 65536 elements" + remedy);
  EXPECT_EQ(errorOf("<a>" + repeated("<b/>", 65535) + "</a>").find("f:1:1: the root is 'a'"), 0u);
  std::string attributes;
  for (int i = 0; i < 33; ++i)
    attributes += " x" + std::to_string(i) + "='1'";
  EXPECT_EQ(errorOf("<a" + attributes + "/>"), "f:1:250: more than 32 attributes" + remedy);
  EXPECT_EQ(errorOf("<" + std::string(5 << 20, 'a')), "f: has 5242881 bytes, more than the 4194304 accepted");
}

TEST(Import, XmlIsStrict) {
  const std::string malformed = "not well-formed XML: ";
  EXPECT_EQ(errorOf("<a>\n <b>\n</a>"), "f:3:3: " + malformed + "Start-end tags mismatch" + remedy);
  EXPECT_EQ(errorOf("<a>\n <b/>"), "f:2:5: " + malformed + "Start-end tags mismatch" + remedy);
  EXPECT_EQ(errorOf("<a x=\"1\" x=\"2\"/>"), "f:1:10: attribute 'x' occurs twice" + remedy);
  EXPECT_EQ(errorOf("<a x=1/>"), "f:1:6: " + malformed + "Error parsing element attribute" + remedy);
  EXPECT_EQ(errorOf(std::string("<a>\n\0</a>", 10)), "f:2:1: a NUL byte" + remedy);
  EXPECT_EQ(errorOf("<a>text</a>").find("f:1:4: text is not accepted"), 0u);
  EXPECT_EQ(errorOf("<a/><b/>"), "f:1:5: a second root element" + remedy);
  EXPECT_EQ(errorOf("<!-- open"), "f:1:9: " + malformed + "Error parsing comment" + remedy);
}

TEST(Import, NcclMistakesHaveAPlace) {
  EXPECT_EQ(errorOf("<graphs/>"), "f:1:1: the root is 'graphs', not 'system'; give what NCCL_TOPO_DUMP_FILE wrote");
  EXPECT_EQ(errorOf("<system/>"), "f:1:1: has 0 gpu elements, must have 1 to 576");
  EXPECT_EQ(errorOf(twoGpus("", "100")), "f:3:16: sm is 100, of the first gpu 90; only equal devices are imported");
  EXPECT_EQ(errorOf(twoGpus("<nvlink target=\"9\" count=\"4\" tclass=\"0x030200\"/>")),
            "f:2:29: target '9' is not another GPU of the file");
  EXPECT_EQ(errorOf(twoGpus("<nvlink target=\"2\" count=\"4000\" tclass=\"0x030200\"/>")),
            "f:2:29: count is '4000', must be 1 to 64");
  EXPECT_EQ(errorOf("<system><gpu sm=\"75\"/></system>"),
            "f:1:9: compute capability 75 has no known NVLink rate; known are 70, 80, 90, 100");
  EXPECT_EQ(errorOf(twoGpus("<nvlink target=\"2\" count=\"4\" tclass=\"0x030200\"/>")),
            "f: GPU1 is in a group of 1, GPU0 in one of 2; only equal groups are imported");
}

TEST(Import, SmiMistakesHaveAPlace) {
  const std::string header = "\tGPU0\tGPU1\tCPU Affinity\n";
  EXPECT_EQ(errorOf(header + "GPU0\t X \tNV4\nGPU1\tNV4\tNV4\n"),
            "f:3:10: 'NV4' stands where GPU1 meets GPU1; X marks a GPU and itself");
  EXPECT_EQ(errorOf(header + "GPU0\t X \tNV4\nGPU1\tSYS\t X \n"),
            "f:3:6: GPU1 to GPU0 is 'SYS', the other way there are 4 links");
  EXPECT_EQ(errorOf(header + "GPU0\t X \tFOO\n"),
            "f:2:10: 'FOO' is not a path between GPUs; cells are X, NV#, PIX, PXB, PHB, NODE or SYS");
  EXPECT_EQ(errorOf(header + "GPU0\t X \tNV4\n"), "f: ends after 1 of 2 rows");
  EXPECT_EQ(errorOf(header + "GPU0\t X\n"), "f:2:1: has 1 cells, the header names 2 GPUs");
  EXPECT_EQ(errorOf(header, "cpu2x1"),
            "--like cpu2x1: compute capability 0 has no known NVLink rate; known are 70, 80, 90, 100");
}

TEST(Import, SlurmMistakesHaveAPlace) {
  EXPECT_EQ(errorOf("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n3\nSwitchName=c Switches=a,b\n"),
            "f:2:1: 'b' has 1 nodes, 'a' has 2 nodes; import a part whose units are equal");
  EXPECT_EQ(errorOf("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\n"),
            "f:2:1: 'b' and 'a' are not joined; define a switch over both");
  EXPECT_EQ(errorOf("SwitchName=a Switches=b\nSwitchName=b Switches=a\n"), "f:1:1: the switches form a circle");
  EXPECT_EQ(errorOf("SwitchName=r Nodes=n1\nSwitchName=a Switches=b\nSwitchName=b Switches=a\n"),
            "f: 2 switches form a circle");
  EXPECT_EQ(errorOf("SwitchName=a Switches=b\n"), "f:1:1: switch 'b' is not defined");
  EXPECT_EQ(errorOf("SwitchName=a Nodes=n1,n1\n"), "f:1:1: node 'n1' is named twice");
  EXPECT_EQ(errorOf("# c\nSwitchName=a Noods=n1\n").find("f:2:14: key 'Noods' is not known"), 0u);
  EXPECT_EQ(errorOf("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n"), "f:2:1: switches and blocks in one file");
  EXPECT_EQ(errorOf("SwitchName=a Nodes=n1 \\\n"), "f:1:1: the last line continues nowhere");
  EXPECT_EQ(errorOf("- topology: a\n  flat: true\n").find("f:1:3: has neither 'tree' nor 'block'"), 0u);
  EXPECT_EQ(errorOf("- topology: a\n  tree: {switches: [{nodes: n1}]}\n"), "f:2:21: lacks 'switch'");
}

TEST(Import, HostListsAreBounded) {
  auto nodes = [](const std::string &list) { return errorOf("SwitchName=a Nodes=" + list + "\n"); };
  EXPECT_EQ(nodes("n[01-03,7]x[1-2],m"), "");
  EXPECT_EQ(nodes("n[1-999999999]"), "f:1:14: more than 65536 names; write names as a[1-3,7],b");
  EXPECT_EQ(nodes("n[1-300][1-300]"), "f:1:14: more than 65536 names; write names as a[1-3,7],b");
  EXPECT_EQ(nodes("n[1-60000]\nSwitchName=b Nodes=m[1-60000]"), "f:2:14: more than 65536 names in the file");
  EXPECT_EQ(nodes("n[3-1]"), "f:1:14: range '3-1' descends; write names as a[1-3,7],b");
  EXPECT_EQ(nodes("n[1-"), "f:1:14: 'n[1-' has brackets without partner or within brackets");
  EXPECT_EQ(nodes("n[a-b]"), "f:1:14: 'a-b' is not a range of numbers; write names as a[1-3,7],b");
  EXPECT_EQ(nodes("a,,b"), "f:1:14: a name is empty; write names as a[1-3,7],b");
  EXPECT_EQ(nodes(std::string(256, 'a')), "");
  EXPECT_EQ(nodes(std::string(257, 'a')), "f:1:14: a name is longer than 256 characters; write names as a[1-3,7],b");
  EXPECT_EQ(nodes("n1,n!2"), "f:1:14: 'n!2' is not a name; write names as a[1-3,7],b");
}

TEST(Import, SlurmNodesHaveTheHostOfTheirLike) {
  const Topology like = *loadTopology("4x8-h100");
  Expected<Topology> topology = importTopology("BlockName=a Nodes=n[1-2]\n", "f", like);
  ASSERT_TRUE(topology) << topology.error().text();
  ASSERT_TRUE(topology->host);
  EXPECT_EQ(topology->host->memory.value, like.host->memory.value);
}

TEST(Import, HostListsKeepOrderAndZeros) {
  Expected<Topology> topology = importTopology("BlockName=a Nodes=n[08-10]x[1,3]\n", "f", *loadTopology("4x8-h100"));
  ASSERT_TRUE(topology) << topology.error().text();
  EXPECT_EQ(topology->nodeNames, (std::vector<std::string>{"n08x1", "n08x3", "n09x1", "n09x3", "n10x1", "n10x3"}));
  EXPECT_EQ(topology->ranks(), 48);
}
