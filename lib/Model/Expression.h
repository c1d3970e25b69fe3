//===- Expression.h - integer expressions of a families file --------------===//
//
// "heads * (nope + rope)", "heads % kv_heads == 0": + - * / %, comparisons,
// `and`, parentheses, names. Division must be exact: a size that does not
// divide is a mistake in the config, not something to round. Overflow is an
// error. A comparison is 1 or 0.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_MODEL_EXPRESSION_H
#define K2C_LIB_MODEL_EXPRESSION_H

#include "base/Error.h"

#include <cstdint>
#include <functional>
#include <string>

namespace k2c {

/// The value of a name, or an Error.
using Lookup = std::function<Expected<int64_t>(const std::string &)>;

/// Evaluates `text`. The Error's message names the expression; its place is
/// the caller's to add.
Expected<int64_t> evaluate(const std::string &text, const Lookup &lookup);

} // namespace k2c

#endif // K2C_LIB_MODEL_EXPRESSION_H
