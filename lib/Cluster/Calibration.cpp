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

/// Reads a list element by element.
template <class Read> Status readList(const YamlDocument &document, Mapping &in, const char *key, Read read) {
  YAML::Node list = in.at(key);
  if (in.mistake)
    return std::move(*in.mistake);
  if (Status status = checkList(document, list, key); !status)
    return status;
  for (const YAML::Node &node : list)
    if (Status status = read(node); !status)
      return status;
  return {};
}

Status readType(const YamlDocument &document, Mapping &in, const char *key, DType &type) {
  std::string text;
  in.text(key, text);
  if (in.mistake)
    return std::move(*in.mistake);
  std::string known;
  for (DType candidate : kernelTypes) {
    if (text == name(candidate))
      return type = candidate, Status();
    known += (known.empty() ? "" : ", ") + std::string(name(candidate));
  }
  return document.error(in.at(key), "'" + shortened(text) + "' is no element type of kernels", "use one of " + known);
}

Status readRates(const YamlDocument &document, Mapping &in, const char *key, RateUnit unit, size_t count,
                 std::vector<double> &rates) {
  Status status = readList(document, in, key, [&](const YAML::Node &node) -> Status {
    Expected<std::string> text = document.asString(node, key);
    if (!text)
      return text.takeError();
    Expected<double> rate = parseQuantity(*text, dimensionOf(unit), document.place(node));
    if (!rate)
      return rate.takeError();
    rates.push_back(*rate);
    return {};
  });
  if (status && rates.size() != count)
    return document.error(in.at(key), std::string(key) + " has " + std::to_string(rates.size()) + " rates for " +
                                          std::to_string(count) + " rows");
  return status;
}

Status readRows(const YamlDocument &document, Mapping &in, std::vector<int64_t> &rows) {
  return readList(document, in, "rows", [&](const YAML::Node &node) -> Status {
    Expected<int64_t> count = document.asInt(node, "rows");
    if (!count)
      return count.takeError();
    int64_t least = rows.empty() ? 1 : rows.back() + 1;
    if (*count < least || *count > Mapping::maxCount)
      return document.error(node, "rows has " + std::to_string(*count) + ", must be " + std::to_string(least) + " to " +
                                      std::to_string(Mapping::maxCount) + ": rows ascend");
    rows.push_back(*count);
    return {};
  });
}

Status readKernel(const YamlDocument &document, const YAML::Node &node, TeamRates &team) {
  Mapping in(document, node, "a kernel", {"kind", "x", "w", "depth", "rows", "near", "memory"});
  KernelRates kernel;
  in.text("kind", kernel.kind);
  in.count("depth", kernel.depth);
  if (in.mistake)
    return std::move(*in.mistake);
  const KernelKind *kind = findKernelKind(kernel.kind);
  if (!kind) {
    std::string known;
    for (const KernelKind &each : kernelKinds())
      known += (known.empty() ? "" : ", ") + std::string(each.name);
    return document.error(in.at("kind"), "kind '" + shortened(kernel.kind) + "' is not known", "use one of " + known);
  }
  if (Status status = readType(document, in, "x", kernel.x); !status)
    return status;
  kernel.w = kernel.x;
  if (in.has("w"))
    if (Status status = readType(document, in, "w", kernel.w); !status)
      return status;
  if (Status status = readRows(document, in, kernel.rows); !status)
    return status;
  if (Status status = readRates(document, in, "near", kind->unit, kernel.rows.size(), kernel.near); !status)
    return status;
  if (in.has("memory"))
    if (Status status = readRates(document, in, "memory", kind->unit, kernel.rows.size(), kernel.memory); !status)
      return status;
  for (const KernelRates &other : team.kernels)
    if (other.kind == kernel.kind && other.x == kernel.x && other.w == kernel.w && other.depth == kernel.depth)
      return document.error(node, "repeats kind " + kernel.kind + " of depth " + std::to_string(kernel.depth));
  team.kernels.push_back(std::move(kernel));
  return {};
}

/// A list of sizes with a rate each.
Status readSizes(const YamlDocument &document, Mapping &in, const char *key, std::vector<ReadRate> &rates) {
  return readList(document, in, key, [&](const YAML::Node &node) -> Status {
    Mapping size(document, node, "a rate", {"bytes", "rate"});
    Sourced<Bytes> bytes;
    Sourced<Bandwidth> rate;
    size.number("bytes", bytes);
    size.number("rate", Dimension::BytesPerSecond, rate);
    if (size.mistake)
      return std::move(*size.mistake);
    if (!rates.empty() && bytes.value <= rates.back().bytes)
      return document.error(node, "bytes " + std::to_string(bytes.value.value) + " follows " +
                                      std::to_string(rates.back().bytes.value) + ": bytes ascend");
    rates.push_back({bytes.value, rate.value});
    return {};
  });
}

Status readTeam(const YamlDocument &document, const YAML::Node &node, Calibration &calibration) {
  Mapping in(document, node, "a team", {"workers", "launch", "read", "kernels"});
  TeamRates team;
  Sourced<Seconds> launch;
  in.count("workers", team.workers);
  in.number("launch", Dimension::Seconds, launch);
  if (in.mistake)
    return std::move(*in.mistake);
  team.launch = launch.value;
  if (calibration.team(team.workers))
    return document.error(node, "repeats the team of " + std::to_string(team.workers) + " workers");
  Status status = readSizes(document, in, "read", team.read);
  if (status)
    status = readList(document, in, "kernels", [&](const YAML::Node &n) { return readKernel(document, n, team); });
  if (status)
    calibration.teams.push_back(std::move(team));
  return status;
}

Status readLink(const YamlDocument &document, const YAML::Node &node, Calibration &calibration) {
  Mapping in(document, node, "a link", {"name", "count", "latency", "read", "write"});
  LinkRates link;
  Sourced<Seconds> latency;
  in.text("name", link.name);
  in.count("count", link.count);
  in.number("latency", Dimension::Seconds, latency);
  if (in.mistake)
    return std::move(*in.mistake);
  link.latency = latency.value;
  for (const LinkRates &inner : calibration.links)
    if (inner.name == link.name)
      return document.error(in.at("name"), "two links are called '" + shortened(link.name) + "'", "rename one of them");
  Status status = readSizes(document, in, "read", link.read);
  if (status)
    status = readSizes(document, in, "write", link.write);
  if (status)
    calibration.links.push_back(std::move(link));
  return status;
}

} // namespace

Status cluster::readCalibration(const YamlDocument &document, const YAML::Node &node, Calibration &calibration) {
  Mapping in(document, node, "measured", {"tool", "date", "target", "links", "teams"});
  in.text("tool", calibration.tool);
  in.text("date", calibration.date);
  in.text("target", calibration.target);
  if (in.mistake)
    return std::move(*in.mistake);
  if (in.has("links"))
    if (Status status = readList(document, in, "links",
                                 [&](const YAML::Node &link) { return readLink(document, link, calibration); });
        !status)
      return status;
  return readList(document, in, "teams", [&](const YAML::Node &team) { return readTeam(document, team, calibration); });
}

//===----------------------------------------------------------------------===//
// As a file
//===----------------------------------------------------------------------===//

namespace {

template <class T, class Print> std::string list(const std::vector<T> &values, Print print) {
  std::string text;
  for (const T &value : values)
    text += (text.empty() ? "" : ", ") + print(value);
  return "[" + text + "]";
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
