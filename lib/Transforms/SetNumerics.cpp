//===- SetNumerics.cpp - Orders of accumulation, from shapes alone --------===//
//
// Numerics N1, N3, N5. The bits of a logit must not depend on batch, chunk, threads, ranks or tiles, so the order of
// every sum is fixed here, before any plan exists, and only read afterwards:
//
//   contraction of K     #nn.tree<L>      L = the largest power of two <= K / 512, within 1..8
//   attention row        #nn.softmax<block = 64, split = by_position>
//   combine of E experts #moe.tree<2^m>   2^m leaves of E / 2^m experts, m maximal, at most 7
//
//===----------------------------------------------------------------------===//
#include "Orders.h"
#include "dialects/Mla/Mla.h"
#include "dialects/Moe/Moe.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/Remark.h"
#include "k2rt/numerics.h"
#include "mlir/IR/BuiltinOps.h"

namespace k2c {
#define GEN_PASS_DEF_SETNUMERICS
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// N4: what each kind of segment runs. Draft verification and recomputation count as generated.
mla::FormsAttr formsOf(MLIRContext *context, nn::MlaForm form) {
  mla::Form prompt = form == nn::MlaForm::Phased     ? mla::Form::Table
                     : form == nn::MlaForm::Absorbed ? mla::Form::Absorbed
                                                     : mla::Form::Expanded;
  mla::Form generated = form == nn::MlaForm::Expanded ? mla::Form::Expanded : mla::Form::Absorbed;
  return mla::FormsAttr::get(context, prompt, generated);
}

struct SetNumerics : impl::SetNumericsBase<SetNumerics> {
  using SetNumericsBase::SetNumericsBase;

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Model, Form::Distributed)))
      return signalPassFailure();
    std::optional<nn::ComputeType> type = nn::symbolizeComputeType(compute);
    std::optional<nn::MlaForm> form = nn::symbolizeMlaForm(mla);
    if (!type || !form) {
      getOperation().emitError() << "set-numerics: compute '" << compute << "' with mla '" << mla
                                 << "' is unknown; compute is f32 or bf16, mla is phased, absorbed or expanded";
      return signalPassFailure();
    }
    // Of bf16, each target class has bits of its own (N6); f32 has one set on every target with FMA.
    StringRef bitClass = *type == nn::ComputeType::F32 ? "f32" : "bf16-x86";
    int64_t count = 0;
    getOperation().walk([&](nn::ReductionOp op) { count += declareOrders(op); });
    getOperation().walk([&](mla::AttentionOp op) { op.setFormsAttr(formsOf(&getContext(), *form)); });
    getOperation()->setAttr(nn::NnDialect::numericsAttrName,
                            nn::NumericsAttr::get(&getContext(), K2RT_NUMERICS_VERSION, *type, *form, bitClass));
    remark(getOperation().getLoc(), "set-numerics", "orders", std::to_string(count) + " reductions have their order",
           {{"reductions", count}});
  }
};

} // namespace
} // namespace k2c
