//===- Remark.h - How passes say what they decided ------------------------===//
//
// Every decision is a remark whose category is the pass's flag, with its numbers as metrics. The only file that includes
// MLIR's remark API, which moves with each release.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_TRANSFORMS_REMARK_H
#define K2C_TRANSFORMS_REMARK_H

#include "mlir/IR/Remarks.h"
#include <initializer_list>
#include <string>
#include <utility>

namespace k2c {

/// One number of a decision: name and value with its unit in the name ("arena_bytes").
using Metric = std::pair<llvm::StringRef, double>;

/// Reports decision `name` of pass `category` at `loc`. Shown by `k2c compile --remarks` and `k2c-opt --remarks-filter`.
inline void remark(mlir::Location loc, llvm::StringRef category, llvm::StringRef name, const std::string &text,
                   std::initializer_list<Metric> metrics = {}) {
  auto flight = mlir::remark::analysis(loc, mlir::remark::RemarkOpts::name(name).category(category));
  flight << text;
  for (const Metric &metric : metrics)
    flight << mlir::remark::metric(metric.first, metric.second);
}

} // namespace k2c

#endif // K2C_TRANSFORMS_REMARK_H
