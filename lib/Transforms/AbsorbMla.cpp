//===- AbsorbMla.cpp - Latent attention without expanded keys -------------===//
//
// With c the cached latent of a key and q the nope part of a query,
//
//   q . (W_UK c)  =  (W_UK^T q) . c          absorbed: the query goes to the latent space once
//   sum_t p_t (W_UV c_t)  =  W_UV (sum_t p_t c_t)      and the output comes back once
//
// so a key costs 2 (2 d_c + d_R) FLOP a head absorbed and 2 (d_h + d_R + d_v) expanded, plus its expansion, which many
// queries share. The table of the plan chooses by the segment's new tokens (N4):
//
//   %o = mla.attention %q, %kv, @kvb[%l] forms <prompt = table, generated = absorbed>
//   ->  %qn, %qr = nn.split %q
//       %ql = mla.absorb_query %qn, @kvb_uk_t[%l]
//       %ol = mla.attention_absorbed %ql, %qr, %kv
//       %oa = mla.expand_output %ol, @kvb_uv[%l]
//       %oe = mla.attention_expanded %q, %kv, @kvb_uk[%l], @kvb_uv[%l]
//       %o = mla.merge_forms %oa, %oe
//
// Where the plan's `expanded_from` lets no prompt run expanded, only the absorbed half is made.
//
// DeepSeek V2, section 2.1; "Modelling Kimi K2 step by step" (papers/001).
//===----------------------------------------------------------------------===//
#include "Orders.h"
#include "dialects/Mla/Mla.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/Remark.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace k2c {
#define GEN_PASS_DEF_ABSORBMLA
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// Rewrites one module; families of W_UK and W_UV are made once for each family of kv_b, which nothing reads
/// afterwards.
class Absorber {
public:
  Absorber(ModuleOp module, int64_t expandedFrom) : module(module), symbols(module), expandedFrom(expandedFrom) {}

  LogicalResult rewrite(mla::AttentionOp op);
  void eraseReplacedFamilies();

private:
  bool runs(mla::FormsAttr forms, mla::Form form) const;
  FlatSymbolRefAttr slice(nn::WeightsOp kvb, StringRef suffix, int64_t from, int64_t to, bool transpose);
  Value absorbed(OpBuilder &b, mla::AttentionOp op, nn::WeightsOp kvb);
  Value expanded(OpBuilder &b, mla::AttentionOp op, nn::WeightsOp kvb);

  ModuleOp module;
  SymbolTable symbols;
  int64_t expandedFrom;                      ///< of the plan
  llvm::StringMap<FlatSymbolRefAttr> slices; ///< by family of kv_b and suffix
  llvm::SetVector<nn::WeightsOp> replaced;   ///< families of kv_b
};

/// The family that reads rows [from, to) of each head of kv_b, transposed for the absorbed query.
FlatSymbolRefAttr Absorber::slice(nn::WeightsOp kvb, StringRef suffix, int64_t from, int64_t to, bool transpose) {
  std::string name = (kvb.getSymName() + suffix).str();
  FlatSymbolRefAttr &known = slices[name];
  if (!known) {
    RankedTensorType whole = kvb.getTensorType();
    auto view = nn::SliceAttr::get(kvb.getContext(), whole.getShape(), /*dim=*/1, from, to, transpose);
    OpBuilder b(kvb);
    b.setInsertionPointAfter(kvb);
    auto family = nn::WeightsOp::create(b, kvb.getLoc(), b.getStringAttr(name), kvb.getSourceAttr(),
                                        kvb.getDomainsAttr(), kvb.getStorageAttr(), view, /*held=*/IntegerAttr(),
                                        /*parts=*/IntegerAttr(), /*along=*/IntegerAttr(),
                                        TypeAttr::get(RankedTensorType::get(view.getShape(), whole.getElementType())));
    known = FlatSymbolRefAttr::get(symbols.insert(family));
  }
  return known;
}

Value Absorber::absorbed(OpBuilder &b, mla::AttentionOp op, nn::WeightsOp kvb) {
  Location loc = op.getLoc();
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  auto headsOf = [&](int64_t dims) {
    return RankedTensorType::get({query.getDimSize(0), query.getDimSize(1), dims}, query.getElementType(),
                                 query.getEncoding());
  };
  int64_t nope = op.getNope(), latent = op.getView().getType().getLatent();
  auto pieces = nn::SplitOp::create(b, loc, TypeRange{headsOf(nope), headsOf(op.getRope())}, op.getQuery());
  auto toLatent =
      mla::AbsorbQueryOp::create(b, loc, headsOf(latent), pieces.getResult(0), slice(kvb, "_uk_t", 0, nope, true),
                                 op.getKvbOperand(), op.getBatch(), nn::TreeAttr());
  auto attention = mla::AttentionAbsorbedOp::create(b, loc, headsOf(latent), toLatent, pieces.getResult(1),
                                                    op.getView(), op.getBatch(), op.getScaleAttr(), op.getOrderAttr());
  auto output =
      mla::ExpandOutputOp::create(b, loc, op.getType(), attention, slice(kvb, "_uv", nope, nope + op.getV(), false),
                                  op.getKvbOperand(), op.getBatch(), nn::TreeAttr());
  declareOrders(toLatent);
  declareOrders(output);
  return output;
}

Value Absorber::expanded(OpBuilder &b, mla::AttentionOp op, nn::WeightsOp kvb) {
  int64_t nope = op.getNope();
  return mla::AttentionExpandedOp::create(b, op.getLoc(), op.getType(), op.getQuery(), op.getView(),
                                          slice(kvb, "_uk", 0, nope, false), op.getKvbOperand(),
                                          slice(kvb, "_uv", nope, nope + op.getV(), false), op.getKvbOperand(),
                                          op.getBatch(), op.getScaleAttr(), op.getOrderAttr());
}

/// Whether some segment runs `form`: of what the table decides, the plan says which forms there are.
bool Absorber::runs(mla::FormsAttr forms, mla::Form form) const {
  auto reached = [&](mla::Form by) {
    if (by != mla::Form::Table)
      return by == form;
    return form == mla::Form::Expanded ? expandedFrom >= 0 : expandedFrom != 0;
  };
  return reached(forms.getPrompt()) || reached(forms.getGenerated());
}

LogicalResult Absorber::rewrite(mla::AttentionOp op) {
  auto kvb = op.getKvbAttr() ? symbols.lookup<nn::WeightsOp>(op.getKvbAttr().getValue()) : nn::WeightsOp();
  if (!kvb || kvb.getView())
    return op.emitOpError(
        "reads kv_b from a value or from a view; absorb-mla needs the whole family of the checkpoint");
  if (!op.getForms())
    return op.emitOpError("has no forms; run set-numerics before absorb-mla");
  OpBuilder b(op);
  Value result = runs(*op.getForms(), mla::Form::Absorbed) ? absorbed(b, op, kvb) : Value();
  if (runs(*op.getForms(), mla::Form::Expanded)) {
    Value other = expanded(b, op, kvb);
    result =
        result ? Value(mla::MergeFormsOp::create(b, op.getLoc(), op.getType(), result, other, op.getBatch())) : other;
  }
  op.replaceAllUsesWith(result);
  op.erase();
  replaced.insert(kvb);
  return success();
}

void Absorber::eraseReplacedFamilies() {
  for (nn::WeightsOp family : replaced)
    if (SymbolTable::symbolKnownUseEmpty(family, module))
      symbols.erase(family);
}

/// Says the crossover that the table of the plan stands for.
void remarkOn(mla::AttentionOp op, int64_t from) {
  bool table = op.getForms() && op.getForms()->getPrompt() == mla::Form::Table;
  std::string text = !table     ? "one form for every segment"
                     : from < 0 ? "prompt segments run absorbed at any length"
                                : "prompt segments of " + std::to_string(from) + " or more new tokens run expanded";
  remark(op.getLoc(), "absorb-mla", "crossover", text, {{"expanded_from_tokens", from}});
}

struct AbsorbMla : impl::AbsorbMlaBase<AbsorbMla> {
  using AbsorbMlaBase::AbsorbMlaBase;

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Model, Form::Distributed)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    SmallVector<mla::AttentionOp> work;
    module.walk([&](mla::AttentionOp op) { work.push_back(op); });
    if (work.empty())
      return;
    dist::PlanAttr plan = planOf(module);
    if (!plan) {
      work.front().emitOpError("is absorbed as dist.plan says; run attach-plan before absorb-mla");
      return signalPassFailure();
    }
    Absorber absorber(module, plan.getExpandedFrom());
    for (mla::AttentionOp op : work) {
      remarkOn(op, plan.getExpandedFrom());
      if (failed(absorber.rewrite(op)))
        return signalPassFailure();
    }
    absorber.eraseReplacedFamilies();
  }
};

} // namespace
} // namespace k2c
