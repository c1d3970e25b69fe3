//===- Builder.cpp - Constants, arithmetic, lanes, control flow -----------------------===//
//
// The operations that all kernels are written with: integers, floats, lanes and structured control, emitted at one
// insertion point of one LLVM function. Three decisions are made here for all of them.
//
// Integer arithmetic folds as it is built, so that addresses of constant shapes cost nothing; float arithmetic is
// created as written and never folded, since the order of float operations is what numerics N1 to N7 fix. Constants,
// argument pointers and stack slots go to the beginning of the function, each once: a constant in a loop is not built
// again, and a stack slot in a loop would grow the stack. And a kernel that finds a mistake in its inputs stores a
// code and goes on: its loops keep one exit, and finish() returns the code. So what follows a call of fail() must be
// safe to run.
//
//===----------------------------------------------------------------------===//
#include "Builder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace k2c::emit {

KernelBuilder::KernelBuilder(ModuleOp module, StringRef symbol, int64_t lanes)
    : ops(module.getBodyRegion()), loc(ops.getUnknownLoc()), vectorLanes(lanes) {
  ops.setInsertionPointToEnd(module.getBody());
  Type pointer = ptr();
  auto type = LLVM::LLVMFunctionType::get(i32(), {pointer, pointer});
  function = LLVM::LLVMFuncOp::create(ops, loc, symbol, type);
  entry = function.addEntryBlock(ops);
  workerPtr = entry->getArgument(0);
  argsPtr = entry->getArgument(1);
  ops.setInsertionPointToEnd(entry);
}

void KernelBuilder::finish() {
  Value result = status ? Value(LLVM::LoadOp::create(ops, loc, i32(), status, 4)) : constant(i32(), 0);
  LLVM::ReturnOp::create(ops, loc, result);
}

//===----------------------------------------------------------------------===//
// Types and constants
//===----------------------------------------------------------------------===//

Type KernelBuilder::ptr() { return LLVM::LLVMPointerType::get(ops.getContext()); }

Value KernelBuilder::atEntry(llvm::function_ref<Value()> make) {
  OpBuilder::InsertionGuard guard(ops);
  if (entryEnd)
    ops.setInsertionPointAfter(entryEnd);
  else
    ops.setInsertionPointToStart(entry);
  Value value = make();
  entryEnd = value.getDefiningOp();
  return value;
}

Value KernelBuilder::entryConstant(TypedAttr value) {
  Value &known = constants[value];
  if (!known)
    known = atEntry([&] { return arith::ConstantOp::create(ops, loc, value).getResult(); });
  return known;
}

Value KernelBuilder::constant(Type type, int64_t value) {
  IntegerAttr scalar = ops.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    return entryConstant(DenseElementsAttr::get(vector, Attribute(scalar)));
  return entryConstant(scalar);
}

Value KernelBuilder::constantFloat(Type type, float value) {
  if (auto vector = dyn_cast<VectorType>(type))
    return entryConstant(DenseElementsAttr::get(vector, value));
  return entryConstant(ops.getF32FloatAttr(value));
}

Value KernelBuilder::laneMask(int64_t n, int64_t first, int64_t last) {
  SmallVector<bool> bits;
  for (int64_t i = 0; i < n; ++i)
    bits.push_back(i >= first && i < last);
  return entryConstant(DenseElementsAttr::get(cast<ShapedType>(vec(i1(), n)), ArrayRef<bool>(bits)));
}

Value KernelBuilder::firstLanes(int64_t n, Value count) {
  return compare(Compare::Lt, laneIds(i32(), n), splat(truncate(count), n));
}

Value KernelBuilder::laneIds(Type element, int64_t n) {
  SmallVector<Attribute> ids;
  for (int64_t i = 0; i < n; ++i)
    ids.push_back(ops.getIntegerAttr(element, i));
  return entryConstant(DenseElementsAttr::get(cast<ShapedType>(vec(element, n)), ids));
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Value KernelBuilder::add(Value a, Value b) { return ops.createOrFold<arith::AddIOp>(loc, a, b); }
Value KernelBuilder::sub(Value a, Value b) { return ops.createOrFold<arith::SubIOp>(loc, a, b); }
Value KernelBuilder::mul(Value a, Value b) { return ops.createOrFold<arith::MulIOp>(loc, a, b); }
Value KernelBuilder::div(Value a, Value b) { return ops.createOrFold<arith::DivUIOp>(loc, a, b); }
Value KernelBuilder::rem(Value a, Value b) { return ops.createOrFold<arith::RemUIOp>(loc, a, b); }
Value KernelBuilder::min(Value a, Value b) { return ops.createOrFold<arith::MinSIOp>(loc, a, b); }
Value KernelBuilder::max(Value a, Value b) { return ops.createOrFold<arith::MaxSIOp>(loc, a, b); }
Value KernelBuilder::bitAnd(Value a, Value b) { return ops.createOrFold<arith::AndIOp>(loc, a, b); }
Value KernelBuilder::bitOr(Value a, Value b) { return ops.createOrFold<arith::OrIOp>(loc, a, b); }
Value KernelBuilder::bitXor(Value a, Value b) { return ops.createOrFold<arith::XOrIOp>(loc, a, b); }
Value KernelBuilder::bitNot(Value a) { return bitXor(a, constant(a.getType(), -1)); }
Value KernelBuilder::shl(Value a, Value bits) { return ops.createOrFold<arith::ShLIOp>(loc, a, bits); }
Value KernelBuilder::shr(Value a, int64_t bits) {
  return ops.createOrFold<arith::ShRUIOp>(loc, a, constant(a.getType(), bits));
}
Value KernelBuilder::sar(Value a, int64_t bits) {
  return ops.createOrFold<arith::ShRSIOp>(loc, a, constant(a.getType(), bits));
}

Value KernelBuilder::compare(Compare op, Value a, Value b) {
  static constexpr arith::CmpIPredicate predicates[] = {arith::CmpIPredicate::eq,  arith::CmpIPredicate::ne,
                                                        arith::CmpIPredicate::slt, arith::CmpIPredicate::sle,
                                                        arith::CmpIPredicate::sgt, arith::CmpIPredicate::sge};
  return ops.createOrFold<arith::CmpIOp>(loc, predicates[static_cast<uint8_t>(op)], a, b);
}

Value KernelBuilder::ones(Value a) { return math::CtPopOp::create(ops, loc, a); }
Value KernelBuilder::trailingOnes(Value a) { return math::CountTrailingZerosOp::create(ops, loc, bitNot(a)); }

Value KernelBuilder::leadingZeros(Value a) { return math::CountLeadingZerosOp::create(ops, loc, a); }

static Type withElement(Type like, Type element) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}

Value KernelBuilder::extend(Value value) {
  return ops.createOrFold<arith::ExtSIOp>(loc, withElement(value.getType(), i64()), value);
}
Value KernelBuilder::truncate(Value value) {
  return ops.createOrFold<arith::TruncIOp>(loc, withElement(value.getType(), i32()), value);
}

//===----------------------------------------------------------------------===//
// Floats: created, never folded, so that what is emitted is what is computed
//===----------------------------------------------------------------------===//

Value KernelBuilder::fadd(Value a, Value b) { return arith::AddFOp::create(ops, loc, a, b); }
Value KernelBuilder::fsub(Value a, Value b) { return arith::SubFOp::create(ops, loc, a, b); }
Value KernelBuilder::fmul(Value a, Value b) { return arith::MulFOp::create(ops, loc, a, b); }
Value KernelBuilder::fdiv(Value a, Value b) { return arith::DivFOp::create(ops, loc, a, b); }
Value KernelBuilder::fneg(Value a) { return arith::NegFOp::create(ops, loc, a); }
Value KernelBuilder::fabs(Value a) { return math::AbsFOp::create(ops, loc, a); }
Value KernelBuilder::sqrt(Value a) { return math::SqrtOp::create(ops, loc, a); }
Value KernelBuilder::fma(Value a, Value b, Value c) { return math::FmaOp::create(ops, loc, a, b, c); }

Value KernelBuilder::fcompare(Compare op, Value a, Value b) {
  static constexpr arith::CmpFPredicate predicates[] = {arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UNE,
                                                        arith::CmpFPredicate::OLT, arith::CmpFPredicate::OLE,
                                                        arith::CmpFPredicate::OGT, arith::CmpFPredicate::OGE};
  return arith::CmpFOp::create(ops, loc, predicates[static_cast<uint8_t>(op)], a, b);
}
Value KernelBuilder::unordered(Value a, Value b) {
  return arith::CmpFOp::create(ops, loc, arith::CmpFPredicate::UNO, a, b);
}
Value KernelBuilder::select(Value condition, Value a, Value b) {
  return ops.createOrFold<arith::SelectOp>(loc, condition, a, b);
}
Value KernelBuilder::bitsOf(Value a) {
  return ops.createOrFold<arith::BitcastOp>(loc, withElement(a.getType(), i32()), a);
}
Value KernelBuilder::fromBits(Value a) {
  return ops.createOrFold<arith::BitcastOp>(loc, withElement(a.getType(), f32()), a);
}
Value KernelBuilder::toFloat(Value a) { return arith::SIToFPOp::create(ops, loc, withElement(a.getType(), f32()), a); }
Value KernelBuilder::toInt(Value a) { return arith::FPToSIOp::create(ops, loc, withElement(a.getType(), i32()), a); }

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

Value KernelBuilder::splat(Value scalar, int64_t n) {
  if (n == 0)
    return scalar;
  return ops.createOrFold<vector::BroadcastOp>(loc, vec(scalar.getType(), n), scalar);
}
Value KernelBuilder::lane(Value vector, int64_t i) { return vector::ExtractOp::create(ops, loc, vector, i); }
Value KernelBuilder::lane(Value vector, Value i) { return LLVM::ExtractElementOp::create(ops, loc, vector, i); }
Value KernelBuilder::setLane(Value vector, Value scalar, int64_t i) {
  return vector::InsertOp::create(ops, loc, scalar, vector, i);
}
Value KernelBuilder::setLane(Value vector, Value scalar, Value i) {
  return LLVM::InsertElementOp::create(ops, loc, vector, scalar, i);
}
Value KernelBuilder::shuffle(Value a, Value b, ArrayRef<int64_t> lanes) {
  return vector::ShuffleOp::create(ops, loc, a, b, lanes);
}
Value KernelBuilder::rotate(Value vector, int64_t distance) {
  int64_t n = cast<VectorType>(vector.getType()).getNumElements();
  SmallVector<int64_t> lanes;
  for (int64_t i = 0; i < n; ++i)
    lanes.push_back((i + distance) % n);
  return shuffle(vector, vector, lanes);
}
Value KernelBuilder::reinterpret(Value vector, Type type) { return LLVM::BitcastOp::create(ops, loc, type, vector); }
Value KernelBuilder::largestLane(Value vector) {
  return vector::ReductionOp::create(ops, loc, vector::CombiningKind::MAXSI, vector);
}
Value KernelBuilder::smallestLane(Value vector) {
  return vector::ReductionOp::create(ops, loc, vector::CombiningKind::MINSI, vector);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

Values KernelBuilder::loop(Value first, Value last, Value step, ValueRange init,
                           llvm::function_ref<Values(Value, ValueRange)> body) {
  auto op = scf::ForOp::create(ops, loc, first, last, step, init);
  OpBuilder::InsertionGuard guard(ops);
  Block *block = op.getBody();
  if (init.empty())
    block->getTerminator()->erase();
  ops.setInsertionPointToEnd(block);
  Values results = body(op.getInductionVar(), op.getRegionIterArgs());
  scf::YieldOp::create(ops, loc, results);
  return Values(op.getResults());
}

void KernelBuilder::loop(Value first, Value last, int64_t step, llvm::function_ref<void(Value)> body) {
  loop(first, last, constant(step), body);
}

void KernelBuilder::loop(Value first, Value last, Value step, llvm::function_ref<void(Value)> body) {
  loop(first, last, step, ValueRange(), [&](Value i, ValueRange) {
    body(i);
    return Values();
  });
}

Values KernelBuilder::choose(Value condition, TypeRange types, llvm::function_ref<Values()> then,
                             llvm::function_ref<Values()> otherwise) {
  auto op = scf::IfOp::create(ops, loc, types, condition, /*withElseRegion=*/true);
  for (auto [region, body] : {std::pair(&op.getThenRegion(), then), std::pair(&op.getElseRegion(), otherwise)}) {
    OpBuilder::InsertionGuard guard(ops);
    Block *block = region->empty() ? ops.createBlock(region) : &region->front();
    block->clear();
    ops.setInsertionPointToEnd(block);
    Values results = body();
    scf::YieldOp::create(ops, loc, results);
  }
  return Values(op.getResults());
}

void KernelBuilder::choose(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise) {
  choose(
      condition, {},
      [&] {
        then();
        return Values();
      },
      [&] {
        otherwise();
        return Values();
      });
}

void KernelBuilder::when(Value condition, llvm::function_ref<void()> then) {
  auto op = scf::IfOp::create(ops, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(ops);
  ops.setInsertionPoint(op.thenBlock()->getTerminator());
  then();
}

Values KernelBuilder::repeat(ValueRange init, llvm::function_ref<Values(ValueRange)> body) {
  auto op = scf::WhileOp::create(ops, loc, init.getTypes(), init);
  SmallVector<Location> locations(init.size(), loc);
  OpBuilder::InsertionGuard guard(ops);
  Block *before = ops.createBlock(&op.getBefore(), {}, init.getTypes(), locations);
  Values results = body(before->getArguments());
  scf::ConditionOp::create(ops, loc, results.front(), ValueRange(results).drop_front());
  Block *after = ops.createBlock(&op.getAfter(), {}, init.getTypes(), locations);
  scf::YieldOp::create(ops, loc, after->getArguments());
  return Values(op.getResults());
}

void KernelBuilder::switchOn(Value value, int64_t first, int64_t last, llvm::function_ref<void(int64_t)> body) {
  if (first == last)
    return body(first);
  SmallVector<int64_t> cases;
  for (int64_t n = first; n < last; ++n)
    cases.push_back(n);
  Value index = arith::IndexCastOp::create(ops, loc, ops.getIndexType(), value);
  auto op = scf::IndexSwitchOp::create(ops, loc, TypeRange(), index, cases, cases.size());
  OpBuilder::InsertionGuard guard(ops);
  for (int64_t n = first; n <= last; ++n) {
    ops.createBlock(n < last ? &op.getCaseRegions()[n - first] : &op.getDefaultRegion());
    body(n);
    scf::YieldOp::create(ops, loc);
  }
}

Value KernelBuilder::advance(Value first, Value last, llvm::function_ref<Value(Value)> holds) {
  auto op = scf::WhileOp::create(ops, loc, TypeRange(i64()), ValueRange(first));
  OpBuilder::InsertionGuard guard(ops);
  Block *before = ops.createBlock(&op.getBefore(), {}, TypeRange(i64()), loc);
  Value i = before->getArgument(0);
  Value goOn = choose(
      compare(Compare::Lt, i, last), i1(), [&] { return Values{holds(i)}; },
      [&] { return Values{constant(i1(), 0)}; })[0];
  scf::ConditionOp::create(ops, loc, goOn, ValueRange(i));
  Block *after = ops.createBlock(&op.getAfter(), {}, TypeRange(i64()), loc);
  Value next = add(after->getArgument(0), 1);
  scf::YieldOp::create(ops, loc, next);
  return op.getResult(0);
}

void KernelBuilder::fail(Value condition, int64_t code) {
  if (!status) {
    status = stack(4);
    atEntry([&] {
      auto zero = LLVM::ZeroOp::create(ops, loc, i32());
      entryEnd = LLVM::StoreOp::create(ops, loc, zero, status, 4);
      return zero.getResult();
    });
  }
  when(condition, [&] { LLVM::StoreOp::create(ops, loc, constant(i32(), code), status, 4); });
}

void KernelBuilder::failAbsent(Value condition, Value entry) {
  fail(condition, K2RT_STATUS_ABSENT_EXPERT);
  when(condition,
       [&] { LLVM::StoreOp::create(ops, loc, entry, atBytes(workerPtr, constant(abi::worker::absent.offset)), 8); });
}

void KernelBuilder::columns(int64_t width, llvm::function_ref<void(const Chunk &)> body) {
  int64_t full = width / vectorLanes * vectorLanes;
  if (full == vectorLanes)
    body({constant(0), vectorLanes, Value()});
  else if (full > 0)
    loop(0, full, vectorLanes, [&](Value column) { body({column, vectorLanes, Value()}); });
  if (full < width)
    body({constant(full), vectorLanes, laneMask(vectorLanes, 0, width - full)});
}

void KernelBuilder::items(llvm::function_ref<void(Value)> body) {
  loop(workerField(abi::worker::begin), workerField(abi::worker::end), 1, body);
}

} // namespace k2c::emit
