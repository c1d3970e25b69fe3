//===- CertifyMemory.cpp - The bytes of a rank, from the IR ---------------===//
//
// When kernels have tiles, weights slots and buffers offsets, every byte that the program takes is known:
//
//   weights   all slots, each rounded up to pages, and each     cache    pages of all planes at the limits
//             routed expert
//   arena     mem.peak, for each half of a step                 scratch  what the most demanding kernel takes, a worker
//   logits    f32 of all output rows
//
// Of ranks in stages, weights and cache are those of the stage that has most of both.
//
// The certificate is written when it is exact, not before. The planner adds what the runtime takes beside it, and
// refuses what does not fit.
//
//===----------------------------------------------------------------------===//
#include "dialects/Mem/Mem.h"
#include "dialects/Rt/Rt.h"
#include "k2c/Kernels/Cpu.h"
#include "k2c/Kernels/Describe.h"
#include "k2c/Kernels/TileAttr.h"
#include "k2c/Kernels/WeightShare.h"
#include "k2c/Support/Units.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/Remark.h"
#include "k2c/Transforms/StageMemory.h"
#include "llvm/Support/MathExtras.h"

namespace k2c {
#define GEN_PASS_DEF_CERTIFYMEMORY
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// At which an arena begins (abi.def).
constexpr uint64_t pageBytes = 4096;

struct CertifyMemory : impl::CertifyMemoryBase<CertifyMemory> {
  using CertifyMemoryBase::CertifyMemoryBase;

  int64_t cache(nn::LimitsAttr limits, Stage stage) {
    int64_t bytes = 0;
    for (auto pool : getOperation().getOps<nn::PoolOp>())
      for (auto plane : pool.getPlanes().getAsRange<nn::PlaneAttr>())
        bytes += layersIn(pool.getLayers(), stage) * nn::planeBytes(pool, plane, limits);
    return bytes;
  }

  /// Weights and cache of the fullest stage.
  std::pair<int64_t, int64_t> ofFullest(nn::LimitsAttr limits) {
    std::pair<int64_t, int64_t> fullest{0, 0};
    for (Stage stage : stageList(getOperation())) {
      const std::pair<int64_t, int64_t> own{weightBytesOf(getOperation(), stage), cache(limits, stage)};
      if (own.first + own.second > fullest.first + fullest.second)
        fullest = own;
    }
    return fullest;
  }

  FailureOr<int64_t> scratch(KernelDescriptions &descriptions) {
    int64_t bytes = 0;
    for (auto kernel : getOperation().getOps<kern::FuncOp>()) {
      const DescribedKernel *described = descriptions.find(kernel);
      if (!described)
        return failure();
      bytes = std::max(bytes, scratchBytes(described->desc, tileConfig(kernel.getTileAttr())));
    }
    return bytes;
  }

  /// Of the widest row of logits that a sampler reads.
  int64_t logits(nn::LimitsAttr limits) {
    int64_t bytes = 0;
    getOperation().walk([&](nn::SampleOp sample) {
      auto row = cast<RankedTensorType>(sample.getLogits().getType());
      bytes = std::max(bytes, limits.getOutputRows() * row.getShape().back() * row.getElementTypeBitWidth() / 8);
    });
    return bytes;
  }

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Scheduled, Form::Scheduled)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    nn::LimitsAttr limits = nn::limitsOf(module);
    std::optional<int64_t> arena = mem::peakOf(module);
    if (!limits || !arena) {
      module.emitError() << "certify-memory: the module has no nn.limits or no mem.peak; run assign-memory first";
      return signalPassFailure();
    }
    FailureOr<int64_t> worker = scratch(getAnalysis<KernelDescriptions>());
    if (failed(worker))
      return signalPassFailure();
    const int64_t arenas = hasHalves(module) ? 2 * static_cast<int64_t>(llvm::alignTo(*arena, pageBytes)) : *arena;
    const auto [weights, cached] = ofFullest(limits);
    auto certificate = mem::CertificateAttr::get(&getContext(), weights, cached, arenas, *worker, logits(limits));
    module->setAttr(mem::MemDialect::certificateAttrName, certificate);
    remark(module.getLoc(), "certify-memory", "bytes",
           format(Bytes(certificate.getWeights())) + " of weights, " + format(Bytes(certificate.getCache())) +
               " of cache, " + format(Bytes(certificate.getArena())) + " of arena, " +
               format(Bytes(certificate.getScratch())) + " of scratch a worker, " +
               format(Bytes(certificate.getLogits())) + " of logits",
           {{"weight_bytes", certificate.getWeights()},
            {"cache_bytes", certificate.getCache()},
            {"arena_bytes", certificate.getArena()},
            {"scratch_bytes", certificate.getScratch()},
            {"logit_bytes", certificate.getLogits()}});
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace k2c
