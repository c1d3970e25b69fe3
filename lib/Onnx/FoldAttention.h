//===- FoldAttention.h - what ops that are a whole attention are made of ------------===//
#ifndef K2C_LIB_ONNX_FOLDATTENTION_H
#define K2C_LIB_ONNX_FOLDATTENTION_H

#include "Fold.h"

namespace k2c::onnx {

/// Rows of heads: an element by batch, head, row and column.
struct Fold::Heads {
  int64_t heads = 0;
  Term rows{}, width{};
  std::function<Term(Term b, Term h, Term s, Term d)> at;
};

/// What an attention is made of.
struct Fold::AttentionParts {
  Term batch{};
  Heads query, key, value; ///< keys and values: all that are seen, those of past tokens first
  double scale = 1, softcap = 0;
  std::function<Term(Term b, Term h, Term i, Term j)> bias;    ///< added to scores; none
  std::function<Term(Term b, Term h, Term i, Term j)> allowed; ///< 1 where row i sees row j; none: all
  double refused = 0;                                          ///< added to scores where that is 0
  bool mayBeEmpty = false;                                     ///< a row may see none; what it gives is 0
};

/// What an attention gives, and its scores on the way.
struct Fold::AttentionResult {
  Folded output;                            ///< [batch, heads, rows, width]
  Folded products, capped, biased, weights; ///< [batch, heads, rows, keys]
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_FOLDATTENTION_H
