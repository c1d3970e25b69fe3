//===- Calibration.cpp - The `measured` part of a topology file -----------===//
//
// The rates that k2c calibrate measured are read and printed here, by one table of kernel kinds, so that the file
// which one side writes is what the other accepts:
//
//   teams:
//     - workers: 16
//       launch: 2 us
//       kernels:
//         - {kind: linear, x: bf16, depth: 4096, rows: [1, 8], near: [60 GFLOP/s, 300 GFLOP/s]}
//
// The kind says the unit of a rate: FLOP/s of contractions and attention, bytes/s of all others. `near` is measured
// with the operands in the nearest caches, `memory`, which may be left out, from memory. Rates are interpolated
// between row counts and between sizes: both must ascend, and a kernel may occur once for (kind, x, w, depth).
//
//===----------------------------------------------------------------------===//
#include "k2c/Cluster/Calibration.h"

#include "Mapping.h"
#include "PrintCalibration.h"
#include "base/Utf8.h"
#include "k2c/Support/Join.h"
#include <algorithm>

namespace k2c {

using namespace cluster;

const std::vector<KernelKind> &kernelKinds() {
  static const std::vector<KernelKind> kinds = {
      {"linear", RateUnit::Flops},   {"gqa", RateUnit::Flops},       {"absorbed", RateUnit::Flops},
      {"expanded", RateUnit::Flops}, {"expansion", RateUnit::Flops}, {"rms_norm", RateUnit::Bytes},
      {"rotary", RateUnit::Bytes},   {"append", RateUnit::Bytes},    {"add", RateUnit::Bytes},
      {"gated", RateUnit::Bytes},    {"routing", RateUnit::Bytes},   {"permutation", RateUnit::Bytes},
      {"gather", RateUnit::Bytes},   {"unpermute", RateUnit::Bytes}, {"sample", RateUnit::Bytes}};
  return kinds;
}

const KernelKind *findKernelKind(std::string_view name) {
  for (const KernelKind &kind : kernelKinds())
    if (kind.name == name)
      return &kind;
  return nullptr;
}

const TeamRates *Calibration::team(int64_t workers) const {
  for (const TeamRates &team : teams)
    if (team.workers == workers)
      return &team;
  return nullptr;
}

namespace {

constexpr size_t maxEntries = 1024; ///< of a list
constexpr DType kernelTypes[] = {DType::F32, DType::BF16, DType::F8E4M3};

Dimension dimensionOf(RateUnit unit) {
  return unit == RateUnit::Flops ? Dimension::FlopPerSecond : Dimension::BytesPerSecond;
}

Status checkList(const YamlDocument &document, const YAML::Node &node, const std::string &what) {
  if (!node.IsSequence() || node.size() == 0)
    return document.error(node, what + " must be a list that is not empty");
  if (node.size() > maxEntries)
    return document.error(node, what + " has " + std::to_string(node.size()) + " entries, at most " +
                                    std::to_string(maxEntries) + " are accepted");
  return {};
}

/// Reads a list element by element, up to the first mistake.
template <class Read> void readList(Mapping &in, const char *key, Read read) {
  YAML::Node list = in.at(key);
  if (in.mistake)
    return;
  in.keep(checkList(in.document, list, key));
  for (auto node = list.begin(); node != list.end() && !in.mistake; ++node)
    read(*node);
}

void readType(Mapping &in, const char *key, DType &type) {
  std::string text;
  in.text(key, text);
  for (DType candidate : kernelTypes)
    if (text == name(candidate))
      return void(type = candidate);
  in.fail(in.at(key), "'" + shortened(text) + "' is no element type of kernels",
          "use one of " + joined(kernelTypes, [](DType each) { return name(each); }));
}

void readRates(Mapping &in, const char *key, RateUnit unit, size_t count, std::vector<double> &rates) {
  readList(in, key, [&](const YAML::Node &node) {
    std::string text;
    in.keep(in.document.asString(node, key), text);
    if (!in.mistake)
      in.keep(parseQuantity(text, dimensionOf(unit), in.document.place(node)), rates.emplace_back());
  });
  if (rates.size() != count)
    in.fail(in.at(key), std::string(key) + " has " + std::to_string(rates.size()) + " rates for " +
                            std::to_string(count) + " rows");
}

void readRows(Mapping &in, std::vector<int64_t> &rows) {
  readList(in, "rows", [&](const YAML::Node &node) {
    int64_t count = 0, least = rows.empty() ? 1 : rows.back() + 1;
    in.keep(in.document.asInt(node, "rows"), count);
    if (count < least || count > Mapping::maxCount)
      in.fail(node, "rows has " + std::to_string(count) + ", must be " + std::to_string(least) + " to " +
                        std::to_string(Mapping::maxCount) + ": rows ascend");
    rows.push_back(count);
  });
}

void readKernel(Mapping &outer, const YAML::Node &node, TeamRates &team) {
  Mapping in(outer.document, node, "a kernel", {"kind", "x", "w", "depth", "rows", "near", "memory"});
  KernelRates kernel;
  in.text("kind", kernel.kind);
  in.count("depth", kernel.depth);
  const KernelKind *kind = findKernelKind(kernel.kind);
  if (!kind) {
    in.fail(in.at("kind"), "kind '" + shortened(kernel.kind) + "' is not known",
            "use one of " + joined(kernelKinds(), [](const KernelKind &each) { return each.name; }));
    return outer.take(in);
  }
  readType(in, "x", kernel.x);
  kernel.w = kernel.x;
  if (in.has("w"))
    readType(in, "w", kernel.w);
  readRows(in, kernel.rows);
  readRates(in, "near", kind->unit, kernel.rows.size(), kernel.near);
  if (in.has("memory"))
    readRates(in, "memory", kind->unit, kernel.rows.size(), kernel.memory);
  outer.take(in);
  for (const KernelRates &other : team.kernels)
    if (other.kind == kernel.kind && other.x == kernel.x && other.w == kernel.w && other.depth == kernel.depth)
      outer.fail(node, "repeats kind " + kernel.kind + " of depth " + std::to_string(kernel.depth));
  team.kernels.push_back(std::move(kernel));
}

/// A list of sizes with a rate each.
void readSizes(Mapping &in, const char *key, std::vector<ReadRate> &rates) {
  readList(in, key, [&](const YAML::Node &node) {
    Mapping size(in.document, node, "a rate", {"bytes", "rate"});
    Sourced<Bytes> bytes;
    Sourced<Bandwidth> rate;
    size.number("bytes", bytes);
    size.number("rate", Dimension::BytesPerSecond, rate);
    in.take(size);
    if (!rates.empty() && bytes.value <= rates.back().bytes)
      in.fail(node, "bytes " + std::to_string(bytes.value.value) + " follows " +
                        std::to_string(rates.back().bytes.value) + ": bytes ascend");
    rates.push_back({bytes.value, rate.value});
  });
}

void readTeam(Mapping &outer, const YAML::Node &node, Calibration &calibration) {
  Mapping in(outer.document, node, "a team", {"workers", "launch", "read", "kernels"});
  TeamRates team;
  Sourced<Seconds> launch;
  in.count("workers", team.workers);
  in.number("launch", Dimension::Seconds, launch);
  team.launch = launch.value;
  if (calibration.team(team.workers))
    in.fail(node, "repeats the team of " + std::to_string(team.workers) + " workers");
  readSizes(in, "read", team.read);
  readList(in, "kernels", [&](const YAML::Node &kernel) { readKernel(in, kernel, team); });
  outer.take(in);
  calibration.teams.push_back(std::move(team));
}

void readLink(Mapping &outer, const YAML::Node &node, Calibration &calibration) {
  Mapping in(outer.document, node, "a link", {"name", "count", "latency", "read", "write"});
  LinkRates link;
  Sourced<Seconds> latency;
  in.text("name", link.name);
  in.count("count", link.count);
  in.number("latency", Dimension::Seconds, latency);
  link.latency = latency.value;
  for (const LinkRates &inner : calibration.links)
    if (inner.name == link.name)
      in.fail(in.at("name"), "two links are called '" + shortened(link.name) + "'", "rename one of them");
  readSizes(in, "read", link.read);
  readSizes(in, "write", link.write);
  outer.take(in);
  calibration.links.push_back(std::move(link));
}

} // namespace

void cluster::readCalibration(Mapping &device, const YAML::Node &node, Calibration &calibration) {
  Mapping in(device.document, node, "measured", {"tool", "date", "target", "links", "teams"});
  in.text("tool", calibration.tool);
  in.text("date", calibration.date);
  in.text("target", calibration.target);
  if (in.has("links"))
    readList(in, "links", [&](const YAML::Node &link) { readLink(in, link, calibration); });
  readList(in, "teams", [&](const YAML::Node &team) { readTeam(in, team, calibration); });
  device.take(in);
}

//===----------------------------------------------------------------------===//
// As a file
//===----------------------------------------------------------------------===//

namespace {

template <class T, class Print> std::string list(const std::vector<T> &values, Print print) {
  return "[" + joined(values, print) + "]";
}

std::string printKernel(const KernelRates &kernel) {
  Dimension dimension = dimensionOf(findKernelKind(kernel.kind)->unit);
  auto rate = [&](double value) { return printQuantity(value, dimension); };
  std::string text = "          - {kind: " + kernel.kind + ", x: " + std::string(name(kernel.x));
  if (kernel.w != kernel.x)
    text += ", w: " + std::string(name(kernel.w));
  text += ", depth: " + std::to_string(kernel.depth) +
          ",\n             rows: " + list(kernel.rows, [](int64_t rows) { return std::to_string(rows); }) +
          ",\n             near: " + list(kernel.near, rate);
  if (!kernel.memory.empty())
    text += ",\n             memory: " + list(kernel.memory, rate);
  return text + "}\n";
}

std::string printSizes(const std::vector<ReadRate> &rates) {
  std::string text;
  for (const ReadRate &each : rates)
    text += "          - {bytes: " + printQuantity(double(each.bytes.value), Dimension::Bytes) +
            ", rate: " + printQuantity(each.rate.value, Dimension::BytesPerSecond) + "}\n";
  return text;
}

std::string printLink(const LinkRates &link) {
  return "      - name: " + quoted(link.name) + "\n        count: " + std::to_string(link.count) +
         "\n        latency: " + printQuantity(link.latency.value, Dimension::Seconds) + "\n        read:\n" +
         printSizes(link.read) + "        write:\n" + printSizes(link.write);
}

} // namespace

std::string cluster::printCalibration(const Calibration &calibration) {
  std::string text = "  measured:\n    tool: " + quoted(calibration.tool) + "\n    date: " + quoted(calibration.date) +
                     "\n    target: " + quoted(calibration.target) +
                     (calibration.links.empty() ? "\n" : "\n    links:\n");
  for (const LinkRates &link : calibration.links)
    text += printLink(link);
  text += "    teams:\n";
  for (const TeamRates &team : calibration.teams) {
    text += "      - workers: " + std::to_string(team.workers) +
            "\n        launch: " + printQuantity(team.launch.value, Dimension::Seconds) + "\n        read:\n" +
            printSizes(team.read) + "        kernels:\n";
    for (const KernelRates &kernel : team.kernels)
      text += printKernel(kernel);
  }
  return text;
}

} // namespace k2c
