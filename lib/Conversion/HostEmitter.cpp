//===- HostEmitter.cpp - Host functions in the LLVM dialect ---------------===//
//
// Each function of the runtime form becomes an LLVM function that all workers of a team run alike: i32 f(worker, ...).
// What a worker knows (arena, weights, planes, the step) is read from the ABI's structs at the offsets the C compiler
// gives them, so that the runtime's header is the only description of their layout.
//
//   rt.launch @k grid(%g) args(%0, %1)
//   ->  args[0] = %0, args[1] = %1
//       %s = worker->api->launch(worker, id, @hash, %g, args);  return %s if %s != 0
//
// One array on the stack, as long as the longest argument list, serves all launches of a function: a launch returns
// when the worker's own part of the grid is done. A nowait launch has no barrier, so no status that all workers agree
// on yet; a failure of it is seen at the next barrier. Branches and loops have no results: rows lie in the arena.
//
//===----------------------------------------------------------------------===//
#include "HostEmitter.h"
#include "dialects/Kern/Kern.h"
#include "k2rt/program.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cstddef>

using namespace mlir;

namespace k2c {

/// Of a collective_start: rows and counts that go, rows and counts that come.
static constexpr size_t collectiveBuffers = 4;

HostEmitter::HostEmitter(ModuleOp module, SymbolTable &symbols)
    : module(module), symbols(symbols),
      isOnGpu(module->hasAttrOfType<kern::GpuAttr>(kern::KernDialect::targetAttrName)), b(module.getContext()),
      ptr(LLVM::LLVMPointerType::get(module.getContext())), i64(b.getI64Type()), i32(b.getI32Type()),
      loc(module.getLoc()) {}

Value HostEmitter::constant(int64_t value, unsigned width) {
  return LLVM::ConstantOp::create(b, loc, b.getIntegerType(width), b.getIntegerAttr(b.getIntegerType(width), value));
}

Value HostEmitter::at(Value base, int64_t bytes) {
  return LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), base, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
}

Value HostEmitter::loadPointer(Value base, int64_t bytes) { return LLVM::LoadOp::create(b, loc, ptr, at(base, bytes)); }

LLVM::LLVMFuncOp HostEmitter::declare(func::FuncOp function, StringRef suffix) {
  SmallVector<Type> inputs{ptr};
  for (Type type : function.getArgumentTypes())
    inputs.push_back(isa<rt::PtrType>(type) ? ptr : i64);
  OpBuilder end = OpBuilder::atBlockEnd(module.getBody());
  return LLVM::LLVMFuncOp::create(end, function.getLoc(), (function.getSymName() + suffix).str(),
                                  LLVM::LLVMFunctionType::get(i32, inputs), LLVM::Linkage::Internal);
}

void HostEmitter::emitFunction(func::FuncOp function, StringRef nameSuffix) {
  suffix = nameSuffix.str();
  loc = function.getLoc();
  current = declare(function, nameSuffix);
  Block *entry = current.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  worker = entry->getArgument(0);
  for (auto [from, to] : llvm::zip(function.getArguments(), entry->getArguments().drop_front()))
    values.map(from, to);
  size_t most = 0;
  function.walk([&](rt::LaunchOp op) { most = std::max<size_t>(most, op.getArgs().size()); });
  function.walk([&](rt::CollectiveStartOp op) { most = std::max(most, collectiveBuffers + op.getSlices().size()); });
  arguments = LLVM::AllocaOp::create(b, loc, ptr, ptr, constant(static_cast<int64_t>(std::max<size_t>(most, 1))));
  if (isOnGpu)
    grid = LLVM::AllocaOp::create(b, loc, ptr, i64, constant(sizeof(k2rt_ir_grid) / sizeof(int64_t)));
  emitBody(function.front());
}

void HostEmitter::emitBody(Block &block) {
  for (Operation &op : block)
    emit(op);
}

/// The address of a field of the step.
Value HostEmitter::stepField(size_t offset) { return at(loadPointer(worker, offsetof(k2rt_ir_worker, step)), offset); }

/// The LLVM op of a number, which takes the same operands.
template <class To> Value HostEmitter::emitNumber(Operation *op) {
  SmallVector<Value> operands = llvm::map_to_vector(op->getOperands(), [&](Value v) { return values.lookup(v); });
  return To::create(b, loc, TypeRange(operands.back().getType()), operands);
}

template <> Value HostEmitter::emitNumber<LLVM::ConstantOp>(Operation *op) {
  const llvm::APInt bits = cast<IntegerAttr>(cast<arith::ConstantOp>(op).getValue()).getValue();
  return constant(bits.getSExtValue(), bits.getBitWidth());
}

template <> Value HostEmitter::emitNumber<LLVM::ICmpOp>(Operation *op) {
  auto compare = cast<arith::CmpIOp>(op);
  auto predicate = static_cast<LLVM::ICmpPredicate>(compare.getPredicate()); // of the same numbers
  return LLVM::ICmpOp::create(b, loc, predicate, values.lookup(compare.getLhs()), values.lookup(compare.getRhs()));
}

/// Where the step has the count that `count` names.
static size_t fieldOf(rt::Count count) {
  return count == rt::Count::Output     ? offsetof(k2rt_ir_step, output_rows)
         : count == rt::Count::Entering ? offsetof(k2rt_ir_step, entering_rows)
         : count == rt::Count::Seq      ? offsetof(k2rt_ir_step, seq_rows)
                                        : offsetof(k2rt_ir_step, token_rows);
}

void HostEmitter::emit(Operation &op) {
  loc = op.getLoc();
  TypeSwitch<Operation *>(&op)
      .Case([&](rt::ArenaOp o) {
        Value arena = loadPointer(worker, offsetof(k2rt_ir_worker, arena));
        Value address = LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), arena,
                                            ValueRange(constant(o.getOffset() + o.getSkip().value_or(0))));
        values.map(o.getResult(), address);
      })
      .Case([&](rt::WeightOp o) { emitWeight(o); })
      .Case([&](rt::PlaneOp o) { emitPlane(o); })
      .Case([&](rt::StepOp o) {
        values.map(o.getResult(),
                   o.getGathered() ? gatheredStep() : loadPointer(worker, offsetof(k2rt_ir_worker, step)));
      })
      .Case([&](rt::LogitsOp o) {
        Value logits = LLVM::LoadOp::create(b, loc, ptr, stepField(offsetof(k2rt_ir_step, logits)));
        values.map(o.getResult(), logits);
      })
      .Case([&](rt::RowsOp o) {
        const size_t field = fieldOf(o.getCount());
        Value place = o.getCount() == rt::Count::Gathered ? at(gatheredStep(), field) : stepField(field);
        values.map(o.getResult(), LLVM::LoadOp::create(b, loc, i64, place).getResult());
      })
      .Case([&](rt::StageLayersOp o) { emitStageLayers(o); })
      .Case([&](rt::GridOp o) { emitGrid(o); })
      .Case([&](rt::ShareOp o) { emitShare(o); })
      .Case([&](rt::PrefetchOp o) { emitPrefetch(o); })
      .Case([&](rt::LaunchOp o) { emitLaunch(o); })
      .Case([&](rt::ArrivedOp o) {
        Value rows = at(arrivedStep(o.getSiteAttr()), offsetof(k2rt_ir_step, token_rows));
        values.map(o.getResult(), LLVM::LoadOp::create(b, loc, i64, rows).getResult());
      })
      .Case([&](rt::PlacementOp o) { emitPlacement(o); })
      .Case([&](rt::CollectiveStartOp o) { emitCollectiveStart(o); })
      .Case([&](rt::CollectiveWaitOp o) { emitCollectiveWait(o); })
      .Case([&](rt::SampleOp) {
        Value sample = apiEntry(offsetof(k2rt_ir_api, sample));
        auto type = LLVM::LLVMFunctionType::get(i32, {ptr});
        returnIfFailed(LLVM::CallOp::create(b, loc, type, ValueRange{sample, worker}).getResult());
      })
#define K2C_NUMBER(Op, LlvmOp) .Case([&](arith::Op o) { values.map(o.getResult(), emitNumber<LLVM::LlvmOp>(o)); })
#include "dialects/Rt/Numbers.def"
      .Case([&](func::CallOp o) { emitCall(o); })
      .Case([&](scf::ForOp loop) { emitLoop(loop); })
      .Case([&](scf::IfOp branch) { emitIf(branch); })
      .Case([&](rt::SecondHalfOp o) { emitSecondHalf(o); })
      .Case([&](scf::YieldOp) {})
      .Case([&](func::ReturnOp) { LLVM::ReturnOp::create(b, loc, ValueRange(constant(0, 32))); })
      .DefaultUnreachable("rt::checkFunctions has refused all other ops");
}

void HostEmitter::emitCall(func::CallOp op) {
  SmallVector<Value> operands{worker};
  for (Value operand : op.getOperands())
    operands.push_back(values.lookup(operand));
  std::string callee = (op.getCallee() + suffix).str();
  returnIfFailed(LLVM::CallOp::create(b, loc, TypeRange(i32), callee, operands).getResult());
}

void HostEmitter::emitIf(scf::IfOp branch) {
  Region &region = current.getBody();
  Block *before = b.getInsertionBlock();
  Block *blocks[] = {b.createBlock(&region, region.end()), b.createBlock(&region, region.end())};
  Block *done = b.createBlock(&region, region.end());
  b.setInsertionPointToEnd(before);
  LLVM::CondBrOp::create(b, loc, values.lookup(branch.getCondition()), blocks[0], blocks[1]);
  for (auto [block, inner] : llvm::zip_equal(blocks, branch->getRegions())) {
    b.setInsertionPointToEnd(block);
    if (!inner.empty())
      emitBody(inner.front());
    LLVM::BrOp::create(b, loc, ValueRange(), done);
  }
  b.setInsertionPointToEnd(done);
}

void HostEmitter::emitLoop(scf::ForOp loop) {
  Region &region = current.getBody();
  Block *before = b.getInsertionBlock();
  Block *head = b.createBlock(&region, region.end(), {i64}, {loc});
  Block *body = b.createBlock(&region, region.end());
  Block *done = b.createBlock(&region, region.end());
  b.setInsertionPointToEnd(before);
  LLVM::BrOp::create(b, loc, ValueRange(values.lookup(loop.getLowerBound())), head);
  b.setInsertionPointToEnd(head);
  Value index = head->getArgument(0);
  Value more = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::slt, index, values.lookup(loop.getUpperBound()));
  LLVM::CondBrOp::create(b, loc, more, body, done);
  b.setInsertionPointToEnd(body);
  values.map(loop.getInductionVar(), index);
  emitBody(*loop.getBody());
  Value next = LLVM::AddOp::create(b, loc, index, values.lookup(loop.getStep()));
  LLVM::BrOp::create(b, loc, ValueRange(next), head);
  b.setInsertionPointToEnd(done);
}

void HostEmitter::returnIfFailed(Value status) {
  Region &region = current.getBody();
  Block *here = b.getInsertionBlock();
  Block *failed = b.createBlock(&region, region.end());
  LLVM::ReturnOp::create(b, loc, ValueRange(status));
  Block *next = b.createBlock(&region, region.end());
  b.setInsertionPointToEnd(here);
  Value bad = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne, status, constant(0, 32));
  LLVM::CondBrOp::create(b, loc, bad, failed, next);
  b.setInsertionPointToEnd(next);
}

void HostEmitter::emitGrid(rt::GridOp op) {
  Value rows = values.lookup(op.getRows());
  if (op.getSlots() != 1)
    rows = LLVM::MulOp::create(b, loc, rows, constant(op.getSlots()));
  if (op.getRowsPerItem() != 1) {
    Value padded = LLVM::AddOp::create(b, loc, rows, constant(op.getRowsPerItem() - 1));
    rows = LLVM::UDivOp::create(b, loc, padded, constant(op.getRowsPerItem()));
  }
  if (op.getItems() != 1)
    rows = LLVM::MulOp::create(b, loc, rows, constant(op.getItems()));
  values.map(op.getResult(), rows);
}

void HostEmitter::emitWeight(rt::WeightOp op) {
  auto slots = symbols.lookup<rt::WeightSlotsOp>(op.getFamily());
  Value slot = constant(slots.getFirst());
  auto add = [&](Value number, int64_t times) {
    if (times > 1)
      number = LLVM::MulOp::create(b, loc, number, constant(times));
    slot = LLVM::AddOp::create(b, loc, slot, number).getResult();
  };
  if (op.getOrdinal())
    add(values.lookup(op.getOrdinal()), slots.getParts().value_or(1));
  if (slots.getParts()) {
    Value rank = loadPointer(worker, offsetof(k2rt_ir_worker, rank));
    Value place = LLVM::LoadOp::create(b, loc, i32, at(rank, offsetof(k2rt_ir_rank, place)));
    add(LLVM::URemOp::create(b, loc, LLVM::SExtOp::create(b, loc, i64, place), constant(*slots.getParts())), 1);
  }
  Value table = loadPointer(worker, offsetof(k2rt_ir_worker, weights));
  Value entry = LLVM::GEPOp::create(b, loc, ptr, ptr, table, ValueRange(slot));
  values.map(op.getResult(), LLVM::LoadOp::create(b, loc, ptr, entry).getResult());
}

void HostEmitter::emitPlane(rt::PlaneOp op) {
  auto plane = symbols.lookup<rt::PlaneTableOp>(op.getPlane());
  Value planes = loadPointer(worker, offsetof(k2rt_ir_worker, planes));
  Value base = loadPointer(planes, plane.getIndex() * static_cast<int64_t>(sizeof(void *)));
  Value bytes = LLVM::MulOp::create(b, loc, values.lookup(op.getOrdinal()), constant(plane.getLayerBytes()));
  values.map(op.getResult(), LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), base, ValueRange(bytes)).getResult());
}

/// The worker's items are those that launch gives it (k2rt/share.h).
void HostEmitter::emitShare(rt::ShareOp op) {
  Value grid = values.lookup(op.getGrid());
  auto extended = [&](size_t field) {
    return LLVM::ZExtOp::create(b, loc, i64, LLVM::LoadOp::create(b, loc, i32, at(worker, field))).getResult();
  };
  Value index = extended(offsetof(k2rt_ir_worker, index)), count = extended(offsetof(k2rt_ir_worker, count));
  auto begins = [&](Value worker) {
    return LLVM::UDivOp::create(b, loc, LLVM::MulOp::create(b, loc, grid, worker), count).getResult();
  };
  Value begin = begins(index);
  Value end = begins(LLVM::AddOp::create(b, loc, index, constant(1)));
  Value itemBytes = constant(op.getBytes()), items = constant(op.getItems());
  Value first = LLVM::URemOp::create(b, loc, begin, items);
  Value mine = LLVM::SubOp::create(b, loc, end, begin);
  Value toTheEnd = LLVM::SubOp::create(b, loc, items, first);
  Value taken = LLVM::SMinOp::create(b, loc, mine, toTheEnd);
  Value whole = LLVM::MulOp::create(b, loc, taken, itemBytes);
  Value bytes = LLVM::SMinOp::create(b, loc, whole, constant(op.getMax()));
  Value offset = LLVM::MulOp::create(b, loc, first, itemBytes);
  auto after = [&](Value base, Value bytes) {
    return LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), base, ValueRange(bytes)).getResult();
  };
  Value from = after(values.lookup(op.getArgument()), offset);
  values.map(op.getFrom(), from);
  values.map(op.getEnd(), after(from, bytes));
}

void HostEmitter::emitPrefetch(rt::PrefetchOp op) {
  LLVM::StoreOp::create(b, loc, values.lookup(op.getFrom()), at(worker, offsetof(k2rt_ir_worker, prefetch)));
  LLVM::StoreOp::create(b, loc, values.lookup(op.getEnd()), at(worker, offsetof(k2rt_ir_worker, prefetch_end)));
}

Value HostEmitter::apiEntry(size_t offset) {
  return loadPointer(loadPointer(worker, offsetof(k2rt_ir_worker, api)), offset);
}

void HostEmitter::storeArguments(ValueRange operands) {
  for (auto [index, argument] : llvm::enumerate(operands)) {
    Value value = values.lookup(argument);
    if (value.getType() == i64)
      value = LLVM::IntToPtrOp::create(b, loc, ptr, value);
    LLVM::StoreOp::create(b, loc, value, at(arguments, static_cast<int64_t>(index * sizeof(void *))));
  }
}

/// Of a launch's grid, the k2rt_ir_grid: a fixed number of items, or some for each of the step's rows.
Value HostEmitter::gridDescription(Value items) {
  auto op = items.getDefiningOp<rt::GridOp>();
  const std::pair<size_t, Value> fields[] = {
      {offsetof(k2rt_ir_grid, rows),
       constant(op ? static_cast<int64_t>(fieldOf(op.getRows().getDefiningOp<rt::RowsOp>().getCount())) : -1)},
      {offsetof(k2rt_ir_grid, slots), constant(op ? op.getSlots() : 1)},
      {offsetof(k2rt_ir_grid, rows_per_item), constant(op ? op.getRowsPerItem() : 1)},
      {offsetof(k2rt_ir_grid, items), op ? constant(op.getItems()) : values.lookup(items)}};
  for (auto [offset, value] : fields)
    LLVM::StoreOp::create(b, loc, value, at(grid, static_cast<int64_t>(offset)));
  return grid;
}

/// A function with an index is that of a layer.
void HostEmitter::emitEnqueue(rt::LaunchOp op) {
  storeArguments(op.getArgs());
  auto kernel = symbols.lookup<rt::KernelOp>(op.getKernel());
  SmallVector<Value> operands{apiEntry(offsetof(k2rt_ir_api, enqueue)),
                              worker,
                              constant(kernel.getId(), 32),
                              gridDescription(op.getGrid()),
                              current.getNumArguments() > 1 ? current.getArgument(1) : constant(-1),
                              arguments,
                              constant(static_cast<int64_t>(op.getArgs().size()), 32),
                              constant(op.getNowait() ? 1 : 0, 32)};
  auto type = LLVM::LLVMFunctionType::get(i32, {ptr, i32, ptr, i64, ptr, i32, i32});
  returnIfFailed(LLVM::CallOp::create(b, loc, type, operands).getResult());
}

/// Kernels read the step of their worker: for rows that arrived, that of their site takes its place, for those of a
/// tensor-parallel group that of the group.
void HostEmitter::emitLaunch(rt::LaunchOp op) {
  if (isOnGpu)
    return emitEnqueue(op);
  storeArguments(op.getArgs());
  Value stepPlace = at(worker, offsetof(k2rt_ir_worker, step)), step;
  if (op.getArrived() || op.getGathered()) {
    step = LLVM::LoadOp::create(b, loc, ptr, stepPlace);
    Value other = op.getGathered() ? gatheredStep() : arrivedStep(op.getArrivedAttr());
    LLVM::StoreOp::create(b, loc, other, stepPlace);
  }
  auto kernel = symbols.lookup<rt::KernelOp>(op.getKernel());
  size_t entry = op.getNowait() ? offsetof(k2rt_ir_api, launch_nowait) : offsetof(k2rt_ir_api, launch);
  Value launch = apiEntry(entry);
  Value code = LLVM::AddressOfOp::create(b, loc, ptr, kernel.getHash());
  SmallVector<Value> operands{launch,   worker, constant(kernel.getId(), 32), code, values.lookup(op.getGrid()),
                              arguments};
  auto type = LLVM::LLVMFunctionType::get(i32, {ptr, i32, ptr, i64, ptr});
  Value status = LLVM::CallOp::create(b, loc, type, operands).getResult();
  if (step)
    LLVM::StoreOp::create(b, loc, step, stepPlace);
  if (!op.getNowait())
    returnIfFailed(status);
}

void HostEmitter::declareKernels() {
  if (isOnGpu)
    return;
  OpBuilder end = OpBuilder::atBlockEnd(module.getBody());
  llvm::StringSet<> declared;
  for (auto kernel : module.getOps<rt::KernelOp>())
    if (declared.insert(kernel.getHash()).second)
      LLVM::LLVMFuncOp::create(end, kernel.getLoc(), kernel.getHash(), LLVM::LLVMFunctionType::get(i32, {ptr, ptr}));
}

} // namespace k2c
