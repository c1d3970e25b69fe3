//===- NvidiaTest.cpp - PTX of modules: architectures, the entry, ptxas ---------------------------===//
#include "k2c/Target/Nvidia.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

using namespace k2c;

namespace {

struct NvidiaTest : testing::Test {
  llvm::SmallString<128> folder;
  mlir::MLIRContext context;
  NvidiaTarget target = *NvidiaTarget::forArch("sm_80");

  void SetUp() override {
    llvm::sys::fs::createUniqueDirectory("k2c-nvidia-test", folder);
    context.loadDialect<mlir::LLVM::LLVMDialect>();
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }
  std::string path(const char *name) const { return (folder + "/" + name).str(); }

  Expected<std::string> ptx(const std::string &text, const char *symbol = "k", int64_t arguments = 2) {
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    return ptxOf(*module, symbol, arguments, target);
  }
};

/// *args[1] = *args[0] * *args[0] + *args[0].
const char *square = R"(
  llvm.func @k(%worker: !llvm.ptr, %args: !llvm.ptr) -> i32 {
    %from = llvm.load %args : !llvm.ptr -> !llvm.ptr
    %1 = llvm.getelementptr %args[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %to = llvm.load %1 : !llvm.ptr -> !llvm.ptr
    %x = llvm.load %from : !llvm.ptr -> f32
    %2 = llvm.fmul %x, %x : f32
    %3 = llvm.fadd %2, %x : f32
    llvm.store %3, %to : f32, !llvm.ptr
    %ok = llvm.mlir.constant(0 : i32) : i32
    llvm.return %ok : i32
  })";

size_t count(const std::string &text, const std::string &part) { return llvm::StringRef(text).count(part); }

TEST_F(NvidiaTest, UnknownArchitecturesAreRefusedWithThoseThatAreKnown) {
  Expected<NvidiaTarget> found = NvidiaTarget::forArch("sm_70");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().text(), "architecture sm_70: is not known; use one of sm_80, sm_89, sm_90a, sm_100, sm_120");
}

TEST_F(NvidiaTest, EveryArchitectureHasCode) {
  for (const char *arch : {"sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"}) {
    target = *NvidiaTarget::forArch(arch);
    Expected<std::string> text = ptx(square);
    ASSERT_TRUE(text) << text.error().text();
    EXPECT_EQ(count(*text, std::string(".target ") + arch), 1u) << *text;
  }
}

TEST_F(NvidiaTest, TheEntryHasTheLaunchTheArgumentsAndItsThreads) {
  target.threads = 96;
  const std::string text = *ptx(square);
  EXPECT_EQ(count(text, ".entry"), 1u);
  EXPECT_EQ(count(text, ".visible .entry k("), 1u);
  EXPECT_EQ(count(text, ".param .align 8 .b8 k_param_0[80]"), 1u) << text;
  EXPECT_EQ(count(text, ".param .u64 k_param_"), 2u);
  EXPECT_EQ(count(text, ".reqntid 96"), 1u);
  EXPECT_EQ(count(text, ".local"), 0u) << "worker and arguments are registers";
  EXPECT_EQ(count(text, ".func"), 0u);
}

// Rounded twice, subnormals being zeros: ptxas joins a product and a sum without .rn.
TEST_F(NvidiaTest, FloatsAreRoundedAsWritten) {
  const std::string text = *ptx(square);
  EXPECT_EQ(count(text, "mul.rn.ftz.f32"), 1u);
  EXPECT_EQ(count(text, "add.rn.ftz.f32"), 1u);
  EXPECT_EQ(count(text, "fma"), 0u);
}

TEST_F(NvidiaTest, AModuleWithoutTheFunctionIsRefused) {
  EXPECT_EQ(ptx(square, "other").error().text(), "other: the module has no function (worker, arguments) of this name");
}

TEST_F(NvidiaTest, TextsAreKeptByWhatDecidesThem) {
  const auto parse = [](mlir::MLIRContext *context) {
    context->loadDialect<mlir::LLVM::LLVMDialect>();
    return mlir::parseSourceString<mlir::ModuleOp>(square, context);
  };
  ObjectOptions options;
  options.cacheDir = path("cache");
  std::vector<PtxJob> jobs = {{{"square", square, parse}, "k", 2}, {{"wider", square, parse}, "k", 3}};
  const std::vector<std::string> first = *compilePtx(jobs, target, options), again = *compilePtx(jobs, target, options);
  EXPECT_EQ(first, again);
  EXPECT_NE(first[0], first[1]);
  NvidiaTarget warps = target;
  warps.worker = NvidiaTarget::Worker::Warp;
  EXPECT_NE((*compilePtx(jobs, warps, options))[0], first[0]);
  EXPECT_EQ((*llvm::MemoryBuffer::getFile(first[0]))->getBuffer().str(), *ptx(square));
}

TEST_F(NvidiaTest, PtxasIsWhereTheEnvironmentSays) {
  std::ofstream(path("ptxas")) << "#!/bin/sh\n"
                                  "echo \"ptxas info : 4 bytes stack frame, 8 bytes spill stores, 12 bytes spill "
                                  "loads\"; echo 'Used 40 registers, 16 bytes smem'; echo made >$5\n";
  llvm::sys::fs::setPermissions(path("ptxas"), llvm::sys::fs::all_all);
  setenv("K2C_PTXAS", path("ptxas").c_str(), 1);
  ASSERT_EQ(findPtxas(), path("ptxas"));
  Expected<PtxasReport> report = assemble(path("ptxas"), path("k.ptx"), "sm_80", path("k.cubin"));
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->registers, 40);
  EXPECT_EQ(report->spillBytes, 20);
  EXPECT_EQ(report->sharedBytes, 16);
  EXPECT_TRUE(llvm::sys::fs::exists(report->cubin));
  setenv("K2C_PTXAS", path("absent").c_str(), 1);
  EXPECT_EQ(findPtxas(), std::nullopt);
  unsetenv("K2C_PTXAS");
}

TEST_F(NvidiaTest, WhatPtxasRefusesIsAnErrorOfTheFile) {
  std::ofstream(path("ptxas")) << "#!/bin/sh\necho 'no such instruction'; exit 255\n";
  llvm::sys::fs::setPermissions(path("ptxas"), llvm::sys::fs::all_all);
  Expected<PtxasReport> report = assemble(path("ptxas"), path("k.ptx"), "sm_80", path("k.cubin"));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().text(), path("k.ptx") + ": ptxas refuses it: no such instruction");
}

TEST_F(NvidiaTest, PtxasTakesWhatIsGenerated) {
  const std::optional<std::string> ptxas = findPtxas();
  if (!ptxas)
    GTEST_SKIP() << "this machine has no ptxas";
  for (const char *arch : {"sm_80", "sm_90a", "sm_120"}) {
    target = *NvidiaTarget::forArch(arch);
    std::ofstream(path("k.ptx")) << *ptx(square);
    Expected<PtxasReport> report = assemble(*ptxas, path("k.ptx"), arch, path("k.cubin"));
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_GT(report->registers, 0);
    EXPECT_EQ(report->spillBytes, 0);
  }
}

} // namespace
