//===- Svg.h - Drawings written by hand -----------------------------------===//
//
// The few elements and scales that the report's charts use. Colours and fonts are classes of the page's style sheet, so
// that a drawing follows the reader's light or dark theme; a title is the tooltip and what a screen reader says.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_REPORT_SVG_H
#define K2C_LIB_REPORT_SVG_H

#include <optional>
#include <string>
#include <vector>

namespace k2c::report {

/// Text between tags and in attributes.
std::string escapeHtml(const std::string &text);
/// A coordinate: two digits are a hundredth of a pixel.
std::string coordinate(double value);
/// "%.4g" of a tick, without an exponent below a million.
std::string printTick(double value);

/// One drawing. Coordinates are pixels from the upper left.
class Svg {
public:
  /// `label`: what the drawing shows, for those who cannot see it.
  Svg(double width, double height, const std::string &label);

  void rect(double x, double y, double width, double height, const std::string &classes, const std::string &title = "",
            const std::string &attributes = "");
  void line(double x1, double y1, double x2, double y2, const std::string &classes);
  void circle(double x, double y, double radius, const std::string &classes, const std::string &title = "");
  void path(const std::string &data, const std::string &classes, const std::string &title = "");
  /// `anchor`: start, middle or end.
  void text(double x, double y, const std::string &text, const std::string &classes = "", const char *anchor = "start");
  /// Turned by 90 degrees, read from below.
  void textUp(double x, double y, const std::string &text, const std::string &classes = "");
  /// Raw elements or attributes of a group.
  void open(const std::string &attributes);
  void close();

  std::string finish();

private:
  void end(const char *element, const std::string &title);
  std::string out;
};

/// Maps values to pixels.
class Scale {
public:
  Scale(double low, double high, double from, double to, bool logarithmic = false);
  double operator()(double value) const;
  /// Round values inside the scale, about `count` of them.
  std::vector<double> ticks(int count = 6) const;
  double low() const { return least; }
  double high() const { return most; }

private:
  double least, most, from, to;
  bool logarithmic;
};

/// Finds room for the labels of points.
class Labels {
public:
  explicit Labels(double right) : right(right) {}
  /// Nothing may lie here; x and y are the middle.
  void block(double x, double y, double width, double height) { taken.push_back({x, y, width, height}); }
  struct Place {
    double x, y; ///< middle of the label
    bool isFar;  ///< so far from its point that a line must join them
  };
  /// The nearest free place for a label of `characters` beside a point; nothing when there is none.
  std::optional<Place> place(double x, double y, size_t characters);

private:
  struct Box {
    double x, y, width, height;
  };
  double right;
  std::vector<Box> taken;
};

/// A unit that makes numbers up to `most` readable: value / factor is printed with `name`.
struct Unit {
  double factor = 1;
  std::string name;
};
Unit secondsUnit(double most);
Unit binaryBytes(double most);  ///< GiB and the like
Unit decimalBytes(double most); ///< GB and the like
Unit flopRateUnit(double most); ///< TFLOP/s and the like

/// Draws a horizontal axis at `y` with ticks, grid lines up to `top` and `label` below.
void drawAxisX(Svg &svg, const Scale &scale, double y, double top, const std::string &label, const Unit &unit);
/// A vertical axis at `x` with grid lines up to `right`.
void drawAxisY(Svg &svg, const Scale &scale, double x, double right, const std::string &label, const Unit &unit);

} // namespace k2c::report

#endif // K2C_LIB_REPORT_SVG_H
