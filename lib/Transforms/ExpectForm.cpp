//===- ExpectForm.cpp - The forms that a pass takes -----------------------===//
//
// Some ops are of certain forms alone, so that the ops of a module say in which it is; a mark on the module would be
// one more thing to keep true. Of the ops that no form of a pass has, the one of the earliest form is reported: who
// does what it says comes nearer, one pass at a time.
//
//===----------------------------------------------------------------------===//
#include "k2c/Transforms/ExpectForm.h"
#include "dialects/Kern/Kern.h"
#include "dialects/Mla/Mla.h"
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/Nn.h"
#include "dialects/Rt/Rt.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace k2c {

std::optional<OpForms> formsOf(Operation *op) {
  if (isa<mla::AttentionOp>(op))
    return OpForms{Form::Model, Form::Model, "latent attention has no form yet", "absorb-mla", ""};
  if (isa<moe::ExpertsOp>(op))
    return OpForms{Form::Model, Form::Planned, "the movement of rows to experts is not explicit", "shard-experts", ""};
  if (isa<nn::KernelOp>(op) && !nn::isView(op) && !op->getParentOfType<kern::FuncOp>())
    return OpForms{Form::Model, Form::Distributed, "the op is in no kernel", "form-kernels", ""};
  if (isa<kern::FuncOp, kern::CallOp>(op))
    return OpForms{Form::Scheduled, Form::Scheduled, "kernels are no launches", "lower-to-rt", "form-kernels"};
  if (isa<rt::ProgramOp, rt::KernelOp, rt::LaunchOp>(op))
    return OpForms{Form::Runtime, Form::Runtime, "", "", "lower-to-rt"};
  if (isa<LLVM::LLVMFuncOp>(op))
    return OpForms{Form::Llvm, Form::Llvm, "", "", "rt-to-llvm"};
  return std::nullopt;
}

LogicalResult expectForm(ModuleOp module, StringRef pass, Form first, Form last) {
  Operation *wrong = nullptr;
  std::optional<OpForms> its;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    std::optional<OpForms> forms = formsOf(op);
    if (forms && (forms->last < first || forms->first > last) && (!its || forms->last < its->last)) {
      wrong = op;
      its = forms;
    }
    // The code of a kernel stands in a module of its own.
    return isa<ModuleOp>(op) && op != module ? WalkResult::skip() : WalkResult::advance();
  });
  if (!wrong)
    return success();
  InFlightDiagnostic error = wrong->emitError() << pass << ": expects the " << nameOf(last) << " form";
  if (first < last)
    error << " or one before it";
  if (its->last < first)
    return error << ", and " << its->what << "; run " << its->next << " first";
  return error << ", and this is of the " << nameOf(its->first) << " form; take the module from before " << its->from;
}

} // namespace k2c
