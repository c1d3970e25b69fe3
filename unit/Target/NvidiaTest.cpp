//===- NvidiaTest.cpp - PTX of modules: architectures, the entry, ptxas ---------------------------===//
#include "k2c/Target/Nvidia.h"
#include "../LimitedChild.h"
#include "lib/Target/Nvidia/CubinName.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace k2c;

namespace {

struct NvidiaTest : testing::Test {
  llvm::SmallString<128> folder;
  mlir::MLIRContext context;
  NvidiaTarget target = *NvidiaTarget::forArch("sm_80");

  void SetUp() override {
    setenv("K2C_NVDISASM", "/nonexistent", 1);
    llvm::sys::fs::createUniqueDirectory("k2c-nvidia-test", folder);
    context.loadDialect<mlir::LLVM::LLVMDialect>();
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }
  std::string path(const char *name) const { return (folder + "/" + name).str(); }

  void script(const char *name, const std::string &text) {
    std::ofstream(path(name)) << "#!/bin/sh\n" << text << "\n";
    llvm::sys::fs::setPermissions(path(name), llvm::sys::fs::all_all);
  }
  /// The cubin of a text that is no kernel's, by the script or by a ptxas.
  Expected<std::vector<Cubin>> assemble(const std::string &text, std::string ptxas = "") {
    std::ofstream(path("k.ptx")) << text;
    ObjectOptions options;
    options.cacheDir = path("cache");
    if (ptxas.empty())
      ptxas = path("ptxas");
    Expected<std::string> version = toolVersion(ptxas);
    if (!version)
      return version.takeError();
    return compileCubins({{"linear", path("k.ptx")}}, target.arch, {ptxas, *version}, options);
  }

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

/// What a script begins with that is asked for its version.
const std::string says = "[ $1 = --version ] && echo 'release 13.0, V13.0.88' && exit\n";

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
  EXPECT_EQ(count(text, ".minnctapersm 2"), 1u);
  EXPECT_EQ(count(text, "nounroll"), 0u) << "no loop of it is long";
  EXPECT_EQ(count(text, ".local"), 0u) << "worker and arguments are registers";
  EXPECT_EQ(count(text, ".func"), 0u);
}

// Warps that meet at barriers go on or return together.
TEST_F(NvidiaTest, ACtaThatIsTheWorkerAgreesOnTheStatus) {
  EXPECT_EQ(count(*ptx(square), "bar.red"), 0u);
  const std::string head = "-> i32 {", ofCta = "-> i32 attributes {passthrough = [\"k2c-cta\"]} {";
  std::string body = square;
  ASSERT_NE(body.find(head), body.npos);
  const std::string text = *ptx(body.replace(body.find(head), head.size(), ofCta));
  EXPECT_EQ(count(text, "bar.red.or.pred"), 1u) << text;
  EXPECT_EQ(count(text, ".reqntid 128"), 1u);
}

// Rounded twice, subnormals being zeros: ptxas joins a product and a sum without .rn.
TEST_F(NvidiaTest, FloatsAreRoundedAsWritten) {
  const std::string text = *ptx(square);
  EXPECT_EQ(count(text, "mul.rn.ftz.f32"), 1u);
  EXPECT_EQ(count(text, "add.rn.ftz.f32"), 1u);
  EXPECT_EQ(count(text, "fma"), 0u);
}

/// y[i] = the sum of x[i * 1000 + j] for j below 500, for i below what y[0] says.
const char *const nest = R"(
  llvm.func @k(%worker: !llvm.ptr, %args: !llvm.ptr) -> i32 {
    %x = llvm.load %args : !llvm.ptr -> !llvm.ptr
    %at1 = llvm.getelementptr %args[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %y = llvm.load %at1 : !llvm.ptr -> !llvm.ptr
    %none = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %rows = llvm.load %y : !llvm.ptr -> i64
    %columns = llvm.mlir.constant(500 : i64) : i64
    %stride = llvm.mlir.constant(1000 : i64) : i64
    %zero = llvm.mlir.constant(0.0 : f32) : f32
    %ok = llvm.mlir.constant(0 : i32) : i32
    llvm.br ^row(%none : i64)
  ^row(%i: i64):
    %first = llvm.mul %i, %stride : i64
    llvm.br ^column(%none, %zero : i64, f32)
  ^column(%j: i64, %sum: f32):
    %at = llvm.add %first, %j : i64
    %from = llvm.getelementptr %x[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %element = llvm.load %from : !llvm.ptr -> f32
    %next = llvm.fadd %sum, %element : f32
    %j1 = llvm.add %j, %one : i64
    %more = llvm.icmp "slt" %j1, %columns : i64
    llvm.cond_br %more, ^column(%j1, %next : i64, f32), ^end
  ^end:
    %to = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %next, %to : f32, !llvm.ptr
    %i1 = llvm.add %i, %one : i64
    %again = llvm.icmp "slt" %i1, %rows : i64
    llvm.cond_br %again, ^row(%i1 : i64), ^done
  ^done:
    llvm.return %ok : i32
  })";

// As a pointer that goes from row to row it would take a register from the kernel's beginning to its end.
TEST_F(NvidiaTest, AddressesOfAnInnerLoopBeginWithIt) {
  const std::string text = *ptx(nest);
  EXPECT_TRUE(llvm::Regex("mad\\.lo\\.s64[^;]*, 4000,").match(text)) << text;
  EXPECT_FALSE(llvm::Regex("add\\.s64[^;]*, 4000;").match(text)) << text;
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
  NvidiaTarget other = target;
  other.threads = 64;
  EXPECT_NE((*compilePtx(jobs, other, options))[0], first[0]);
  EXPECT_EQ((*llvm::MemoryBuffer::getFile(first[0]))->getBuffer().str(), *ptx(square));
}

TEST_F(NvidiaTest, PtxasIsWhereTheEnvironmentSays) {
  script("ptxas", "");
  setenv("K2C_PTXAS", path("ptxas").c_str(), 1);
  EXPECT_EQ(findPtxas(), path("ptxas"));
  setenv("K2C_PTXAS", path("absent").c_str(), 1);
  EXPECT_EQ(findPtxas(), std::nullopt);
  unsetenv("K2C_PTXAS");
}

TEST_F(NvidiaTest, ACubinHasWhatPtxasSaysOfIt) {
  script("ptxas", says + "echo 'info: 40 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' >&2\n"
                         "echo 'info: Used 40 registers, 16 bytes smem' >&2; printf 'made\\0of' >$5; cat $3 >>$5");
  Expected<std::vector<Cubin>> cubins = assemble("text");
  ASSERT_TRUE(cubins) << cubins.error().text();
  EXPECT_EQ(cubins->front().code, std::string("made\0oftext", 11));
  EXPECT_EQ(cubins->front().registers, 40);
  EXPECT_EQ(cubins->front().spillBytes, 0);
  EXPECT_EQ(cubins->front().sharedBytes, 16);
}

TEST_F(NvidiaTest, CubinsAreKeptByTextArchitectureAndPtxas) {
  script("ptxas", says + "echo run >>" + path("runs") + "; echo made >$5");
  auto runs = [&] { return count((*llvm::MemoryBuffer::getFile(path("runs")))->getBuffer().str(), "run"); };
  ASSERT_TRUE(assemble("text"));
  ASSERT_TRUE(assemble("text"));
  EXPECT_EQ(runs(), 1u);
  ASSERT_TRUE(assemble("other text"));
  target = *NvidiaTarget::forArch("sm_90a");
  ASSERT_TRUE(assemble("text"));
  EXPECT_EQ(runs(), 3u);
  script("ptxas", "[ $1 = --version ] && echo ', V13.1' && exit; echo run >>" + path("runs") + "; echo made >$5");
  ASSERT_TRUE(assemble("text"));
  EXPECT_EQ(runs(), 4u);
}

TEST_F(NvidiaTest, ACubinThatPassedOtherChecksIsNotTaken) {
  script("ptxas", says + "echo run >>" + path("runs") + "; echo made >$5");
  auto runs = [&] { return count((*llvm::MemoryBuffer::getFile(path("runs")))->getBuffer().str(), "run"); };
  auto file = [&](const std::string &checkHash) {
    return path("cache") + "/" + cubinName("text", "sm_80", {path("ptxas"), "13.0.88"}, std::nullopt, checkHash);
  };
  ASSERT_TRUE(assemble("text"));
  ASSERT_FALSE(llvm::sys::fs::rename(file(cubinCheckHash), file("other checks")));
  ASSERT_TRUE(assemble("text"));
  EXPECT_EQ(runs(), 2u);
  EXPECT_TRUE(llvm::sys::fs::exists(file(cubinCheckHash)));
}

TEST_F(NvidiaTest, WhatPtxasRefusesIsAnErrorOfTheKernel) {
  script("ptxas", says + "echo 'no such instruction' >&2; exit 255");
  EXPECT_EQ(
      assemble("text").error().text(),
      "linear: ptxas failed: no such instruction; name a later ptxas with K2C_PTXAS, or one that is not there: the "
      "driver compiles PTX");
  script("ptxas", says + "kill -9 $$");
  EXPECT_EQ(assemble("text").error().message, "ptxas failed: ended by signal Killed");
  script("ptxas", says + "true");
  EXPECT_EQ(assemble("text").error().text(), "linear: ptxas wrote no code; name another with K2C_PTXAS");
  EXPECT_EQ(compileCubins({{"linear", "/nonexistent"}}, "sm_80", {path("ptxas"), "13"}, {}).error().text(),
            "/nonexistent: cannot be read: No such file or directory");
}

/// Whether a process of this number has not ended; a zombie has.
static bool runs(const std::string &process) {
  auto words = llvm::MemoryBuffer::getFileAsStream("/proc/" + process + "/cmdline");
  return words && !(*words)->getBuffer().empty();
}

TEST_F(NvidiaTest, PtxasEndsWithTheCompilerThatStartedIt) {
  script("ptxas", says + "echo $$ >" + path("started") + "; mv " + path("started") + " " + path("running") +
                      "; exec sleep 1000");
  const pid_t compiler = fork();
  if (compiler == 0) {
    (void)assemble("text");
    _exit(0);
  }
  while (!llvm::sys::fs::exists(path("running")))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const std::string ptxas = (*llvm::MemoryBuffer::getFile(path("running")))->getBuffer().trim().str();
  const auto waitUntil = [&](bool running) { // or until the test's limit
    while (runs(ptxas) != running)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  };
  waitUntil(true); // between the script and its last program it seems to have ended
  kill(compiler, SIGKILL);
  waitpid(compiler, nullptr, 0);
  waitUntil(false);
}

TEST_F(NvidiaTest, APtxasHasAVersion) {
  script("ptxas", says);
  EXPECT_EQ(*toolVersion(path("ptxas")), "13.0.88");
  script("ptxas", "echo ptxas");
  EXPECT_EQ(toolVersion(path("ptxas")).error().text(),
            path("ptxas") + ": does not say its version; name a program of NVIDIA's toolkit");
}

TEST_F(NvidiaTest, WhatAToolSaysNeedsAFile) {
  script("ptxas", says);
  EXPECT_EQ(test::saidInChild([&] {
              test::limit(RLIMIT_NOFILE, 0);
              return toolVersion(path("ptxas")).error().text();
            }),
            "a file in memory: cannot be made: Too many open files");
}

TEST_F(NvidiaTest, CodeThatSpillsIsRefusedAndNotKept) {
  script("ptxas", says + "echo '8 bytes spill stores, 12 bytes spill loads; Used 255 registers' >&2; echo made >$5");
  for (int time = 0; time < 2; ++time)
    EXPECT_EQ(assemble("text").error().message,
              "ptxas spills 20 bytes of a thread beside 255 registers, and 0 are allowed");
}

TEST_F(NvidiaTest, LoopsAreLookedAtWhereNvdisasmIs) {
  script("ptxas", says + "echo made >$5");
  script("nvdisasm", "[ $1 = --print-code ] && echo '.L_1:'; echo '/*0*/ LDL R1, [R1] ;'; "
                     "echo '/*10*/ @P0 BRA `(.L_1) ;'");
  ASSERT_TRUE(assemble("text"));
  setenv("K2C_NVDISASM", path("nvdisasm").c_str(), 1);
  EXPECT_EQ(assemble("text").error().message,
            "a main loop of 2 instructions has 1 of LDL, which reads local memory, and 0 are allowed");
  script("nvdisasm", "echo 'unknown code' >&2; exit 1");
  EXPECT_EQ(assemble("text").error().text(),
            "linear: nvdisasm failed: unknown code; name another with K2C_NVDISASM, one of the toolkit that ptxas is "
            "of or a later one");
}

TEST_F(NvidiaTest, PtxasTakesWhatIsGenerated) {
  const std::optional<std::string> ptxas = findPtxas();
  if (!ptxas)
    GTEST_SKIP() << "this machine has no ptxas";
  for (const char *arch : {"sm_80", "sm_90a", "sm_120"}) {
    target = *NvidiaTarget::forArch(arch);
    Expected<std::vector<Cubin>> cubins = assemble(*ptx(square), *ptxas);
    ASSERT_TRUE(cubins) << cubins.error().text();
    EXPECT_GT(cubins->front().registers, 0);
    EXPECT_EQ(cubins->front().code.substr(0, 4), "\x7f"
                                                 "ELF");
  }
}

} // namespace
