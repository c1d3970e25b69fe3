//===- FormVerifierTest.cpp - imported models pass the verifiers of the forms --------===//

#include "k2c/Frontend/ImportModel.h"
#include "k2c/Pipelines/Pipelines.h"

#include "dialects/Dialects.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace k2c;

namespace {

/// Drives a model to the scheduled form, with the verifier of each form behind it.
mlir::LogicalResult schedule(const std::string &folder) {
  mlir::MLIRContext context;
  context.loadDialect<dist::DistDialect, kern::KernDialect, mem::MemDialect, rt::RtDialect>();
  Expected<ModelSpec> spec = loadModelSpec(std::string(K2C_SOURCE_DIR "/") + folder);
  if (!spec)
    return mlir::failure();
  Expected<mlir::OwningOpRef<mlir::ModuleOp>> module = importModel(context, *spec, {});
  if (!module)
    return mlir::failure();
  mlir::PassManager passes(&context);
  for (Form form : {Form::Model, Form::Planned, Form::Distributed, Form::Scheduled})
    buildForm(form, passes, {});
  return passes.run(**module);
}

TEST(FormVerifier, OracleModels) {
  for (const char *family : {"llama", "kimi_k2", "deepseek_v3"})
    EXPECT_TRUE(mlir::succeeded(schedule(std::string("test/EndToEnd/oracle/") + family))) << family;
}

TEST(FormVerifier, PublishedModels) {
  for (const char *name : {"kimi-k2", "deepseek-v3", "deepseek-v2", "deepseek-v2-lite", "qwen3-235b-a22b",
                           "mixtral-8x22b", "olmoe-1b-7b", "llama-3.1-405b", "minimax-m2", "smollm3-3b"})
    EXPECT_TRUE(mlir::succeeded(schedule(std::string("models/configs/") + name))) << name;
}

} // namespace
