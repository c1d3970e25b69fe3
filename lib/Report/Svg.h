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

/// The least and the most pixels that the page gives a drawing, and the least of those it takes for a wide one.
constexpr double narrowPixels = 460, widePixels = 1080, foldPixels = 850;

/// One drawing, as wide as the page: across, coordinates are percent of its width, down, pixels. Text keeps its size.
class Svg {
public:
  /// `label`: what the drawing shows, for those who cannot see it.
  Svg(double height, const std::string &label);

  void rect(double x, double y, double width, double height, const std::string &classes, const std::string &title = "");
  void line(double x1, double y1, double x2, double y2, const std::string &classes);
  void circle(double x, double y, double radius, const std::string &classes, const std::string &title = "");
  /// Only inside openStretched.
  void path(const std::string &data, const std::string &classes);
  /// `anchor`: start, middle or end.
  void text(double x, double y, const std::string &text, const std::string &classes = "", const char *anchor = "start");
  /// The longest of `texts` that fits into a box of `width`, which may differ between narrow and wide pages.
  void fitText(double x, double y, double width, const std::vector<std::string> &texts, const std::string &classes);
  /// A group with raw attributes.
  void open(const std::string &attributes);
  void close();
  /// Until closeInner, the origin is here and coordinates are pixels both ways.
  void openAt(double x, double y);
  /// Until closeInner, coordinates are numbers, as paths need them: percent across, pixels down.
  void openStretched(double height);
  void closeInner();

  std::string finish();

private:
  std::string across(const char *name, double value) const;
  void end(const char *element, const std::string &title);
  std::string out;
  bool inPixels = false;
};

/// Maps values to coordinates.
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

/// Finds room for the labels of points, on pages of every width.
class Labels {
public:
  /// A box around a point: `x` is its percent across, `dx` and `dy` the pixels from it to the middle of the box.
  struct Box {
    double x, y, dx, dy, width, height;
  };
  /// Nothing may lie here.
  void block(const Box &box) { taken.push_back(box); }
  /// The nearest free place for a label of `characters` beside a point; nothing when there is none.
  std::optional<Box> place(double x, double y, size_t characters);

private:
  bool isFree(const Box &box) const;
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
/// A vertical axis at `x` with grid lines up to `right` and `label` above.
void drawAxisY(Svg &svg, const Scale &scale, double x, double right, const std::string &label, const Unit &unit);

} // namespace k2c::report

#endif // K2C_LIB_REPORT_SVG_H
