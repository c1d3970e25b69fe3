//===- MemoryChart.cpp - What each rank holds -----------------------------===//
//
// A bar stands for ranks that hold the same. Its parts have the colour of their kind (weights blue, cache green,
// working memory orange, communication purple, training states red, reserve grey), darker for the larger ones; the axis
// below is in GiB, the one above in GB.
//
//===----------------------------------------------------------------------===//

#include "Charts.h"

#include <algorithm>
#include <map>

using namespace k2c;
using namespace k2c::report;

namespace {

/// The kind of a part, by the words of its name.
const char *kindOf(const std::string &name) {
  static const std::pair<const char *, const char *> words[] = {
      {"reserve", "grey"},      {"fragmentation", "grey"}, {"cache", "green"},     {"communication", "purple"},
      {"dispatch", "purple"},   {"receive", "purple"},     {"gathered", "purple"}, {"collective", "purple"},
      {"optimizer", "red"},     {"gradient", "red"},       {"master", "red"},      {"moment", "red"},
      {"activation", "orange"}, {"logits", "orange"},      {"rows", "orange"},     {"padding", "orange"},
      {"buffer", "orange"},     {"scratch", "orange"},     {"arena", "orange"}};
  for (const auto &[word, kind] : words)
    if (name.find(word) != std::string::npos)
      return kind;
  return "blue";
}

/// Class of each part's name: the kind's colour, in the shade of its rank among the kind's largest.
std::map<std::string, std::string> colours(const ClusterPlan &plan) {
  std::map<std::string, int64_t> largest;
  for (const RankMemory &ranks : plan.memory)
    for (const MemoryPart &part : ranks.parts)
      largest[part.name] = std::max(largest[part.name], part.bytes.value);
  std::vector<std::pair<int64_t, std::string>> bySize;
  for (const auto &[name, bytes] : largest)
    bySize.push_back({-bytes, name});
  std::sort(bySize.begin(), bySize.end());
  std::map<std::string, int> used;
  std::map<std::string, std::string> classes;
  for (const auto &[bytes, name] : bySize) {
    const std::string kind = kindOf(name);
    classes[name] = kind + " s" + std::to_string(used[kind]++ % 6);
  }
  return classes;
}

/// Names in the order in which the ranks list them.
std::vector<Key> keysOf(const ClusterPlan &plan, const std::map<std::string, std::string> &classes) {
  std::vector<Key> keys;
  for (const RankMemory &ranks : plan.memory)
    for (const MemoryPart &part : ranks.parts)
      if (std::none_of(keys.begin(), keys.end(), [&](const Key &key) { return key.text == part.name; }))
        keys.push_back({classes.at(part.name), part.name});
  return keys;
}

constexpr double left = 150, right = chartWidth - 190, top = 40, pitch = 34;

void drawBar(Svg &svg, const RankMemory &ranks, const std::map<std::string, std::string> &classes, const Scale &scale,
             const Unit &unit, double y) {
  const double capacity = double(ranks.capacity.value);
  svg.open("class=\"bar\" data-ranks=\"" + escapeHtml(ranks.ranks) + "\" data-count=\"" + std::to_string(ranks.count) +
           "\" data-total=\"" + std::to_string(ranks.total().value) + "\"");
  svg.text(left - 8, y + 16, (ranks.count > 1 ? "ranks " : "rank ") + ranks.ranks, "", "end");
  double at = 0;
  for (const MemoryPart &part : ranks.parts) {
    const double begin = scale(at / unit.factor), end = scale((at + double(part.bytes.value)) / unit.factor);
    svg.rect(begin, y, end - begin, 22, "part " + classes.at(part.name),
             part.name + ": " + format(part.bytes) + ", " + printShare(double(part.bytes.value) / capacity) +
                 " of the device");
    at += double(part.bytes.value);
  }
  const double limit = scale(capacity / unit.factor), end = scale(at / unit.factor);
  if (!ranks.fits())
    svg.rect(limit, y, end - limit, 22, "over", format(ranks.total() - ranks.capacity) + " too much");
  if (capacity / unit.factor <= scale.high())
    svg.line(limit, y - 4, limit, y + 26, "capacity");
  const std::string share = printShare(at / capacity) + (ranks.fits() ? "" : ", too much") +
                            (capacity / unit.factor > scale.high() ? " of " + format(ranks.capacity) : "");
  svg.text(right + 12, y + 11, format(ranks.total()), ranks.fits() ? "" : "bad");
  svg.text(right + 12, y + 25, share + (ranks.count > 1 ? " on each of " + std::to_string(ranks.count) : ""), "tick");
  svg.close();
}

} // namespace

std::string report::memoryChart(const ClusterPlan &plan) {
  double most = 1, capacity = 0;
  for (const RankMemory &ranks : plan.memory) {
    most = std::max(most, double(ranks.total().value));
    capacity = std::max(capacity, double(ranks.capacity.value));
  }
  // Of a device that is nearly empty, only what is used can be seen.
  if (capacity < 12 * most)
    most = std::max(most, capacity);
  const std::map<std::string, std::string> classes = colours(plan);
  const double bottom = top + 12 + pitch * double(plan.memory.size());
  const Unit two = binaryBytes(most), ten = decimalBytes(most);
  Svg svg(chartWidth, bottom + 44, "Memory of the ranks by component");
  const Scale scale(0, most * 1.02 / two.factor, left, right), decimal(0, most * 1.02 / ten.factor, left, right);
  drawAxisX(svg, scale, bottom, top, "bytes of a rank", two);
  for (double tick : decimal.ticks()) {
    svg.line(decimal(tick), top - 4, decimal(tick), top, "axis");
    svg.text(decimal(tick), top - 9, printTick(tick), "tick", "middle");
  }
  svg.line(left, top, right, top, "axis");
  svg.text(right + 12, top - 9, ten.name, "label");
  for (size_t i = 0; i < plan.memory.size(); ++i)
    drawBar(svg, plan.memory[i], classes, scale, two, top + 10 + pitch * double(i));
  std::vector<Key> keys = keysOf(plan, classes);
  if (capacity <= most)
    keys.push_back({"capacityKey", "memory of the device"});
  return svg.finish() + legend(keys);
}
