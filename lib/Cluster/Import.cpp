//===- Import.cpp - Which importer reads a file -----------------------------===//
#include "k2c/Cluster/Import.h"
#include "Importers.h"
#include "base/Json.h"

namespace k2c {

using namespace cluster;

namespace {

constexpr size_t maxBytes = size_t(4) << 20;

enum class Format { NcclXml, SlurmConf, SlurmYaml, NvidiaSmi, Unknown };

/// By the first line that is neither empty nor a comment.
Format formatOf(const std::string &text) {
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::vector<Word> words = wordsOf(text.substr(begin, end - begin));
    begin = end + 1;
    if (words.empty() || words[0].text[0] == '#' || words[0].text == "---")
      continue;
    const std::string &first = words[0].text;
    if (first[0] == '<')
      return Format::NcclXml;
    if (first[0] == '-' || first[0] == '[')
      return Format::SlurmYaml;
    if (first.find('=') != std::string::npos)
      return Format::SlurmConf;
    return first.find("GPU0") != std::string::npos ? Format::NvidiaSmi : Format::Unknown;
  }
  return Format::Unknown;
}

} // namespace

std::string cluster::placeOf(const std::string &file, size_t line, size_t column) {
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::vector<Word> cluster::wordsOf(const std::string &line) {
  std::vector<Word> words;
  for (size_t i = 0; i < line.size();) {
    size_t begin = line.find_first_not_of(" \t\r", i);
    if (begin == std::string::npos)
      break;
    i = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back({line.substr(begin, i - begin), begin + 1});
  }
  return words;
}

static Expected<Topology> importUnchecked(const std::string &text, const std::string &file,
                                          const std::optional<Topology> &like) {
  if (text.size() > maxBytes)
    return Error{
        file, "has " + std::to_string(text.size()) + " bytes, more than the " + std::to_string(maxBytes) + " accepted",
        ""};
  Format format = formatOf(text);
  if (format == Format::Unknown)
    return Error{file, "is in none of the formats that are imported",
                 "give NCCL's topology XML, Slurm's topology.conf or topology.yaml, or what nvidia-smi topo -m prints"};
  if (format == Format::NcclXml)
    return importNcclXml(text, file, like);
  if (!like)
    return Error{file, "does not say what the devices are", "name a topology with the same ones: --like 4x8-h100"};
  if (format == Format::NvidiaSmi)
    return importNvidiaSmi(text, file, *like);
  return format == Format::SlurmConf ? importSlurmConf(text, file, *like) : importSlurmYaml(text, file, *like);
}

Expected<Topology> importTopology(const std::string &text, const std::string &file,
                                  const std::optional<Topology> &like) {
  Expected<Topology> topology = importUnchecked(text, file, like);
  if (!topology)
    return topology;
  return parseTopology(printTopology(*topology), file + " as a topology"); // the bounds of every topology
}

Expected<Topology> importTopologyFile(const std::string &path, const std::string &like) {
  Expected<std::string> text = readTextFile(path, maxBytes);
  if (!text)
    return text.takeError();
  if (like.empty())
    return importTopology(*text, path, std::nullopt);
  Expected<Topology> known = loadTopology(like);
  if (!known)
    return known.takeError();
  return importTopology(*text, path, *known);
}

} // namespace k2c
