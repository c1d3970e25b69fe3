//===- HostExchange.cpp - What ranks exchange, in the LLVM dialect --------===//
//
// A worker's struct says which rank it is of (k2rt_ir_rank) and which step it runs. Rows that came to a site, those of
// a tensor-parallel group and those of the second half of a step are steps of their own: whoever works on them finds
// another step in the worker.
//
//===----------------------------------------------------------------------===//
#include "HostEmitter.h"
#include "k2rt/placement.h"
#include "k2rt/program.h"
#include <cstddef>

using namespace mlir;

namespace k2c {

/// The step of all ranks of a tensor-parallel group.
Value HostEmitter::gatheredStep() {
  return loadPointer(loadPointer(worker, offsetof(k2rt_ir_worker, step)), offsetof(k2rt_ir_step, gathered));
}

/// The step of the rows that came to `site`.
Value HostEmitter::arrivedStep(FlatSymbolRefAttr site) {
  auto collective = symbols.lookup<rt::CollectiveOp>(site.getValue());
  Value steps = LLVM::LoadOp::create(b, loc, ptr, stepField(offsetof(k2rt_ir_step, arrived)));
  return at(steps, collective.getSite() * static_cast<int64_t>(sizeof(k2rt_ir_step)));
}

/// What runs there finds the step and the arena of the second half in its worker. They stay there when it fails, which
/// ends the step.
void HostEmitter::emitSecondHalf(rt::SecondHalfOp op) {
  Value stepPlace = at(worker, offsetof(k2rt_ir_worker, step)), step = LLVM::LoadOp::create(b, loc, ptr, stepPlace);
  Value arenaPlace = at(worker, offsetof(k2rt_ir_worker, arena)), arena = LLVM::LoadOp::create(b, loc, ptr, arenaPlace);
  LLVM::StoreOp::create(b, loc, loadPointer(step, offsetof(k2rt_ir_step, second)), stepPlace);
  const int64_t offset = *(*module.getOps<rt::ProgramOp>().begin()).getSecond();
  LLVM::StoreOp::create(b, loc, LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), arena, ValueRange(constant(offset))),
                        arenaPlace);
  emitBody(op.getBody().front());
  LLVM::StoreOp::create(b, loc, step, stepPlace);
  LLVM::StoreOp::create(b, loc, arena, arenaPlace);
}

void HostEmitter::emitPlacement(rt::PlacementOp op) {
  Value rank = loadPointer(worker, offsetof(k2rt_ir_worker, rank));
  Value tables = loadPointer(rank, offsetof(k2rt_ir_rank, placement));
  const int64_t experts = op.getExperts(), slots = op.getSlots();
  Value entry =
      LLVM::MulOp::create(b, loc, values.lookup(op.getOrdinal()), constant(k2rt_placement_entries(experts, slots)));
  auto skip = [&](Value entries) { entry = LLVM::AddOp::create(b, loc, entry, entries).getResult(); };
  const rt::Holder holder = op.getHolder();
  if (op.getPart() == rt::Part::Places)
    skip(constant(k2rt_placement_places(experts, slots)));
  if (op.getPart() == rt::Part::Subtrees)
    skip(constant(holder == rt::Holder::Node   ? k2rt_placement_node_subtree(experts, slots)
                  : holder == rt::Holder::Rank ? k2rt_placement_rank_subtree(experts, slots)
                                               : k2rt_placement_part_subtree(slots)));
  if (op.getPart() == rt::Part::Held && holder != rt::Holder::World) {
    const size_t field =
        holder == rt::Holder::Node ? offsetof(k2rt_ir_rank, expert_node) : offsetof(k2rt_ir_rank, expert_rank);
    Value own = LLVM::LoadOp::create(b, loc, i32, at(rank, field));
    skip(LLVM::MulOp::create(b, loc, LLVM::SExtOp::create(b, loc, i64, own).getResult(), constant(op.getCount())));
  }
  values.map(op.getResult(), LLVM::GEPOp::create(b, loc, ptr, i32, tables, ValueRange(entry)).getResult());
}

/// Both ends are moved into the run: of a stage outside of it they are equal.
void HostEmitter::emitStageLayers(rt::StageLayersOp op) {
  Value rank = loadPointer(worker, offsetof(k2rt_ir_worker, rank));
  Value first = constant(op.getFirst()), last = constant(op.getLast());
  auto end = [&](size_t field) -> Value {
    Value layer = LLVM::LoadOp::create(b, loc, i64, at(rank, field));
    return LLVM::SMinOp::create(b, loc, LLVM::SMaxOp::create(b, loc, layer, first).getResult(), last);
  };
  values.map(op.getFrom(), end(offsetof(k2rt_ir_rank, first_layer)));
  values.map(op.getEnd(), end(offsetof(k2rt_ir_rank, end_layer)));
}

void HostEmitter::emitCollectiveStart(rt::CollectiveStartOp op) {
  SmallVector<Value> buffers;
  for (Value buffer : {op.getRows(), op.getSource(), op.getTo(), op.getResult(), op.getFrom()})
    if (buffer)
      buffers.push_back(buffer);
  llvm::append_range(buffers, op.getSlices());
  storeArguments(buffers);
  Value layer = op.getLayer() ? values.lookup(op.getLayer()) : constant(-1);
  const int64_t site = symbols.lookup<rt::CollectiveOp>(op.getSite()).getSite();
  auto type = LLVM::LLVMFunctionType::get(i32, {ptr, i32, i64, ptr});
  SmallVector<Value> operands{apiEntry(offsetof(k2rt_ir_api, collective_start)), worker, constant(site, 32), layer,
                              arguments};
  returnIfFailed(LLVM::CallOp::create(b, loc, type, operands).getResult());
}

void HostEmitter::emitCollectiveWait(rt::CollectiveWaitOp op) {
  const int64_t site = symbols.lookup<rt::CollectiveOp>(op.getSite()).getSite();
  auto type = LLVM::LLVMFunctionType::get(i32, {ptr, i32});
  Value wait = apiEntry(offsetof(k2rt_ir_api, collective_wait));
  returnIfFailed(LLVM::CallOp::create(b, loc, type, ValueRange{wait, worker, constant(site, 32)}).getResult());
}

} // namespace k2c
