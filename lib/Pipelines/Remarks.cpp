//===- Remarks.cpp - Every decision of a compile, as text -----------------===//
#include "Remarks.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace k2c {

namespace {

class Collector : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit Collector(std::string &text) : text(text) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    std::string words, metrics;
    for (const remark::detail::Remark::Arg &arg : remark.getArgs()) {
      if (arg.key == "Remark")
        words += arg.val;
      else
        metrics += (metrics.empty() ? "" : ", ") + arg.key + " = " + arg.val;
    }
    text += "[" + remark.getCategoryName().str() + "] " + words + (metrics.empty() ? "" : " {" + metrics + "}") + "\n";
  }

private:
  std::string &text;
};

} // namespace

void collectRemarks(MLIRContext &context, std::string &text) {
  remark::RemarkCategories all{".*", ".*", ".*", ".*", ".*"};
  // Fails only for a malformed pattern.
  (void)remark::enableOptimizationRemarks(context, std::make_unique<Collector>(text),
                                          std::make_unique<remark::RemarkEmittingPolicyAll>(), all);
}

} // namespace k2c
