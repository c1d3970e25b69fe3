//===- Memory.cpp - Arguments, struct fields, loads, stores, rounding ------------------===//
//
// All that a kernel reads or writes goes through here: its argument pointers, the runtime's structs at the offsets of
// Abi.h, rows of activations and weights. Kernels compute in f32 alone; narrower types exist in memory only.
//
//   load    bf16 -> f32 by a shift                    exact
//   store   f32 -> bf16 to nearest, ties to even      a NaN turns quiet, a subnormal becomes the zero of its sign
//
// The store is defined so that vcvtneps2bf16 and the integer sequence give the same bits, as numerics may not depend
// on which of the two a CPU has. Accesses promise no more alignment than an element has, since views begin anywhere. A
// masked store of bf16 has a trap: LLVM 22 makes a store of one lane of it four bytes wide, so that case is a scalar
// store.
//
//===----------------------------------------------------------------------===//
#include "Builder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace k2c::emit {

Type storageType(MLIRContext *context, DType type) {
  if (type == DType::F32)
    return Float32Type::get(context);
  return IntegerType::get(context, 8 * byteWidth(type));
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

Value KernelBuilder::argument(int64_t i) {
  Value &known = arguments[i];
  if (!known)
    known = atEntry([&] {
      Value slot = LLVM::GEPOp::create(ops, loc, ptr(), ptr(), argsPtr, ArrayRef<LLVM::GEPArg>{int32_t(i)});
      return LLVM::LoadOp::create(ops, loc, ptr(), slot, 8).getResult();
    });
  return known;
}

static Value loadField(OpBuilder &ops, Location loc, Value base, abi::Field field) {
  Type pointer = LLVM::LLVMPointerType::get(ops.getContext());
  Value address =
      LLVM::GEPOp::create(ops, loc, pointer, ops.getI8Type(), base, ArrayRef<LLVM::GEPArg>{int32_t(field.offset)});
  switch (field.type) {
  case abi::FieldType::PTR:
    return LLVM::LoadOp::create(ops, loc, pointer, address, 8);
  case abi::FieldType::I32:
  case abi::FieldType::U32:
    return LLVM::LoadOp::create(ops, loc, ops.getI32Type(), address, 4);
  case abi::FieldType::F32:
    return LLVM::LoadOp::create(ops, loc, ops.getF32Type(), address, 4);
  default:
    return LLVM::LoadOp::create(ops, loc, ops.getI64Type(), address, 8);
  }
}

Value KernelBuilder::field(Value base, abi::Field field) { return loadField(ops, loc, base, field); }

Value KernelBuilder::stepField(abi::Field wanted) {
  if (!stepPtr)
    stepPtr = atEntry([&] { return loadField(ops, loc, workerPtr, abi::worker::step); });
  return field(stepPtr, wanted);
}

Value KernelBuilder::scratchPtr() {
  if (!scratchBase)
    scratchBase = atEntry([&] { return loadField(ops, loc, workerPtr, abi::worker::scratch); });
  return scratchBase;
}

void KernelBuilder::setVariant(Value variantI32) {
  Value address = atBytes(workerPtr, constant(abi::worker::variant.offset));
  LLVM::StoreOp::create(ops, loc, variantI32, address, 4);
}

Value KernelBuilder::rowCount(RowSpace space, int64_t slotsPerToken) {
  if (space == RowSpace::Output)
    return stepField(abi::step::output_rows);
  if (space == RowSpace::Entering)
    return stepField(abi::step::entering_rows);
  Value tokens = stepField(abi::step::token_rows);
  return space == RowSpace::Slot ? mul(tokens, slotsPerToken) : tokens;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value KernelBuilder::at(Value base, Value index, DType type) {
  return LLVM::GEPOp::create(ops, loc, ptr(), storageType(ops.getContext(), type), base, ValueRange(index));
}
Value KernelBuilder::atBytes(Value base, Value bytes) {
  return LLVM::GEPOp::create(ops, loc, ptr(), ops.getI8Type(), base, ValueRange(bytes));
}

Value KernelBuilder::load(Type type, Value address, DType element, Value mask) {
  if (mask)
    return LLVM::MaskedLoadOp::create(ops, loc, type, address, mask, LLVM::ZeroOp::create(ops, loc, type),
                                      byteWidth(element));
  return LLVM::LoadOp::create(ops, loc, type, address, byteWidth(element));
}
void KernelBuilder::store(Value value, Value address, DType element, Value mask) {
  if (mask)
    LLVM::MaskedStoreOp::create(ops, loc, value, address, mask, byteWidth(element));
  else
    LLVM::StoreOp::create(ops, loc, value, address, byteWidth(element));
}
Value KernelBuilder::gather(Type type, Value base, Value bytes, Value mask, DType element) {
  Type addresses = vec(ptr(), cast<VectorType>(type).getNumElements());
  Value from = LLVM::GEPOp::create(ops, loc, addresses, ops.getI8Type(), base, ValueRange(bytes));
  Value zeros = LLVM::ZeroOp::create(ops, loc, type);
  return LLVM::masked_gather::create(ops, loc, type, from, mask, ValueRange(zeros), byteWidth(element));
}
Value KernelBuilder::loadPtr(Value base, Value index) {
  return LLVM::LoadOp::create(ops, loc, ptr(), at(base, index, DType::I64), 8);
}

Value KernelBuilder::loadFloats(Value address, DType type, int64_t n, Value mask) {
  Type stored = vec(storageType(ops.getContext(), type), n);
  Value raw = load(stored, address, type, mask);
  if (type == DType::F32)
    return raw;
  return fromBits(shl(arith::ExtUIOp::create(ops, loc, vec(i32(), n), raw), 16));
}

/// f32 bits -> the nearest bf16 in the upper half of an i32, the lower half undefined: ties to even, a NaN keeps its
/// upper bits and turns quiet, an f32 subnormal becomes the zero of its sign.
static Value bf16Bits(KernelBuilder &b, Value f32s) {
  Value bits = b.bitsOf(f32s);
  Type type = bits.getType();
  Value even = b.bitAnd(b.shr(bits, 16), b.constant(type, 1));
  Value nearest = b.add(bits, b.add(even, 0x7fff));
  Value exponent = b.bitAnd(bits, b.constant(type, 0x7f800000));
  Value sign = b.bitAnd(bits, b.constant(type, int32_t(0x80000000)));
  nearest = b.select(b.compare(Compare::Eq, exponent, 0), sign, nearest);
  Value quiet = b.bitOr(bits, b.constant(type, 0x400000));
  return b.select(b.unordered(f32s, f32s), quiet, nearest);
}

/// The nearest bf16 as i16; vcvtneps2bf16 treats ties, NaNs and subnormals as bf16Bits does.
Value KernelBuilder::bf16Of(Value f32s) {
  auto vector = dyn_cast<VectorType>(f32s.getType());
  Type narrow = vector ? Type(VectorType::get(vector.getShape(), ops.getI16Type())) : Type(ops.getI16Type());
  if (!roundsByInstruction || !vector || vector.getNumElements() != 16)
    return arith::TruncIOp::create(ops, loc, narrow, shr(bf16Bits(*this, f32s), 16));
  Type halves = VectorType::get(vector.getShape(), ops.getBF16Type());
  auto name = ops.getStringAttr("llvm.x86.avx512bf16.cvtneps2bf16.512");
  Value rounded = LLVM::CallIntrinsicOp::create(ops, loc, halves, name, ValueRange{f32s}).getResults();
  return LLVM::BitcastOp::create(ops, loc, narrow, rounded);
}

Value KernelBuilder::rounded(Value f32s, DType type) {
  if (type == DType::F32)
    return f32s;
  Type bits = bitsOf(f32s).getType();
  return fromBits(shl(arith::ExtUIOp::create(ops, loc, bits, bf16Of(f32s)), 16));
}

/// True for a constant mask with the first lane alone.
static bool isFirstLane(Value mask) {
  DenseElementsAttr lanes;
  if (!matchPattern(mask, m_Constant(&lanes)))
    return false;
  auto bits = lanes.getValues<bool>();
  return bits[0] && llvm::count(bits, true) == 1;
}

void KernelBuilder::storeFloats(Value value, Value address, DType type, Value mask) {
  if (type == DType::BF16) {
    value = bf16Of(value);
    // LLVM 22 turns a masked store of one truncated lane into a store of the lane before truncation: four bytes for
    // two.
    if (mask && isFirstLane(mask))
      return store(lane(value, 0), address, type);
  }
  store(value, address, type, mask);
}

Value KernelBuilder::stack(int64_t bytes) {
  Value size = constant(bytes);
  return atEntry(
      [&] { return LLVM::AllocaOp::create(ops, loc, ptr(), ops.getI8Type(), size, /*alignment=*/64).getResult(); });
}

void KernelBuilder::atomicMax(Value address, Value value) {
  LLVM::AtomicRMWOp::create(ops, loc, LLVM::AtomicBinOp::fmax, address, value, LLVM::AtomicOrdering::monotonic);
}

Value KernelBuilder::nullPointer() { return LLVM::ZeroOp::create(ops, loc, ptr()); }

Value KernelBuilder::integerOf(Value pointer) { return LLVM::PtrToIntOp::create(ops, loc, i64(), pointer); }

void KernelBuilder::prefetch(Value address, CacheLevel level) {
  LLVM::Prefetch::create(ops, loc, address, /*rw=*/0, /*hint=*/level == CacheLevel::First ? 3 : 2, /*cache=*/1);
}

} // namespace k2c::emit
