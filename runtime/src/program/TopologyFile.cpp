// A line at a time: what a tier has is known from the beginnings of its lines.
#include "program/TopologyFile.h"
#include "base/Json.h"
#include "base/Utf8.h"
#include <algorithm>
#include <charconv>
#include <string_view>

namespace k2c::runtime {

static const char topologyFile[] = "topology.yaml";
static const char remedy[] = "compile the bundle again";
static constexpr int64_t maxTopologyBytes = int64_t(1) << 20;
static constexpr size_t maxTiers = 8;
static constexpr int64_t maxDevices = int64_t(1) << 20;
static constexpr std::string_view nameKey = "  - name: ", countKey = "    count: ", linkKey = "    link: ";
static constexpr std::array<std::string_view, 3> numberKeys = {"    bandwidth: ", "    latency: ", "    efficiency: "};

static bool begins(std::string_view line, std::string_view key) { return line.substr(0, key.size()) == key; }

Expected<TopologyFile> TopologyFile::read(const FileList &files, int64_t ranks) {
  Expected<std::string> text = files.text(topologyFile, maxTopologyBytes);
  return text ? parse(*text, files.folder() + "/" + topologyFile, ranks) : text.takeError();
}

/// A line of the tiers.
Status TopologyFile::addLine(const std::string &line, const std::string &place) {
  const auto wrong = [&] {
    return Error{K2RT_INVALID_BUNDLE, place + ":" + std::to_string(lines.size()),
                 "'" + shortened(line) + "' is no line of a tier as k2c compile writes it", remedy};
  };
  if (begins(line, nameKey)) {
    Expected<nlohmann::json> name = parseJsonValue(std::string_view(line).substr(nameKey.size()), place);
    if (!name || !name->is_string() || all.size() == maxTiers)
      return wrong();
    all.push_back({name->get<std::string>(), 0});
    places.emplace_back();
    return {};
  }
  if (all.empty())
    return wrong();
  if (begins(line, countKey)) {
    int64_t &count = all.back().count;
    const char *const end = line.data() + line.size();
    const auto [last, problem] = std::from_chars(line.data() + countKey.size(), end, count);
    return problem == std::errc() && last == end && count >= 1 && count <= maxDevices ? Status() : Status(wrong());
  }
  for (size_t key = 0; key < numberKeys.size(); ++key)
    if (begins(line, numberKeys[key])) {
      places.back()[key] = lines.size();
      return {};
    }
  return begins(line, linkKey) ? Status() : Status(wrong());
}

Status TopologyFile::check(const std::string &place, int64_t ranks) const {
  int64_t devices = 1;
  for (size_t tier = 0; tier < all.size(); ++tier) {
    const auto &own = places[tier];
    if (all[tier].count == 0 || std::count(own.begin(), own.end(), size_t(0)) > 0)
      return Error{K2RT_INVALID_BUNDLE, place,
                   "tier " + shortened(all[tier].name) + " lacks its count, bandwidth, latency or efficiency", remedy};
    devices = std::min(devices * all[tier].count, maxDevices);
  }
  if (devices == ranks)
    return {};
  return Error{K2RT_INVALID_BUNDLE, place,
               "has tiers of " + std::to_string(devices) + " ranks, the manifest says " + std::to_string(ranks),
               remedy};
}

Expected<TopologyFile> TopologyFile::parse(const std::string &text, const std::string &place, int64_t ranks) {
  TopologyFile file;
  bool isTier = false;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    isTier = isTier && begins(line, " ");
    file.lines.push_back(line);
    if (isTier)
      if (Status right = file.addLine(line, place); !right)
        return right.takeError();
    isTier = isTier || line == "tiers:";
  }
  if (Status right = file.check(place, ranks); !right)
    return right.takeError();
  return file;
}

std::string TopologyFile::with(const std::vector<TierNumbers> &numbers) const {
  std::vector<std::string> changed = lines;
  for (size_t tier = 0; tier < all.size(); ++tier) {
    const std::array<const std::string *, replacedKeys> values = {&numbers[tier].bandwidth, &numbers[tier].latency,
                                                                  &numbers[tier].efficiency};
    for (size_t key = 0; key < replacedKeys; ++key)
      if (!values[key]->empty())
        changed[places[tier][key] - 1] = std::string(numberKeys[key]) + *values[key];
  }
  std::string text;
  for (const std::string &line : changed)
    text += line + "\n";
  return text;
}

} // namespace k2c::runtime
