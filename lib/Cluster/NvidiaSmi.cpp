//===- NvidiaSmi.cpp - The matrix of nvidia-smi topo -m ---------------------===//
//
// A header of columns, a row for each GPU: X, NV# (links), or a path over PCIe. Rows of network adapters, affinities
// and the legend say nothing about links between GPUs.
//
//===----------------------------------------------------------------------===//
#include "Importers.h"
#include "base/Utf8.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace k2c::cluster {

namespace {

constexpr size_t maxGpus = 64;

/// Without the escape sequences that underline the header.
std::string plain(const std::string &line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\033') {
      out += line[i];
      continue;
    }
    while (i < line.size() && line[i] != 'm')
      ++i;
  }
  return out;
}

bool isGpu(const std::string &word, size_t index) { return word == "GPU" + std::to_string(index); }

/// NVLink count of a cell; 0 for a path over PCIe.
Expected<int64_t> linksOf(const Word &cell, const std::string &where) {
  for (const char *path : {"PIX", "PXB", "PHB", "NODE", "SYS"})
    if (cell.text == path)
      return int64_t(0);
  std::string digits = cell.text.substr(0, 2) == "NV" ? cell.text.substr(2) : "";
  bool number = !digits.empty() && digits.size() < 4 && digits.find_first_not_of("0123456789") == std::string::npos;
  int64_t links = number ? std::atoll(digits.c_str()) : 0;
  if (links < 1)
    return Error{where, "'" + shortened(cell.text) + "' is not a path between GPUs",
                 "cells are X, NV#, PIX, PXB, PHB, NODE or SYS"};
  return links;
}

int64_t capabilityOf(const std::string &arch) { // sm_90a: 90
  return arch.compare(0, 3, "sm_") == 0 ? std::atoll(arch.c_str() + 3) : 0;
}

/// The rows of a matrix of `gpus`; `line` counts from the header.
Expected<std::vector<std::vector<int64_t>>> readRows(std::istringstream &in, size_t gpus, size_t line,
                                                     const std::string &file) {
  std::vector<std::vector<int64_t>> counts;
  std::string text;
  while (counts.size() < gpus && std::getline(in, text)) {
    std::vector<Word> words = wordsOf(plain(text));
    size_t row = counts.size();
    ++line;
    if (words.empty() || !isGpu(words[0].text, row))
      return Error{placeOf(file, line, 1), "the row of GPU" + std::to_string(row) + " was expected", ""};
    if (words.size() < gpus + 1)
      return Error{
          placeOf(file, line, 1),
          "has " + std::to_string(words.size() - 1) + " cells, the header names " + std::to_string(gpus) + " GPUs", ""};
    counts.emplace_back(gpus);
    for (size_t j = 0; j < gpus; ++j) {
      const Word &cell = words[j + 1];
      std::string where = placeOf(file, line, cell.column);
      if ((cell.text == "X") != (j == row))
        return Error{where,
                     "'" + shortened(cell.text) + "' stands where GPU" + std::to_string(row) + " meets GPU" +
                         std::to_string(j),
                     "X marks a GPU and itself"};
      Expected<int64_t> links = j == row ? Expected<int64_t>(int64_t(0)) : linksOf(cell, where);
      if (!links)
        return links.takeError();
      counts[row][j] = *links;
      if (j < row && counts[j][row] != *links)
        return Error{where,
                     "GPU" + std::to_string(row) + " to GPU" + std::to_string(j) + " is '" + shortened(cell.text) +
                         "', the other way there are " + std::to_string(counts[j][row]) + " links",
                     ""};
    }
  }
  if (counts.size() < gpus)
    return Error{file, "ends after " + std::to_string(counts.size()) + " of " + std::to_string(gpus) + " rows", ""};
  return counts;
}

} // namespace

Expected<Topology> importNvidiaSmi(const std::string &text, const std::string &file, const Topology &like) {
  std::istringstream in(text);
  std::string header;
  size_t line = 0, gpus = 0;
  std::vector<Word> words;
  while (words.empty() && std::getline(in, header)) {
    words = wordsOf(plain(header));
    ++line;
  }
  while (gpus < words.size() && isGpu(words[gpus].text, gpus))
    ++gpus;
  if (gpus == 0 || gpus > maxGpus)
    return Error{placeOf(file, line, 1),
                 "the header names " + std::to_string(gpus) + " GPUs, must be 1 to " + std::to_string(maxGpus), ""};
  Expected<NvLinkRate> rate = nvLinkRate(capabilityOf(like.device.arch), "--like " + like.name);
  if (!rate)
    return rate.takeError();
  Expected<std::vector<std::vector<int64_t>>> counts = readRows(in, gpus, line, file);
  if (!counts)
    return counts.takeError();
  NodeLinks node{file, *rate, std::move(*counts), false};
  // More links to every other device than a device has: they all go through a switch.
  int64_t most = *std::max_element(node.counts[0].begin(), node.counts[0].end());
  node.switched = most * int64_t(gpus - 1) > rate->links;
  Expected<std::vector<Tier>> tiers = tiersOfNode(node);
  if (!tiers)
    return tiers.takeError();
  Topology topology;
  topology.name = "imported";
  topology.description = "from nvidia-smi topo -m; devices of " + like.name;
  topology.device = like.device;
  topology.tiers = std::move(*tiers);
  return topology;
}

} // namespace k2c::cluster
