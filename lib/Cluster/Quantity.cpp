//===- Quantity.cpp - Numbers with units, as people write them ------------===//
#include "k2c/Cluster/Quantity.h"
#include "base/Utf8.h"
#include "k2c/Support/Join.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>

namespace k2c::cluster {

namespace {

struct Unit {
  const char *name;
  double factor;
};

const Unit bytes[] = {{"B", 1},         {"KB", 1e3},           {"MB", 1e6},
                      {"GB", 1e9},      {"TB", 1e12},          {"KiB", 1024},
                      {"MiB", 1048576}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
const Unit bytesPerSecond[] = {{"B/s", 1}, {"KB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}};
const Unit flopPerSecond[] = {{"FLOP/s", 1}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};
const Unit seconds[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};

struct Units {
  const Unit *first, *last;
  const Unit *begin() const { return first; }
  const Unit *end() const { return last; }
};

template <size_t N> Units all(const Unit (&units)[N]) { return {units, units + N}; }

Units unitsOf(Dimension dimension) {
  switch (dimension) {
  case Dimension::Bytes:
    return all(bytes);
  case Dimension::BytesPerSecond:
    return all(bytesPerSecond);
  case Dimension::FlopPerSecond:
    return all(flopPerSecond);
  case Dimension::Seconds:
    return all(seconds);
  }
  return {};
}

} // namespace

Expected<double> parseQuantity(const std::string &text, Dimension dimension, const std::string &where) {
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  double number = 0;
  std::string unit, rest;
  if (!(in >> number) || !std::isfinite(number) || number <= 0)
    return Error{where, "'" + shortened(text) + "' is not a positive number with a unit", ""};
  in >> unit >> rest;
  Units units = unitsOf(dimension);
  for (const Unit &known : units)
    if (unit == known.name && rest.empty())
      return number * known.factor;
  return Error{where,
               "'" + shortened(text) + "' has " + (unit.empty() ? "no unit" : "the unit '" + shortened(unit) + "'"),
               "write one of " + joined(units, [](const Unit &known) { return known.name; })};
}

std::string printNumber(double value) {
  char text[32];
  auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

std::string printQuantity(double value, Dimension dimension) {
  Units units = unitsOf(dimension);
  std::string shortest;
  for (const Unit &unit : units) {
    double number = value / unit.factor;
    std::string text = printNumber(number) + " " + unit.name;
    bool exact = std::strtod(text.c_str(), nullptr) * unit.factor == value;
    if (exact && (shortest.empty() || text.size() <= shortest.size()))
      shortest = text;
  }
  return shortest.empty() ? printNumber(value) + " " + units.first->name : shortest;
}

} // namespace k2c::cluster
