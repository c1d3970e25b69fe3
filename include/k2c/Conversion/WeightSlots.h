//===- WeightSlots.h - Which packed weights a program reads ---------------===//
//
// A weight operand of a kernel has a layout; a family read in a layout has consecutive slots, one for each of its
// layers. A family read in two layouts (a tied embedding) has two ranges. The order follows the program, so it is the
// same for the host code (rt.weight_slots) and for the weight map.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_CONVERSION_WEIGHTSLOTS_H
#define K2C_CONVERSION_WEIGHTSLOTS_H

#include "dialects/Nn/Nn.h"
#include "k2c/Kernels/Describe.h"
#include "k2c/Kernels/WeightShare.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include <string>

namespace k2c {

/// The slots of one family in one layout.
struct WeightRange {
  std::string name;                  ///< the family, with a suffix when it is read in several layouts
  mlir::Operation *family = nullptr; ///< nn.weights or nn.constant_table
  Operand operand;                   ///< layout: panels, or plain elements of `type`
  int64_t first = 0;                 ///< slot of the first layer
  nn::IndicesAttr layers;            ///< of the checkpoint; null when not layered
  k2rt_share share = {};             ///< how the kernel that reads it first cuts it
  int64_t count() const { return layers ? layers.size() : 1; }
  /// Bytes of one slot before page alignment.
  int64_t bytes() const;
  /// "panels<bf16, matrices = 1, n = 48, k = 64>", "rows<f32, 64>", "table<f32, 8192>".
  std::string layout() const;
};

/// Descriptions of all kernels of a scheduled module, and the weights their calls read.
class ProgramWeights {
public:
  /// Describes every kernel and visits every call. Fails with an error at the kernel.
  static mlir::FailureOr<ProgramWeights> collect(mlir::ModuleOp scheduled);

  const DescribedKernel &kernel(llvm::StringRef symbol) const { return kernels.find(symbol)->second; }
  llvm::ArrayRef<WeightRange> ranges() const { return list; }
  /// The range of `family` in the layout of `operand`; null if no call reads it so.
  const WeightRange *find(llvm::StringRef family, const Operand &operand) const;
  int64_t slots() const { return list.empty() ? 0 : list.back().first + list.back().count(); }

private:
  void add(mlir::Operation *family, const Operand &operand, const KernelDesc &reader);

  llvm::StringMap<DescribedKernel> kernels;
  std::vector<WeightRange> list;
};

} // namespace k2c

#endif // K2C_CONVERSION_WEIGHTSLOTS_H
