//===- VerifySites.h - The sites of a program in the runtime form ---------===//
#ifndef K2C_LIB_TRANSFORMS_VERIFYSITES_H
#define K2C_LIB_TRANSFORMS_VERIFYSITES_H

#include "dialects/Rt/Rt.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace k2c {

/// The ops of a site of the runtime form.
struct Site {
  rt::CollectiveOp facts;
  rt::CollectiveStartOp start;
  rt::CollectiveWaitOp wait;
};

/// Sites by name, in the order of the table of the program.
using SiteTable = llvm::MapVector<llvm::StringRef, Site>;

/// The functions that are entries of the program of `module`.
llvm::DenseSet<llvm::StringRef> entriesOf(mlir::ModuleOp module);

/// The sites of `module`. Emits an error, which begins with `who`, where they are not numbered in their order from 0,
/// or a second op starts one, or waits for it.
mlir::FailureOr<SiteTable> collectSites(mlir::ModuleOp module, llvm::StringRef who);

/// Proves that each site has a start and a wait, that groups have as many members as the plan says, and that stages
/// forward rows outside of what layers do, to where the next one receives such rows. Emits an error, which begins with
/// `who`, at the op that breaks it.
mlir::LogicalResult verifySites(mlir::ModuleOp module, SiteTable &sites, llvm::StringRef who);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_VERIFYSITES_H
