//===- PlanAttr.cpp - What passes read of the plan and the target ---------===//
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Planner/CompileLayout.h"
#include "k2c/Planner/Evaluate.h"

using namespace mlir;

namespace k2c {

const std::vector<StringRef> &optionalPassNames() {
  static const std::vector<StringRef> names = {
#define K2C_OPTIONAL_PASS(Name, name, summary) name,
#include "k2c/Transforms/OptionalPasses.def"
  };
  return names;
}

dist::PlanAttr planOf(ModuleOp module) {
  return module->getAttrOfType<dist::PlanAttr>(dist::DistDialect::planAttrName);
}

static auto passesWithout(dist::PlanAttr plan) {
  ArrayRef<Attribute> passes = plan && plan.getWithout() ? plan.getWithout().getValue() : ArrayRef<Attribute>();
  return llvm::map_range(passes, [](Attribute pass) { return cast<StringAttr>(pass).getValue(); });
}

bool isLeftOut(ModuleOp module, OptionalPass pass) {
  return llvm::is_contained(passesWithout(planOf(module)), optionalPassNames()[size_t(pass)]);
}

bool hasHalves(ModuleOp module) {
  dist::PlanAttr plan = planOf(module);
  return plan && plan.getHalvesFrom() > 0 && !isLeftOut(module, OptionalPass::OverlapCommunication);
}

StageRanks stageRanksOf(ModuleOp module) {
  auto topology = module->getAttrOfType<dist::TopologyAttr>(dist::DistDialect::topologyAttrName);
  if (!topology)
    return {};
  StageRanks stage{topology.getRanks(), topology.getNodes()};
  dist::PlanAttr plan = planOf(module);
  const ArrayRef<int64_t> stages = stagesOf(module);
  const std::optional<ParallelLayout> layout =
      plan ? readCompiledLayout(plan.getLayout().str(), topology.getRanks(), stages.empty() ? 1 : stages.back())
           : std::nullopt;
  if (layout) {
    stage.ranks /= layout->pp * layout->replicas;
    stage.nodes = nodesOfStage(*layout, topology.getNodes());
    stage.ofGroup = layout->tp;
    stage.ofVocabulary = layout->vocab;
    stage.ofExpert = layout->etp;
  }
  return stage;
}

int64_t StageRanks::membersOf(dist::Axis axis) const {
  switch (axis) {
  case dist::Axis::Stage:
    return ranks;
  case dist::Axis::Ep:
    return expertRanks();
  case dist::Axis::Etp:
    return ofExpert;
  case dist::Axis::Rail:
    return nodes;
  case dist::Axis::Node:
    return expertRanks() / nodes;
  }
  llvm_unreachable("a group of a known axis");
}

ArrayRef<int64_t> stagesOf(ModuleOp module) {
  dist::PlanAttr plan = planOf(module);
  return plan && plan.getStages() ? plan.getStages().asArrayRef() : ArrayRef<int64_t>();
}

std::optional<StringRef> unknownPass(dist::PlanAttr plan) {
  for (StringRef pass : passesWithout(plan))
    if (!llvm::is_contained(optionalPassNames(), pass))
      return pass;
  return std::nullopt;
}

FailureOr<Attribute> targetOf(ModuleOp module, StringRef pass) {
  if (Attribute target = module->getAttr(kern::KernDialect::targetAttrName))
    return target;
  return module.emitError() << pass << ": the module has no kern.target; run attach-plan first";
}

} // namespace k2c
