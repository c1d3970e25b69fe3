//===- ProgramFacts.cpp - What the runtime form says of a program ---------===//
#include "ProgramFacts.h"

#include "dialects/Dist/Dist.h"
#include "dialects/Kern/Kern.h"
#include "dialects/Mem/Mem.h"
#include "k2c/Kernels/Describe.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/StageMemory.h"

using namespace mlir;

namespace k2c {

namespace {

CostRule costRule(DictionaryAttr cost) {
  CostRule rule;
  StringRef rows = cost.getAs<StringAttr>("rows").getValue();
  for (CountedRows known : {CountedRows::Token, CountedRows::Output, CountedRows::Expanded, CountedRows::Absorbed})
    if (rows == nameOf(known))
      rule.rows = known;
  visitNumbers(rule, /*all=*/true, [&](StringRef name, auto &number) {
    if (auto integer = cost.getAs<IntegerAttr>(name))
      number = integer.getInt();
    else if (auto real = cost.getAs<FloatAttr>(name))
      number = real.getValueAsDouble();
  });
  return rule;
}

void readModule(ModuleOp runtime, ProgramFacts &facts) {
  auto numerics = runtime->getAttrOfType<nn::NumericsAttr>(nn::NnDialect::numericsAttrName);
  facts.compute = nn::stringifyComputeType(numerics.getCompute()).str();
  facts.mla = nn::stringifyMlaForm(numerics.getMla()).str();
  facts.bitClass = numerics.getBitClass().str();
  auto topology = runtime->getAttrOfType<dist::TopologyAttr>(dist::DistDialect::topologyAttrName);
  facts.topology = topology.getName().str();
  facts.ranks = topology.getRanks();
  dist::PlanAttr plan = planOf(runtime);
  facts.layout = plan.getLayout().str();
  facts.bound = {plan.getRouteLimit(), plan.getLocalityPenalty() ? plan.getLocalityPenalty().getValueAsDouble() : 0};
  facts.halvesFrom = hasHalves(runtime) ? plan.getHalvesFrom() : 0;
  facts.numa = topology.getNuma().vec();
  auto gpu = runtime->getAttrOfType<kern::GpuAttr>(kern::KernDialect::targetAttrName);
  if (gpu)
    facts.gpu = {gpu.getArch().str(), gpu.getThreads(), gpu.getWorkers(), gpu.getCtas()};
  auto target = gpu ? gpu.getHost() : runtime->getAttrOfType<kern::CpuAttr>(kern::KernDialect::targetAttrName);
  facts.cores = target.getCores();
  facts.cpu = target.getName().str();
  for (auto feature : target.getFeatures().getAsRange<StringAttr>())
    facts.features.push_back(feature.str());
  facts.l1Bytes = target.getL1();
  facts.l2Bytes = target.getL2();
  nn::LimitsAttr limits = nn::limitsOf(runtime);
  facts.limits = {limits.getStepRows(), limits.getSeq(), limits.getPositions(), limits.getOutput()};
  auto memory = runtime->getAttrOfType<mem::CertificateAttr>(mem::MemDialect::certificateAttrName);
  facts.weights = memory.getWeights();
  facts.cacheBytes = memory.getCache();
  facts.stages = stagesOf(runtime).vec();
  for (Stage stage : stageList(runtime))
    facts.stageWeights.push_back(weightBytesOf(runtime, stage));
  facts.arena = memory.getArena();
  facts.scratchPerWorker = memory.getScratch();
  facts.logits = memory.getLogits();
}

} // namespace

SmallVector<rt::WeightSlotsOp> slotsInOrder(ModuleOp module) {
  SmallVector<rt::WeightSlotsOp> all = llvm::to_vector(module.getOps<rt::WeightSlotsOp>());
  llvm::sort(all, [](rt::WeightSlotsOp a, rt::WeightSlotsOp b) { return a.getFirst() < b.getFirst(); });
  return all;
}

std::vector<SlotShares> slotShares(ModuleOp module) {
  std::vector<SlotShares> shares;
  for (rt::WeightSlotsOp slots : slotsInOrder(module))
    appendShare(shares,
                {slots.getEnd() - slots.getFirst(),
                 {slots.getExperts().value_or(0), slots.getItems().value_or(0), slots.getItemBytes().value_or(0)},
                 !slots.getStage()                          ? SlotStage::All
                 : *slots.getStage() == rt::StageEnd::First ? SlotStage::First
                                                            : SlotStage::Last,
                 slots.getParts().value_or(1)});
  return shares;
}

ProgramFacts programFacts(ModuleOp runtime, const std::vector<KernelCode> &codes) {
  ProgramFacts facts;
  readModule(runtime, facts);
  facts.shares = slotShares(runtime);
  for (auto plane : runtime.getOps<rt::PlaneTableOp>())
    facts.cache.push_back({plane.getPlane().str(), plane.getCount(), plane.getWidth(), *dtypeOf(plane.getElement()),
                           plane.getPages(), plane.getGroup()});
  llvm::StringMap<int64_t> arguments;
  for (const KernelCode &code : codes)
    for (const std::string &kernel : code.kernels)
      arguments[kernel] = code.arguments;
  for (auto kernel : runtime.getOps<rt::KernelOp>()) {
    PackagedKernel packaged{kernel.getSymName().str(),
                            kernel.getHash().str(),
                            {},
                            costRule(*kernel.getCost()),
                            arguments.lookup(kernel.getSymName())};
    for (StringRef variant : kernel.getVariants().getAsValueRange<StringAttr>())
      packaged.variants.push_back(variant.str());
    facts.kernels.push_back(std::move(packaged));
  }
  for (auto site : runtime.getOps<rt::CollectiveOp>())
    facts.collectives.push_back({static_cast<int64_t>(site.getSite()), rt::stringifyCollective(site.getOp()).str(),
                                 rt::stringifyAxis(site.getAxis()).str(), static_cast<int64_t>(site.getMembers()),
                                 static_cast<int64_t>(site.getRowBytes()), site.getQuota().value_or(0)});
  for (auto program : runtime.getOps<rt::ProgramOp>())
    facts.expandedFrom = program.getExpandedFrom().value_or(-1);
  return facts;
}

} // namespace k2c
