//===- Remark.h - How passes say what they decided ------------------------===//
//
// Every decision is a remark whose category is the pass's flag, with its numbers as metrics. MLIR's remark API, which
// moves with each release, is included by Remark.cpp
// (and Pipelines/Remarks.cpp, which collects).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_TRANSFORMS_REMARK_H
#define K2C_TRANSFORMS_REMARK_H

#include "mlir/IR/Location.h"
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>

namespace k2c {

/// One number of a decision: its name with the unit in it ("peak_bytes"), and its value.
using Metric = std::pair<llvm::StringRef, std::variant<int64_t, double>>;

/// Reports decision `name` of pass `category` at `loc`. Shown by `k2c compile --remarks` and `k2c-opt
/// --remarks-filter`.
void remark(mlir::Location loc, llvm::StringRef category, llvm::StringRef name, const std::string &text,
            std::initializer_list<Metric> metrics = {});

} // namespace k2c

#endif // K2C_TRANSFORMS_REMARK_H
