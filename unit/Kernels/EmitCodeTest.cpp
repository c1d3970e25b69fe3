//===- EmitCodeTest.cpp - What the emitted code looks like: the full tile's loop ------------------===//
#include "k2c/Kernels/Cpu.h"
#include "k2c/Target/Host.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringRef.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

LinearDesc linear(DType w) {
  LinearDesc desc;
  desc.x = desc.y = Rows{RowSpace::Token, 1024, 1024, DType::F32};
  desc.w = Matrix{w, 1, 1024, 1024};
  desc.order = {1024, leafCount(1024)};
  return desc;
}

/// The loop of `fmas` fused multiply-adds in `assembly`: from its label to its backward jump. Empty when there is none.
llvm::StringRef loopOf(llvm::StringRef assembly, size_t fmas) {
  llvm::SmallVector<llvm::StringRef> blocks;
  assembly.split(blocks, "\n.LBB");
  for (llvm::StringRef block : blocks) {
    llvm::StringRef label = block.split(':').first;
    size_t jump = block.find(("\t.LBB" + label + "\n").str());
    if (jump != llvm::StringRef::npos && block.take_front(jump).count("vfmadd") == fmas)
      return block.take_front(jump);
  }
  return "";
}

TEST(EmitCode, FullTileRunsInRegisters) {
  for (DType type : {DType::F32, DType::BF16}) {
    KernelDesc desc{"linear", linear(type)};
    HostTarget target = *HostTarget::forCpu("znver4");
    TileConfig tile = chooseTile(desc, target.tileTarget());
    mlir::MLIRContext context;
    mlir::OwningOpRef<mlir::ModuleOp> module = emitKernel(&context, desc, tile, "kernel");
    Expected<std::string> assembly = assemblyOf(*module, target);
    ASSERT_TRUE(assembly) << assembly.error().text();
    int64_t steps = type == DType::BF16 ? 2 : 1;
    llvm::StringRef loop = loopOf(*assembly, tile.mr * tile.nrVectors * steps);
    ASSERT_FALSE(loop.empty());
    EXPECT_EQ(loop.count("rsp"), 0u) << loop.str();
  }
}

/// Of the kernel on its best tile for a CPU that this machine need not have.
std::string assemblyFor(const KernelDesc &desc, const std::string &cpu) {
  const HostTarget target = *HostTarget::forCpu(cpu);
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      emitKernel(&context, desc, chooseTile(desc, target.tileTarget()), "kernel");
  Expected<std::string> assembly = assemblyOf(*module, target);
  return assembly ? *assembly : assembly.error().text();
}

TEST(EmitCode, PairsOfBf16AreOneInstructionWhereTheCpuHasIt) {
  LinearDesc pairs = linear(DType::BF16);
  pairs.x.type = DType::BF16;
  const std::string with = assemblyFor({"linear", pairs}, "znver4"), without = assemblyFor({"linear", pairs}, "znver3");
  EXPECT_NE(with.find("vdpbf16ps"), std::string::npos);
  EXPECT_EQ(with.find("vfmadd"), std::string::npos);
  EXPECT_EQ(without.find("vdpbf16ps"), std::string::npos);
  EXPECT_NE(without.find("vfmadd"), std::string::npos);
}

TEST(EmitCode, KernelsCallNothingAndHaveNoGlobals) {
  KernelDesc desc{"linear", linear(DType::F32)};
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = emitKernel(&context, desc, TileConfig{}, kernelSymbol(desc));
  int64_t operations = 0;
  for (mlir::Operation &op : *module->getBody()) {
    EXPECT_EQ(op.getName().getStringRef(), "llvm.func");
    ++operations;
  }
  EXPECT_EQ(operations, 1);
}

} // namespace
