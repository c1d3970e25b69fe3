//===- NodeCase.h - what an op gives for some operands ---------------------------===//
//
// A case is a model with its operands as initializers given/NAME and what it gives as expected/NAME, as
// test/Onnx/node_cases.py writes. It is folded with all operands open; where that is refused, with integers known, then
// with all known, since shapes and counts are often operands. Then its terms are evaluated.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_ONNX_NODECASE_H
#define K2C_UNIT_ONNX_NODECASE_H

#include <string>

namespace k2c::onnx::test {

/// How a case ended.
struct CaseOutcome {
  enum class Kind {
    Right,   ///< each result has its shape and its elements
    Refused, ///< by the reader or the fold
    Wrong
  } kind = Kind::Wrong;
  std::string message; ///< of one that is not right
};

CaseOutcome runCase(const std::string &path);

} // namespace k2c::onnx::test

#endif // K2C_UNIT_ONNX_NODECASE_H
