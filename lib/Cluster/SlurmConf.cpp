//===- SlurmConf.cpp - Slurm's topology.conf --------------------------------===//
//
// Lines of KEY=VALUE: SwitchName with Nodes or Switches, or BlockName with Nodes. LinkSpeed has no unit and Slurm does
// not use it; BlockSizes says how jobs are packed.
//
//===----------------------------------------------------------------------===//
#include "Importers.h"
#include "base/Utf8.h"

#include <cctype>
#include <sstream>

namespace k2c::cluster {

namespace {

constexpr size_t maxUnits = 65536;

std::string lower(std::string text) {
  for (char &c : text)
    c = char(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

class ConfReader {
public:
  explicit ConfReader(const std::string &file) : file(file) {}

  /// A line with its continuations, which begins in line `number`.
  Status read(const std::string &line, size_t number) {
    SlurmUnit unit;
    bool isUnit = false;
    for (const Word &word : wordsOf(line)) {
      std::string where = placeOf(file, number, word.column);
      size_t equals = word.text.find('=');
      if (equals == std::string::npos || equals + 1 == word.text.size())
        return Error{where, "'" + shortened(word.text) + "' is not KEY=VALUE", ""};
      std::string key = lower(word.text.substr(0, equals)), value = word.text.substr(equals + 1);
      if (key == "switchname" || key == "blockname") {
        if (isUnit || (!units.empty() && blocks != (key == "blockname")))
          return Error{where, isUnit ? "a second name in one line" : "switches and blocks in one file", ""};
        isUnit = true;
        blocks = key == "blockname";
        unit.name = value;
        unit.where = where;
      } else if (key == "nodes" || (key == "switches" && !blocks)) {
        Expected<std::vector<std::string>> list = expandHostList(value, where, names);
        if (!list)
          return list.takeError();
        (key == "nodes" ? unit.nodes : unit.children) = std::move(*list);
      } else if (key != "linkspeed" && key != "blocksizes") {
        return Error{where, "key '" + shortened(word.text.substr(0, equals)) + "' is not known",
                     "the keys are SwitchName, BlockName, Nodes, Switches, LinkSpeed, BlockSizes"};
      }
    }
    if (!isUnit && !(unit.nodes.empty() && unit.children.empty()))
      return Error{placeOf(file, number, 1), "nodes without SwitchName or BlockName", ""};
    if (isUnit)
      units.push_back(std::move(unit));
    if (units.size() > maxUnits)
      return Error{placeOf(file, number, 1), "more than " + std::to_string(maxUnits) + " switches", ""};
    return Status::success();
  }

  std::vector<SlurmUnit> units;
  bool blocks = false;

private:
  const std::string &file;
  size_t names = 0; // of the whole file
};

} // namespace

Expected<Topology> importSlurmConf(const std::string &text, const std::string &file, const Topology &like) {
  ConfReader reader(file);
  std::istringstream in(text);
  std::string line, joined;
  size_t number = 0, begin = 1;
  while (std::getline(in, line)) {
    ++number;
    if (joined.empty())
      begin = number;
    line.resize(std::min(line.size(), line.find('#')));
    size_t end = line.find_last_not_of(" \t\r");
    line.resize(end == std::string::npos ? 0 : end + 1);
    bool continues = !line.empty() && line.back() == '\\';
    if (continues)
      line.back() = ' ';
    joined += line;
    if (continues)
      continue;
    if (Status status = reader.read(joined, begin); !status)
      return status.takeError();
    joined.clear();
  }
  if (!joined.empty())
    return Error{placeOf(file, begin, 1), "the last line continues nowhere", ""};
  return reader.blocks ? topologyOfBlocks(reader.units, file, like) : topologyOfTree(reader.units, file, like);
}

} // namespace k2c::cluster
