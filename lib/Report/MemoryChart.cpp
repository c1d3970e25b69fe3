//===- MemoryChart.cpp - What each rank holds -----------------------------===//
//
// A bar stands for ranks that hold the same. Its parts have the colour of their kind (weights blue, cache green,
// working memory orange, communication purple, training states red, reserve grey), darker for the larger ones; the
// legend has the largest size of each. What a bar sums to stands above it, so that it is seen on narrow pages, too.
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

/// Names in the order in which the ranks list them, with the most that a rank has of each.
std::vector<Key> keysOf(const ClusterPlan &plan, const std::map<std::string, std::string> &classes) {
  std::vector<std::string> names;
  std::map<std::string, Bytes> most;
  for (const RankMemory &ranks : plan.memory)
    for (const MemoryPart &part : ranks.parts) {
      if (!most.count(part.name))
        names.push_back(part.name);
      most[part.name] = std::max(most[part.name], part.bytes);
    }
  std::vector<Key> keys;
  for (const std::string &name : names)
    keys.push_back({classes.at(name), name + " " + format(most[name])});
  return keys;
}

constexpr double top = 4, pitch = 50, height = 24;

void drawBar(Svg &svg, const RankMemory &ranks, const std::map<std::string, std::string> &classes, const Scale &scale,
             const Unit &unit, double y) {
  const double capacity = double(ranks.capacity.value);
  svg.open("class=\"bar\" data-ranks=\"" + escapeHtml(ranks.ranks) + "\" data-count=\"" + std::to_string(ranks.count) +
           "\" data-total=\"" + std::to_string(ranks.total().value) + "\"");
  svg.text(0, y + 14, (ranks.count > 1 ? "each of ranks " : "rank ") + ranks.ranks, "strong");
  svg.text(100, y + 14,
           format(ranks.total()) + ", " + printShare(double(ranks.total().value) / capacity) +
               (ranks.fits() ? "" : ", too much"),
           ranks.fits() ? "" : "bad", "end");
  y += 20;
  double at = 0;
  for (const MemoryPart &part : ranks.parts) {
    const double begin = scale(at / unit.factor), width = scale((at + double(part.bytes.value)) / unit.factor) - begin;
    svg.rect(begin, y, width, height, "part " + classes.at(part.name),
             part.name + ": " + format(part.bytes) + ", " + printShare(double(part.bytes.value) / capacity) +
                 " of the device");
    // Fainter shades are too light for text on them.
    if (classes.at(part.name).rfind(" s0") != std::string::npos)
      svg.fitText(begin, y + 16, width, {part.name}, "inside");
    at += double(part.bytes.value);
  }
  const double limit = scale(capacity / unit.factor), end = scale(at / unit.factor);
  if (!ranks.fits())
    svg.rect(limit, y, end - limit, height, "over", format(ranks.total() - ranks.capacity) + " too much");
  if (capacity / unit.factor <= scale.high())
    svg.line(limit, y - 3, limit, y + height + 3, "capacity");
  svg.close();
}

} // namespace

std::string report::memoryChart(const ClusterPlan &plan) {
  if (plan.memory.empty())
    return "";
  double most = 1, capacity = 0;
  for (const RankMemory &ranks : plan.memory) {
    most = std::max(most, double(ranks.total().value));
    capacity = std::max(capacity, double(ranks.capacity.value));
  }
  // Of a device that is nearly empty, only what is used can be seen.
  if (capacity < 12 * most)
    most = std::max(most, capacity);
  const std::map<std::string, std::string> classes = colours(plan);
  const double bottom = top + pitch * double(plan.memory.size());
  const Unit unit = binaryBytes(most);
  Svg svg(bottom + 42, "Memory of the ranks by component");
  const Scale scale(0, most * 1.01 / unit.factor, 0, 100);
  drawAxisX(svg, scale, bottom, top, "memory of a rank", unit);
  for (size_t i = 0; i < plan.memory.size(); ++i)
    drawBar(svg, plan.memory[i], classes, scale, unit, top + pitch * double(i));
  std::vector<Key> keys = keysOf(plan, classes);
  if (capacity <= most)
    keys.push_back({"capacityKey", "memory of the device " + format(plan.fullest().capacity)});
  return svg.finish() + legend(keys);
}
