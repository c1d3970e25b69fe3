//===- FoldScatter.h - updates that are written into data ---------------------------===//
#ifndef K2C_LIB_ONNX_FOLDSCATTER_H
#define K2C_LIB_ONNX_FOLDSCATTER_H

#include "Fold.h"

namespace k2c::onnx {

/// Updates written into data, at an element whose indices are the variables of its shape.
struct Fold::Scatter {
  Scatter(const Folded &data, Term always, std::string reduction)
      : data(data), condition(always), reduction(std::move(reduction)) {}
  const Folded &data;
  std::vector<Term> rows;    ///< sizes of what counts the updates
  std::vector<Term> written; ///< indices that are given, at rows counted by reduceVariable(0), (1), ..
  std::vector<Term> at;      ///< the element's own, of the same axes
  Term update{};             ///< by rows, and by the element's indices
  Term condition;            ///< which rows write to the element, as far as it is known
  std::string reduction;
  std::vector<Term> found; ///< by row: the one that writes to the element
  std::vector<Term> open;  ///< the variables of rows that no index is solved for
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_FOLDSCATTER_H
