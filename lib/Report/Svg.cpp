//===- Svg.cpp - Elements, scales and axes of the report's drawings -------===//
//
// Drawings are text that must be the same on every machine and safe with any input. A coordinate is written with at
// most two decimals, clamped to a million and 0 for what is no number, so that a plan with an infinite time still
// gives a drawing that browsers open; every text passes escapeHtml, which also cleans it of what is no UTF-8.
//
// Coordinates across are percent, so that a drawing fills a page of any width without scaling its text. Text that may
// be too long for its box is written for narrow and for wide pages, and the style sheet shows one of them.
//
// A scale maps numbers to coordinates; an empty range is widened, and values are clamped to half a range beyond its
// ends. Ticks are at 1, 2 or 5 times a power of ten. Labels are placed greedily: right, left, above, below and
// diagonally, at four distances, the first place that meets no label put down before and stays in the drawing, on pages
// of every width; a label without such a place is left out, as one on top of another says nothing.
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

// A letter is about 6.5 pixels wide.
static double pixelsOf(size_t characters) { return 6.5 * double(characters); }

static std::string attribute(const char *name, double value) {
  return std::string(" ") + name + "=\"" + coordinate(value) + "\"";
}

static std::string classOf(const std::string &classes) { return classes.empty() ? "" : " class=\"" + classes + "\""; }

Svg::Svg(double height, const std::string &label) {
  out = "<div class=\"chart\"><svg role=\"img\" aria-label=\"" + escapeHtml(label) + "\"" +
        attribute("height", height) + ">\n";
}

std::string Svg::across(const char *name, double value) const {
  return std::string(" ") + name + "=\"" + coordinate(value) + (inPixels ? "\"" : "%\"");
}

void Svg::end(const char *element, const std::string &title) {
  out += title.empty() ? "/>\n" : "><title>" + escapeHtml(title) + "</title></" + element + ">\n";
}

void Svg::rect(double x, double y, double width, double height, const std::string &classes, const std::string &title) {
  out += "<rect" + classOf(classes) + across("x", x) + attribute("y", y) + across("width", std::max(0.0, width)) +
         attribute("height", std::max(0.0, height));
  end("rect", title);
}

void Svg::line(double x1, double y1, double x2, double y2, const std::string &classes) {
  out += "<line" + classOf(classes) + across("x1", x1) + attribute("y1", y1) + across("x2", x2) + attribute("y2", y2) +
         "/>\n";
}

void Svg::circle(double x, double y, double radius, const std::string &classes, const std::string &title) {
  out += "<circle" + classOf(classes) + across("cx", x) + attribute("cy", y) + attribute("r", radius);
  end("circle", title);
}

void Svg::path(const std::string &data, const std::string &classes) {
  out += "<path" + classOf(classes) + " d=\"" + data + "\"/>\n";
}

void Svg::text(double x, double y, const std::string &text, const std::string &classes, const char *anchor) {
  out += "<text" + classOf(classes) + across("x", x) + attribute("y", y);
  if (std::string(anchor) != "start")
    out += std::string(" text-anchor=\"") + anchor + "\"";
  out += ">" + escapeHtml(text) + "</text>\n";
}

void Svg::fitText(double x, double y, double width, const std::vector<std::string> &texts, const std::string &classes) {
  auto longest = [&](double pixels) {
    for (const std::string &each : texts)
      if (pixelsOf(each.size()) + 10 < width / 100 * pixels)
        return each;
    return std::string();
  };
  const std::string onNarrow = longest(narrowPixels), onWide = longest(foldPixels);
  auto write = [&](const std::string &words, const std::string &more) {
    if (words.empty())
      return;
    openAt(x, y);
    text(5, 0, words, classes + more);
    closeInner();
  };
  if (onNarrow == onWide)
    return write(onNarrow, "");
  write(onNarrow, " narrow");
  write(onWide, " wide");
}

void Svg::open(const std::string &attributes) { out += "<g " + attributes + ">\n"; }
void Svg::close() { out += "</g>\n"; }

void Svg::openAt(double x, double y) {
  out += "<svg class=\"inner\"" + across("x", x) + attribute("y", y) + ">";
  inPixels = true;
}

void Svg::openStretched(double height) {
  out += "<svg class=\"inner\" viewBox=\"0 0 100 " + coordinate(height) + "\" preserveAspectRatio=\"none\">\n";
  inPixels = true;
}

void Svg::closeInner() {
  out += "</svg>\n";
  inPixels = false;
}

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

/// The middles of two boxes are this far apart, across, on a page as wide as makes it least.
static double minGap(const Labels::Box &a, const Labels::Box &b) {
  auto gap = [&](double pixels) { return (a.x - b.x) / 100 * pixels + a.dx - b.dx; };
  const double narrow = gap(narrowPixels), wide = gap(widePixels);
  return narrow * wide <= 0 ? 0 : std::min(std::fabs(narrow), std::fabs(wide));
}

bool Labels::isFree(const Box &box) const {
  for (double pixels : {narrowPixels, widePixels})
    if (const double at = box.x / 100 * pixels + box.dx; at - box.width / 2 < 0 || at + box.width / 2 > pixels)
      return false;
  return box.y + box.dy >= 12 && std::none_of(taken.begin(), taken.end(), [&](const Box &other) {
           return minGap(box, other) < (box.width + other.width) / 2 &&
                  std::fabs(box.y + box.dy - other.y - other.dy) < (box.height + other.height) / 2;
         });
}

std::optional<Labels::Box> Labels::place(double x, double y, size_t characters) {
  const double width = pixelsOf(characters) + 6, half = width / 2;
  for (double distance : {4.0, 16.0, 28.0, 40.0}) {
    const double side = half + 5 + distance, up = 7 + distance;
    const double offsets[][2] = {{side, 0},         {-side, 0},         {0, -up},         {0, up},
                                 {side * 0.8, -up}, {-side * 0.8, -up}, {side * 0.8, up}, {-side * 0.8, up}};
    for (const auto &offset : offsets)
      if (const Box box{x, y, offset[0], offset[1], width, 13}; isFree(box)) {
        taken.push_back(box);
        return box;
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

static std::string named(const std::string &label, const Unit &unit) {
  return label + (unit.name.empty() ? "" : ", " + unit.name);
}

void report::drawAxisX(Svg &svg, const Scale &scale, double y, double top, const std::string &label, const Unit &unit) {
  for (double tick : scale.ticks()) {
    const double x = scale(tick);
    svg.line(x, top, x, y, "grid");
    svg.text(x, y + 16, printTick(tick), "tick", x > 96 ? "end" : x < 2 ? "start" : "middle");
  }
  const double from = scale(scale.low()), to = scale(scale.high());
  svg.line(from, y, to, y, "axis");
  svg.text((from + to) / 2, y + 34, named(label, unit), "label", "middle");
}

void report::drawAxisY(Svg &svg, const Scale &scale, double x, double right, const std::string &label,
                       const Unit &unit) {
  for (double tick : scale.ticks()) {
    const double y = scale(tick);
    svg.line(x, y, right, y, "grid");
    svg.text(x - 1, y + 4, printTick(tick), "tick", "end");
  }
  svg.line(x, scale(scale.low()), x, scale(scale.high()), "axis");
  svg.text(0, 12, named(label, unit), "label");
}
