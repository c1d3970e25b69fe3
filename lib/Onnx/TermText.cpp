//===- TermText.cpp - terms as formulas ---------------------------------------------===//
#include "Term.h"

#include <cstdio>

namespace k2c::onnx {

static std::string numberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

static const char *nameOf(Function function) {
  static const char *const names[] = {"exp",   "log", "sin",  "cos",   "tanh",     "sigmoid",
                                      "erf",   "abs", "sign", "round", "ceil",     "floor",
                                      "isnan", "max", "min",  "power", "truncate", "relu"};
  return names[size_t(function)];
}

std::string Terms::text(Term term, size_t max) const {
  std::string out;
  write(term, max, out);
  if (out.size() > max) {
    out.resize(max);
    out += "..";
  }
  return out;
}

/// The parts of a term with text around and between them.
void Terms::writeParts(Term term, const Around &around, size_t max, std::string &out) const {
  const std::vector<Part> own = parts(term);
  out += around.before;
  for (size_t i = 0; i < own.size() && out.size() <= max; i++) {
    const bool isChoice = kind(term) == TermKind::Select;
    out += i == 0 ? "" : isChoice ? (i == 1 ? " ? " : " : ") : around.between;
    if (kind(term) == TermKind::Sum && own[i].factor != 1)
      out += numberText(own[i].factor) + " ";
    write(own[i].term, max, out);
    if (kind(term) == TermKind::Product && own[i].factor != 1)
      out += "^" + numberText(own[i].factor);
  }
  if (kind(term) == TermKind::Sum && number(term) != 0)
    out += " + " + numberText(number(term));
  out += around.behind;
}

void Terms::write(Term term, size_t max, std::string &out) const {
  if (out.size() > max)
    return;
  const auto list = [&](const char *before, const char *between, const char *behind) {
    writeParts(term, {before, between, behind}, max, out);
  };
  switch (kind(term)) {
  case TermKind::Number:
    out += numberText(number(term));
    return;
  case TermKind::Variable:
    out += "i" + std::to_string(tag(term));
    return;
  case TermKind::Size:
    out += symbol(term);
    return;
  case TermKind::Element:
    out += definition(leaf(term)).op + "#" + std::to_string(tag(term));
    return list("(", ", ", ")");
  case TermKind::Sum:
    return list("(", " + ", ")");
  case TermKind::Product:
    return list("", " ", "");
  case TermKind::Floor:
    return list("floor(", " / ", ")");
  case TermKind::Select:
    return list("(", "", ")");
  case TermKind::AtLeastZero:
    return list("[", "", " >= 0]");
  case TermKind::EqualsZero:
    return list("[", "", " = 0]");
  case TermKind::Negative:
    return list("[", "", " < 0]");
  case TermKind::And:
    return list("(", " and ", ")");
  case TermKind::Or:
    return list("(", " or ", ")");
  case TermKind::Call:
    out += nameOf(function(term));
    return list("(", ", ", ")");
  }
}

} // namespace k2c::onnx
