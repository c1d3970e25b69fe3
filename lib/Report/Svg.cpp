//===- Svg.cpp - Elements, scales and axes of the report's drawings -------===//
//
// Drawings are text that must be the same on every machine and safe with any input. A coordinate is written with at
// most two decimals, clamped to a million and 0 for what is no number, so that a plan with an infinite time still
// gives a drawing that browsers open; every text passes escapeHtml, which also cleans it of what is no UTF-8.
//
// A scale maps numbers to coordinates; an empty range is widened, and values are clamped to half a range beyond its
// ends. Ticks are at 1, 2 or 5 times a power of ten. Labels are placed greedily: right, left, above, below and
// diagonally, at four distances, the first place that meets no label put down before and stays in the drawing; a label
// without such a place is left out, as one on top of another says nothing.
//
//===----------------------------------------------------------------------===//

#include "Svg.h"

#include "Derived.h"
#include "k2c/Support/Units.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace k2c;
using namespace k2c::report;

std::string report::escapeHtml(const std::string &text) {
  std::string out;
  for (char c : cleanText(text))
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    default:
      out += c;
    }
  return out;
}

std::string report::coordinate(double value) {
  char text[48];
  std::snprintf(text, sizeof text, "%.2f", std::isfinite(value) ? std::clamp(value, -1e6, 1e6) : 0.0);
  std::string trimmed = text;
  trimmed.erase(trimmed.find_last_not_of('0') + 1);
  if (trimmed.back() == '.')
    trimmed.pop_back();
  return trimmed == "-0" ? "0" : trimmed;
}

std::string report::printTick(double value) {
  const bool isPower = std::fabs(value) >= 1e6 || (value != 0 && std::fabs(value) < 1e-4);
  return isPower ? formatNumber(value, 3) : formatNumber(std::round(value * 1e6) / 1e6, 10);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Svg::Svg(double width, double height, const std::string &label) {
  out = "<div class=\"chart\" tabindex=\"0\"><svg role=\"img\" aria-label=\"" + escapeHtml(label) +
        "\" viewBox=\"0 0 " + coordinate(width) + " " + coordinate(height) + "\">\n";
}

static std::string attribute(const char *name, double value) {
  return std::string(" ") + name + "=\"" + coordinate(value) + "\"";
}

static std::string classOf(const std::string &classes) { return classes.empty() ? "" : " class=\"" + classes + "\""; }

void Svg::end(const char *element, const std::string &title) {
  out += title.empty() ? "/>\n" : "><title>" + escapeHtml(title) + "</title></" + element + ">\n";
}

void Svg::rect(double x, double y, double width, double height, const std::string &classes, const std::string &title,
               const std::string &attributes) {
  out += "<rect" + classOf(classes) + attribute("x", x) + attribute("y", y) + attribute("width", std::max(0.0, width)) +
         attribute("height", std::max(0.0, height)) + (attributes.empty() ? "" : " " + attributes);
  end("rect", title);
}

void Svg::line(double x1, double y1, double x2, double y2, const std::string &classes) {
  out += "<line" + classOf(classes) + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
         attribute("y2", y2) + "/>\n";
}

void Svg::circle(double x, double y, double radius, const std::string &classes, const std::string &title) {
  out += "<circle" + classOf(classes) + attribute("cx", x) + attribute("cy", y) + attribute("r", radius);
  end("circle", title);
}

void Svg::path(const std::string &data, const std::string &classes, const std::string &title) {
  out += "<path" + classOf(classes) + " d=\"" + data + "\"";
  end("path", title);
}

void Svg::text(double x, double y, const std::string &text, const std::string &classes, const char *anchor) {
  out += "<text" + classOf(classes) + attribute("x", x) + attribute("y", y);
  if (std::string(anchor) != "start")
    out += std::string(" text-anchor=\"") + anchor + "\"";
  out += ">" + escapeHtml(text) + "</text>\n";
}

void Svg::textUp(double x, double y, const std::string &text, const std::string &classes) {
  out += "<text" + classOf(classes) + " text-anchor=\"middle\" transform=\"translate(" + coordinate(x) + " " +
         coordinate(y) + ") rotate(-90)\">" + escapeHtml(text) + "</text>\n";
}

void Svg::open(const std::string &attributes) { out += "<g " + attributes + ">\n"; }
void Svg::close() { out += "</g>\n"; }

std::string Svg::finish() { return out + "</svg></div>\n"; }

//===----------------------------------------------------------------------===//
// Scales and axes
//===----------------------------------------------------------------------===//

Scale::Scale(double low, double high, double from, double to, bool logarithmic)
    : least(low), most(high), from(from), to(to), logarithmic(logarithmic) {
  if (logarithmic)
    least = std::max(least, 1e-300);
  if (!(most > least))
    most = logarithmic ? least * 10 : least + 1;
}

double Scale::operator()(double value) const {
  const double share = logarithmic ? std::log(std::max(value, 1e-300) / least) / std::log(most / least)
                                   : (value - least) / (most - least);
  return from + (to - from) * std::clamp(share, -0.5, 1.5);
}

std::vector<double> Scale::ticks(int count) const {
  std::vector<double> ticks;
  if (!logarithmic) {
    const double raw = (most - least) / count, power = std::pow(10, std::floor(std::log10(raw)));
    const double step = power * (raw / power > 5 ? 10 : raw / power > 2 ? 5 : raw / power > 1 ? 2 : 1);
    for (double tick = std::ceil(least / step) * step; tick <= most * (1 + 1e-12) && ticks.size() < 100; tick += step)
      ticks.push_back(std::fabs(tick) < step / 1e6 ? 0 : tick);
    return ticks;
  }
  const double decades = std::log10(most / least);
  const int every = std::max(1, int(std::ceil(decades / count)));
  for (int power = int(std::floor(std::log10(least))); std::pow(10, power) <= most; power += every)
    for (double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10, power);
      if (tick >= least * (1 - 1e-9) && tick <= most * (1 + 1e-9) && (factor == 1 || decades < 2.5))
        ticks.push_back(tick);
    }
  return ticks;
}

std::optional<Labels::Place> Labels::place(double x, double y, size_t characters) {
  const double width = 7.0 * double(characters) + 2, height = 13, half = width / 2;
  for (double distance : {4.0, 16.0, 28.0, 40.0}) {
    const double side = half + 5 + distance, up = 7 + distance;
    const double offsets[][2] = {{side, 0},         {-side, 0},         {0, -up},         {0, up},
                                 {side * 0.8, -up}, {-side * 0.8, -up}, {side * 0.8, up}, {-side * 0.8, up}};
    for (const auto &offset : offsets) {
      const Box box{x + offset[0], y + offset[1], width, height};
      const bool isFree = std::none_of(taken.begin(), taken.end(), [&](const Box &other) {
        return std::fabs(box.x - other.x) < (box.width + other.width) / 2 &&
               std::fabs(box.y - other.y) < (box.height + other.height) / 2;
      });
      if (!isFree || box.x + half > right || box.y < 12)
        continue;
      taken.push_back(box);
      return Place{box.x, box.y, distance > 4};
    }
  }
  return std::nullopt;
}

Unit report::secondsUnit(double most) {
  return most >= 1 ? Unit{1, "s"} : most >= 1e-3 ? Unit{1e-3, "ms"} : Unit{1e-6, "us"};
}

static Unit stepped(double most, double step, const std::vector<const char *> &names) {
  Unit unit{1, names[0]};
  for (size_t i = 1; i < names.size() && most >= 2 * step * unit.factor; ++i)
    unit = {unit.factor * step, names[i]};
  return unit;
}

Unit report::binaryBytes(double most) { return stepped(most, 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"}); }
Unit report::decimalBytes(double most) { return stepped(most, 1000, {"B", "KB", "MB", "GB", "TB", "PB"}); }
Unit report::flopRateUnit(double most) {
  return stepped(most, 1000, {"FLOP/s", "KFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"});
}

void report::drawAxisX(Svg &svg, const Scale &scale, double y, double top, const std::string &label, const Unit &unit) {
  for (double tick : scale.ticks()) {
    const double x = scale(tick);
    svg.line(x, top, x, y, "grid");
    svg.text(x, y + 16, printTick(tick), "tick", "middle");
  }
  svg.line(scale(scale.low()), y, scale(scale.high()), y, "axis");
  svg.text((scale(scale.low()) + scale(scale.high())) / 2, y + 34, label + (unit.name.empty() ? "" : ", " + unit.name),
           "label", "middle");
}

void report::drawAxisY(Svg &svg, const Scale &scale, double x, double right, const std::string &label,
                       const Unit &unit) {
  for (double tick : scale.ticks()) {
    const double y = scale(tick);
    svg.line(x, y, right, y, "grid");
    svg.text(x - 6, y + 4, printTick(tick), "tick", "end");
  }
  svg.line(x, scale(scale.low()), x, scale(scale.high()), "axis");
  svg.textUp(14, (scale(scale.low()) + scale(scale.high())) / 2, label + (unit.name.empty() ? "" : ", " + unit.name),
             "label");
}
