//===- InterfacesTest.cpp - What passes see of an op by its interfaces ----===//
#include "dialects/Moe/Moe.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

const char *const program = R"(
  !x = tensor<?x64xf32, #nn.rows<token>>
  !e = tensor<?x8xi32, #nn.rows<token>>
  !w = tensor<?x8xf32, #nn.rows<token>>
  nn.weights @q "layers.{layer}.q" over (layer = 0 to 3) : tensor<48x64xbf16>
  nn.weights @qb "layers.{layer}.qb" over (layer = 0 to 3) : tensor<48xbf16>
  nn.weights @gu "layers.{layer}.{expert}.{g|u}" over (layer = 0 to 3, expert = 0 to 16) : tensor<16x2x96x64xbf16>
  nn.weights @down "layers.{layer}.{expert}.d" over (layer = 0 to 3, expert = 0 to 16) : tensor<16x64x96xbf16>
  func.func @f(%l: index, %x: !x, %e: !e, %w: !w, %q: tensor<48x64xbf16>) {
    %0 = nn.linear %x, @q[%l] bias @qb[%l] : !x -> tensor<?x48xf32, #nn.rows<token>>
    %1 = moe.experts %x, %e, %w, @gu[%l], @down[%l] experts 16 inner 96 act silu : !x, !e, !w -> !x
    return
  })";

struct Interfaces : testing::Test {
  Interfaces() {
    context.loadDialect<nn::NnDialect, moe::MoeDialect, mlir::func::FuncDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(program, &context);
  }

  template <class Op> Op find() {
    Op found;
    module->walk([&](Op op) { found = op; });
    return found;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(Interfaces, ReductionsNameTheirLengths) {
  auto reductions = find<moe::ExpertsOp>().getReductions();
  ASSERT_EQ(reductions.size(), 3u);
  EXPECT_EQ(reductions[0].length, 64);
  EXPECT_EQ(reductions[1].length, 96);
  EXPECT_EQ(reductions[2].kind, nn::ReductionKind::Combine);
  EXPECT_EQ(reductions[2].length, 16);
  EXPECT_FALSE(reductions[2].order);
}

TEST_F(Interfaces, AnOrderIsSetByIndex) {
  auto linear = find<nn::LinearOp>();
  auto order = nn::TreeAttr::get(&context, 4);
  mlir::cast<nn::ReductionOp>(*linear).setReductionOrder(0, order);
  EXPECT_EQ(linear.getOrderAttr(), order);
  EXPECT_EQ(linear.getReductions()[0].order, order);
}

TEST_F(Interfaces, BindingReplacesSymbolAndLayer) {
  auto linear = find<nn::LinearOp>();
  ASSERT_EQ(linear.getWeightRefs().size(), 2u);
  mlir::Value weight = find<mlir::func::FuncOp>().getArgument(4);
  mlir::cast<nn::WeightUser>(*linear).bindWeight(0, weight);
  EXPECT_FALSE(linear.getWeightAttr());
  EXPECT_EQ(linear.getWeightRefs()[0].value(), weight);
  EXPECT_EQ(linear.getWeightRefs()[1].family.getValue(), "qb");
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
}

TEST_F(Interfaces, RowSpaceOfAComposite) {
  auto experts = find<moe::ExpertsOp>();
  EXPECT_EQ(mlir::cast<nn::RowSpaceOp>(*experts).getRowSpace().getKind(), nn::RowKind::Token);
}

TEST(Indices, OrdinalsAreThoseOfTheAscendingList) {
  mlir::MLIRContext context;
  context.loadDialect<nn::NnDialect>();
  IndexRange even{2, 9, 2}, odd{3, 8, 4};
  auto one = nn::IndicesAttr::get(&context, even);
  EXPECT_EQ(one.size(), 4);
  EXPECT_EQ(one.ordinal(6), 2);
  EXPECT_EQ(one.ordinal(5), -1);
  EXPECT_EQ(one.ordinal(10), -1);
  auto two = nn::IndicesAttr::get(&context, {odd, even}); // 2, 3, 4, 6, 7, 8
  EXPECT_EQ(two.size(), 6);
  EXPECT_EQ(two.ordinal(2), 0);
  EXPECT_EQ(two.ordinal(3), 1);
  EXPECT_EQ(two.ordinal(8), 5);
  EXPECT_EQ(two.ordinal(5), -1);
}

TEST(Indices, AnEmptySetIsNone) {
  mlir::MLIRContext context;
  context.loadDialect<nn::NnDialect>();
  std::string said;
  mlir::ScopedDiagnosticHandler keep(&context, [&](mlir::Diagnostic &diagnostic) { said += diagnostic.str(); });
  auto emitError = [&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); };
  EXPECT_FALSE(nn::IndicesAttr::getChecked(emitError, &context, llvm::ArrayRef<IndexRange>()));
  EXPECT_EQ(said, "'#nn.indices' [C1] expects at least one range");
}

} // namespace
