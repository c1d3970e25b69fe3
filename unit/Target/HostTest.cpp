//===- HostTest.cpp - CPUs, objects, links: what works and what is refused ------------------------===//
#include "../LimitedChild.h"
#include "lib/Target/Host/Codegen.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace k2c;

namespace {

struct HostTest : testing::Test {
  llvm::SmallString<128> folder;
  HostTarget target = *HostTarget::forCpu("x86-64-v3");

  void SetUp() override { llvm::sys::fs::createUniqueDirectory("k2c-host-test", folder); }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }
  std::string path(const char *name) const { return (folder + "/" + name).str(); }

  Expected<std::vector<std::string>> compile(const std::string &name, const std::string &text) {
    const auto parse = [&](mlir::MLIRContext *context) {
      context->loadDialect<mlir::LLVM::LLVMDialect>();
      return mlir::parseSourceString<mlir::ModuleOp>(text, context);
    };
    return compile({name, text, parse});
  }
  Expected<std::vector<std::string>> compile(const ObjectJob &job) {
    ObjectOptions options;
    options.cacheDir = path("cache");
    return compileObjects({job}, target, options);
  }
  /// Why a job has no object.
  Error failureOf(const ObjectJob &job) {
    Expected<std::vector<std::string>> objects = compile(job);
    EXPECT_FALSE(objects);
    return objects ? Error{} : objects.takeError();
  }
};

const char *answer = "llvm.func @answer() -> i32 { %0 = llvm.mlir.constant(42 : i32) : i32 llvm.return %0 : i32 }";

TEST_F(HostTest, UnknownCpuIsRefusedByName) {
  Expected<HostTarget> cpu = HostTarget::forCpu("znver99");
  ASSERT_FALSE(cpu);
  EXPECT_EQ(cpu.error().where, "cpu znver99");
}

TEST_F(HostTest, NarrowCpuIsRefused) { EXPECT_EQ(HostTarget::forCpu("pentium4").error().message, "is a 32-bit CPU"); }

TEST_F(HostTest, CpuWithoutFmaIsRefused) { EXPECT_FALSE(HostTarget::forCpu("x86-64-v2")); }

TEST_F(HostTest, Avx512IsKnownFromTheName) {
  HostTarget zen4 = *HostTarget::forCpu("znver4");
  EXPECT_EQ(zen4.tileTarget().lanes, 16);
  EXPECT_TRUE(zen4.tileTarget().hasAvx512Bf16);
  HostTarget level4 = *HostTarget::forCpu("x86-64-v4"); // names AVX512BW, which implies AVX512F
  EXPECT_EQ(level4.tileTarget().lanes, 16);
  EXPECT_FALSE(level4.tileTarget().hasAvx512Bf16);
  EXPECT_EQ(target.tileTarget().lanes, 8);
}

TEST_F(HostTest, LinksObjectsAndExportsOnlyWhatIsNamed) {
  Expected<std::vector<std::string>> objects =
      compile("answer", std::string(answer) + "llvm.func @other() -> i32 { %0 = llvm.mlir.constant(1 : i32) : i32 "
                                              "llvm.return %0 : i32 }");
  ASSERT_TRUE(objects) << objects.error().text();
  Status status = linkShared(*objects, {"answer"}, path("a.so"));
  ASSERT_TRUE(status) << status.error().text();
  void *library = dlopen(path("a.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr);
  EXPECT_EQ(reinterpret_cast<int (*)()>(dlsym(library, "answer"))(), 42);
  EXPECT_EQ(dlsym(library, "other"), nullptr);
  dlclose(library);
}

/// A product and a sum round twice, in scalars and in vectors: (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, which the product
/// loses. Fused they would round once.
TEST_F(HostTest, MultiplyThenAddIsTwoRoundings) {
  Expected<std::vector<std::string>> objects = compile("multiply_add", R"(
    llvm.func @scalar(%a: f32, %b: f32, %c: f32) -> f32 {
      %0 = llvm.fmul %a, %b : f32
      %1 = llvm.fadd %0, %c : f32
      llvm.return %1 : f32
    }
    llvm.func @vector(%at: !llvm.ptr) {
      %0 = llvm.load %at {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
      %1 = llvm.getelementptr %at[8] : (!llvm.ptr) -> !llvm.ptr, f32
      %2 = llvm.load %1 {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
      %3 = llvm.fmul %0, %0 : vector<8xf32>
      %4 = llvm.fadd %3, %2 : vector<8xf32>
      llvm.store %4, %at {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr
      llvm.return
    })");
  ASSERT_TRUE(objects) << objects.error().text();
  Status status = linkShared(*objects, {"scalar", "vector"}, path("m.so"));
  ASSERT_TRUE(status) << status.error().text();
  void *library = dlopen(path("m.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr);
  const float a = 1 + 0x1p-12f, c = -(1 + 0x1p-11f);
  ASSERT_NE(std::fma(a, a, c), 0.0f) << "the operands must tell one rounding from two";
  EXPECT_EQ(reinterpret_cast<float (*)(float, float, float)>(dlsym(library, "scalar"))(a, a, c), 0.0f);
  float rows[16];
  std::fill_n(rows, 8, a);
  std::fill_n(rows + 8, 8, c);
  reinterpret_cast<void (*)(float *)>(dlsym(library, "vector"))(rows);
  for (int lane = 0; lane < 8; ++lane)
    EXPECT_EQ(rows[lane], 0.0f) << "lane " << lane;
  dlclose(library);
}

TEST_F(HostTest, ObjectsAreCached) {
  std::vector<std::string> first = *compile("answer", answer);
  llvm::sys::fs::file_status before, after;
  llvm::sys::fs::status(first[0], before);
  EXPECT_EQ(*compile("answer", answer), first);
  llvm::sys::fs::status(first[0], after);
  EXPECT_EQ(before.getUniqueID(), after.getUniqueID());
}

TEST_F(HostTest, ObjectsHaveTheNameOfWhatDecidesThem) {
  const HostTarget wide = *HostTarget::forCpu("x86-64-v4"), narrow = *HostTarget::forCpu("x86-64-v3");
  const ObjectJob job{"job", "key", {}}, other{"job", "other key", {}}, renamed{"another name", "key", {}};
  const std::string name = objectName(job, narrow, "generator");
  EXPECT_EQ(objectName(renamed, narrow, "generator"), name);
  EXPECT_NE(objectName(other, narrow, "generator"), name);
  EXPECT_NE(objectName(job, wide, "generator"), name);
  EXPECT_NE(objectName(job, narrow, "another generator"), name);
}

TEST_F(HostTest, ObjectsOfTheCacheAreOfThisCodeGenerator) {
  const ObjectJob job{"answer", answer, {}};
  EXPECT_EQ((*compile("answer", answer))[0], path("cache") + "/" + objectName(job, target, codeGeneratorHash));
}

TEST_F(HostTest, DamagedObjectsAreCompiledAgain) {
  std::string object = (*compile("answer", answer))[0];
  std::string sound = (*llvm::MemoryBuffer::getFile(object))->getBuffer().str();
  std::string flipped = sound;
  flipped[flipped.size() / 2] ^= 1;
  for (const std::string &damaged : {flipped, sound.substr(0, 100), std::string()}) {
    std::error_code error;
    llvm::raw_fd_ostream(object, error) << damaged;
    ASSERT_FALSE(error);
    ASSERT_EQ((*compile("answer", answer))[0], object);
    EXPECT_EQ((*llvm::MemoryBuffer::getFile(object))->getBuffer().str(), sound);
  }
}

TEST_F(HostTest, AsManyChildrenAtATimeAsAreAllowed) {
  // Each child holds a folder while it builds, which a second child at the same time could not make.
  const std::string held = path("held");
  auto build = [&](mlir::MLIRContext *context) -> mlir::OwningOpRef<mlir::ModuleOp> {
    context->loadDialect<mlir::LLVM::LLVMDialect>();
    if (llvm::sys::fs::create_directory(held, /*IgnoreExisting=*/false))
      return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    llvm::sys::fs::remove(held);
    return mlir::parseSourceString<mlir::ModuleOp>(answer, context);
  };
  const std::vector<ObjectJob> jobs = {{"a", "a", build}, {"b", "b", build}, {"c", "c", build}};
  ObjectOptions options;
  options.cacheDir = path("cache");
  options.jobs = 1;
  Expected<std::vector<std::string>> objects = compileObjects(jobs, target, options);
  EXPECT_TRUE(objects) << objects.error().text();
}

// Another process empties the cache, or a disk loses an object, between the first object and the last.
TEST_F(HostTest, AnObjectThatIsLostWhileOthersAreCompiledIsNamed) {
  const std::vector<std::string> first = *compile("first", answer);
  auto build = [](mlir::MLIRContext *context) {
    context->loadDialect<mlir::LLVM::LLVMDialect>();
    return mlir::parseSourceString<mlir::ModuleOp>(answer, context);
  };
  ObjectOptions options;
  options.cacheDir = path("cache");
  options.progress = [&](int64_t done, int64_t) {
    if (done == 1) // the first was found; the second is being compiled
      llvm::sys::fs::remove(first.front());
  };
  Expected<std::vector<std::string>> objects =
      compileObjects({{"first", answer, build}, {"second", "second", build}}, target, options);
  ASSERT_FALSE(objects);
  EXPECT_EQ(objects.error().text(), "first: its object was removed or changed while others were compiled; run the same "
                                    "command again");
}

TEST_F(HostTest, AFifoInTheCacheIsNoObject) {
  const std::vector<std::string> objects = *compile("answer", answer);
  llvm::sys::fs::remove(objects.front());
  ASSERT_EQ(::mkfifo(objects.front().c_str(), 0600), 0);
  EXPECT_TRUE(compile("answer", answer)) << "a new object takes its place";
}

TEST_F(HostTest, InvalidModuleIsAnErrorOfItsKernel) {
  Expected<std::vector<std::string>> objects = compile("broken", "llvm.func @f() { llvm.ret }");
  ASSERT_FALSE(objects);
  EXPECT_EQ(objects.error().where, "broken");
}

TEST_F(HostTest, FatalErrorOfLlvmIsAnErrorOfItsKernel) {
  ObjectJob job{"fatal", "fatal", [](mlir::MLIRContext *) -> mlir::OwningOpRef<mlir::ModuleOp> {
                  llvm::report_fatal_error("Cannot select");
                }};
  const Error error = failureOf(job);
  EXPECT_EQ(error.text(), "fatal: LLVM cannot compile it: Cannot select");
}

TEST_F(HostTest, CrashIsAnErrorOfItsKernel) {
  ObjectJob job{"crash", "crash", [](mlir::MLIRContext *) -> mlir::OwningOpRef<mlir::ModuleOp> {
                  std::raise(SIGKILL);
                  return {};
                }};
  const Error error = failureOf(job);
  EXPECT_EQ(error.message, "the compiling process was ended by signal Killed");
}

TEST_F(HostTest, AChildThatEndsWithoutAWordIsAnErrorOfItsKernel) {
  ObjectJob job{"mute", "mute", [](mlir::MLIRContext *) -> mlir::OwningOpRef<mlir::ModuleOp> { ::_exit(7); }};
  const Error error = failureOf(job);
  EXPECT_EQ(error.text(), "mute: the compiling process ended with status 7");
}

TEST_F(HostTest, AModuleThatIsNotBuiltAndSaysNothingIsAnErrorOfItsKernel) {
  ObjectJob job{"none", "none", [](mlir::MLIRContext *) { return mlir::OwningOpRef<mlir::ModuleOp>(); }};
  const Error error = failureOf(job);
  EXPECT_EQ(error.text(), "none: no code could be emitted");
}

TEST_F(HostTest, UndefinedSymbolsAreRefused) {
  Expected<std::vector<std::string>> objects =
      compile("calls", "llvm.func @missing()\nllvm.func @f() { llvm.call @missing() : () -> () llvm.return }");
  ASSERT_TRUE(objects);
  Status status = linkShared(*objects, {"f"}, path("u.so"));
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("undefined symbol: missing"), std::string::npos) << status.error().text();
}

TEST_F(HostTest, WritableGlobalsAreRefused) {
  Expected<std::vector<std::string>> objects = compile(
      "writes", "llvm.mlir.global external @g(7 : i32) : i32\n"
                "llvm.func @f() -> !llvm.ptr { %0 = llvm.mlir.addressof @g : !llvm.ptr llvm.return %0 : !llvm.ptr }");
  ASSERT_TRUE(objects) << objects.error().text();
  Status status = linkShared(*objects, {"f"}, path("w.so"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), objects->front() + ": section .data holds 4 writable bytes; generated code may have "
                                                      "no writable globals");
}

TEST_F(HostTest, WhatIsNoObjectIsNotLinked) {
  std::ofstream(path("text.o")) << "not machine code";
  Status status = linkShared({path("text.o")}, {"f"}, path("t.so"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), path("text.o") + ": is not an object file: The file was not recognized as a valid "
                                                    "object file; remove it from the object cache");
}

TEST_F(HostTest, AFolderThatIsNotThereHoldsNoLibrary) {
  std::vector<std::string> objects = *compile("answer", answer);
  Status status = linkShared(objects, {"answer"}, path("nothere/a.so"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), path("nothere/a.so.exports") + ": cannot write: No such file or directory");
}

TEST_F(HostTest, ALinkerThatIsKilledIsNamed) {
  std::vector<std::string> objects = *compile("answer", answer);
  std::ofstream(path("ld.lld-22")) << "#!/bin/sh\nkill -KILL $$\n";
  llvm::sys::fs::setPermissions(path("ld.lld-22"), llvm::sys::fs::all_all);
  std::string saved = std::getenv("PATH");
  setenv("PATH", folder.c_str(), 1);
  Status status = linkShared(objects, {"answer"}, path("a.so"));
  setenv("PATH", saved.c_str(), 1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), path("a.so") + ": ld.lld-22 was ended by a signal; check that its disk has space");
}

TEST_F(HostTest, AProcessWithoutDescriptorsCompilesNothing) {
  EXPECT_EQ(test::saidInChild([&] {
              test::limit(RLIMIT_NOFILE, 0);
              Expected<std::vector<std::string>> objects = compile("answer", answer);
              return objects ? "compiled" : objects.error().text();
            }),
            "answer: cannot make a pipe: Too many open files");
}

TEST_F(HostTest, AUserWithoutProcessesCompilesNothing) {
  const std::string said = test::saidInChild([&] {
    test::limit(RLIMIT_NPROC, 0);
    if (::getuid() == 0 && ::setuid(65534) != 0) // root has no such limit
      return std::string("no other user");
    Expected<std::vector<std::string>> objects = compile("answer", answer);
    return objects ? "compiled" : objects.error().text();
  });
  if (said == "no other user")
    GTEST_SKIP() << "this namespace has root alone";
  EXPECT_EQ(said, "answer: cannot start a compiling process: Resource temporarily unavailable");
}

// What is left of another dialect has no machine code, and a loop over tensors no jumps.
TEST_F(HostTest, AnOperationThatHasNoCodeIsAnErrorOfItsKernel) {
  mlir::MLIRContext context;
  context.allowUnregisteredDialects();
  context.loadDialect<mlir::LLVM::LLVMDialect, mlir::scf::SCFDialect>();
  mlir::ScopedDiagnosticHandler quiet(&context, [](mlir::Diagnostic &) { return mlir::success(); });
  auto refusal = [&](const char *text) {
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    Expected<std::string> code = llvmIrOf(*module, target);
    return code ? "" : code.error().text();
  };
  EXPECT_EQ(refusal("llvm.func @f() { \"other.op\"() : () -> () llvm.return }"),
            "module: does not translate to LLVM IR");
  EXPECT_EQ(refusal(R"(llvm.func @f() {
              %0 = "other.op"() : () -> tensor<4xf32>
              %1 = scf.forall (%i) in (4) shared_outs(%o = %0) -> (tensor<4xf32>) { scf.forall.in_parallel {} }
              llvm.return
            })"),
            "module: does not lower to the LLVM dialect");
}

TEST_F(HostTest, MissingLinkerIsNamed) {
  std::vector<std::string> objects = *compile("answer", answer);
  std::string saved = std::getenv("PATH");
  setenv("PATH", folder.c_str(), 1);
  Status status = linkShared(objects, {"answer"}, path("a.so"));
  setenv("PATH", saved.c_str(), 1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "ld.lld-22: is not on the PATH; install the package lld-22");
}

} // namespace
