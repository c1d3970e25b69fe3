//===- Remark.cpp - How passes say what they decided ----------------------===//
#include "k2c/Transforms/Remark.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace k2c {

void remark(Location loc, StringRef category, StringRef name, const std::string &text,
            std::initializer_list<Metric> metrics) {
  auto flight = remark::analysis(loc, remark::RemarkOpts::name(name).category(category));
  flight << text;
  for (const Metric &metric : metrics)
    std::visit([&](auto value) { flight << remark::metric(metric.first, value); }, metric.second);
}

} // namespace k2c
