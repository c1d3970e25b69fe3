//===- EmitWarpTest.cpp - What cannot be spread over the lanes of a warp ---------------------------===//
#include "k2c/Kernels/Nvidia.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

/// What spreading a module of a function with this body says; empty: nothing.
std::string refusal(const std::string &body, int64_t warps = 4, const std::string &attributes = "") {
  mlir::MLIRContext context;
  loadKernelDialects(context);
  std::string said;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    said += diagnostic.str();
    return mlir::success();
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "llvm.func @k(%worker: !llvm.ptr, %args: !llvm.ptr) -> i32" + attributes +
          " {\n%ok = llvm.mlir.constant(0 : i32) : i32\n" + body + "llvm.return %ok : i32 }",
      &context);
  EXPECT_TRUE(module) << said;
  const bool isSpread = mlir::succeeded(spreadOverWarps(*module, warps));
  EXPECT_EQ(isSpread, said.empty());
  return said;
}

TEST(EmitWarp, ElementsThatChooseTheirLaneAreRefused) {
  EXPECT_EQ(refusal("%v = llvm.load %args : !llvm.ptr -> vector<32xf32>\n"
                    "%e = llvm.extractelement %v[%ok : i32] : vector<32xf32>\n"),
            "llvm.extractelement does not lie over the lanes of a warp");
}

TEST(EmitWarp, SharedMemoryHasAnEnd) {
  const std::string space = "%size = arith.constant 20000 : i64\n"
                            "%space = llvm.alloca %size x i8 : (i64) -> !llvm.ptr\n",
                    vector = "%v = llvm.load %space : !llvm.ptr -> vector<32xf32>\n",
                    scalar = "%v = llvm.load %space : !llvm.ptr -> f32\n";
  EXPECT_EQ(refusal(space + vector),
            "needs 20096 bytes of shared memory for each of 4 warps, and 0 for all; a CTA has 49152");
  EXPECT_EQ(refusal(space + scalar), "") << "it is each lane's own";
  const std::string list = "%n = llvm.load %args : !llvm.ptr -> i64\n"
                           "%at = llvm.getelementptr %space[%n] : (!llvm.ptr, i64) -> !llvm.ptr, f32\n"
                           "%e = llvm.load %at : !llvm.ptr -> f32\n";
  EXPECT_EQ(refusal(space + list),
            "needs 20096 bytes of shared memory for each of 4 warps, and 0 for all; a CTA has 49152");
  const std::string ofCta = "%size = arith.constant 20000 : i64\n"
                            "%space = llvm.alloca %size x i8 {\"k2c-cta\"} : (i64) -> !llvm.ptr\n";
  EXPECT_EQ(refusal(ofCta + vector), "") << "the warps share it";
}

TEST(EmitWarp, WarpsOfACtaAreAsManyAsTheirCode) {
  EXPECT_EQ(refusal("", 8), "");
  EXPECT_EQ(refusal("", 8, " attributes {passthrough = [\"k2c-cta\"]}"), "is for CTAs of 4 warps, not of 8");
  EXPECT_EQ(refusal("", 4, " attributes {passthrough = [\"k2c-cta\"]}"), "");
}

} // namespace
