//===- Builder.h - Writes the body of one kernel ------------------------------------===//
//
// A thin layer over OpBuilder so that a kernel's source reads like the loop nest it emits. One module, one LLVM
// function `int32_t symbol(k2rt_ir_worker *, void *const *args)`; pointers are !llvm.ptr, integers i64, arithmetic
// arith/math on scalars or vector<n>, control flow scf. Constants are made once, at the entry.
//
// Rules of bits: a float op here is the IEEE operation of numerics.md and nothing else (no fast-math flags, fma only
// where fma() is called); a vector op is the scalar op on each lane; masked lanes are loaded as zero and never stored.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_KERNELS_CPU_BUILDER_H
#define K2C_LIB_KERNELS_CPU_BUILDER_H

#include "k2c/Kernels/Abi.h"
#include "k2c/Kernels/KernelDesc.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace k2c::emit {

using mlir::Type;
using mlir::Value;
using mlir::ValueRange;
using Values = llvm::SmallVector<Value>;

/// The type of one element of `type` in memory (bf16 is i16: it is widened by shifts).
Type storageType(mlir::MLIRContext *context, DType type);

/// Comparisons of floats are ordered: false when an operand is NaN.
enum class Compare : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };

/// The cache that a prefetch fills.
enum class CacheLevel : uint8_t { First, Second };

/// A full vector chunk or a masked tail of a row: `count` valid elements, mask null when count == lanes.
struct Chunk {
  Value column;      ///< first column, i64
  int64_t lanes = 1; ///< vector length; 0 = scalar
  Value mask;        ///< vector<lanes x i1> or null
};

class KernelBuilder {
public:
  /// Adds the function to `module` and opens its entry block. `lanes`: f32 elements of a vector register.
  KernelBuilder(mlir::ModuleOp module, llvm::StringRef symbol, int64_t lanes);
  /// Closes the function: returns 0.
  void finish();

  int64_t lanes() const { return vectorLanes; }
  mlir::OpBuilder &builder() { return ops; }

  //===-- Types and constants ---------------------------------------------===//
  Type i1() { return ops.getI1Type(); }
  Type i32() { return ops.getI32Type(); }
  Type i64() { return ops.getI64Type(); }
  Type f32() { return ops.getF32Type(); }
  Type ptr();
  Type vec(Type element, int64_t n) { return n == 0 ? element : Type(mlir::VectorType::get({n}, element)); }
  Type vec(Type element) { return vec(element, vectorLanes); }
  Value constant(int64_t value) { return constant(i64(), value); }
  /// Integer of `type`; splat when it is a vector.
  Value constant(Type type, int64_t value);
  /// A constant of `type`, f32 or a vector of it, in which all lanes are `value`.
  Value constantFloat(Type type, float value);
  Value number(float value) { return constantFloat(f32(), value); }
  Value zeros(int64_t n) { return constantFloat(vec(f32(), n), 0.0f); }
  /// Lanes [first, last) of n.
  Value laneMask(int64_t n, int64_t first, int64_t last);
  /// The lanes below `count` (i64; any value).
  Value firstLanes(int64_t n, Value count);
  /// 0, 1, ... n-1 as `element`.
  Value laneIds(Type element, int64_t n);

  //===-- Arguments -------------------------------------------------------===//
  Value worker() { return workerPtr; }
  /// Argument i: a pointer, loaded at the entry.
  Value argument(int64_t i);
  Value workerField(abi::Field field) { return this->field(workerPtr, field); }
  /// A field of the running step.
  Value stepField(abi::Field field);
  Value field(Value base, abi::Field field);
  void setVariant(int64_t variant) { setVariant(constant(i32(), variant)); }
  void setVariant(Value variantI32);
  /// Rows of a space in this step.
  Value rowCount(RowSpace space, int64_t slotsPerToken);
  /// This worker's scratch, `offset` bytes in.
  Value scratch(int64_t offset) { return atBytes(scratchPtr(), constant(offset)); }

  //===-- Integers --------------------------------------------------------===//
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b); ///< of non-negative numbers
  Value rem(Value a, Value b); ///< of non-negative numbers
  Value min(Value a, Value b);
  Value max(Value a, Value b);
  Value add(Value a, int64_t b) { return add(a, constant(a.getType(), b)); }
  Value sub(Value a, int64_t b) { return sub(a, constant(a.getType(), b)); }
  Value mul(Value a, int64_t b) { return mul(a, constant(a.getType(), b)); }
  Value div(Value a, int64_t b) { return div(a, constant(a.getType(), b)); }
  Value rem(Value a, int64_t b) { return rem(a, constant(a.getType(), b)); }
  Value min(Value a, int64_t b) { return min(a, constant(a.getType(), b)); }
  Value max(Value a, int64_t b) { return max(a, constant(a.getType(), b)); }
  Value shl(Value a, Value bits);
  Value shl(Value a, int64_t bits) { return shl(a, constant(a.getType(), bits)); }
  Value shr(Value a, int64_t bits); ///< logical
  Value sar(Value a, int64_t bits); ///< arithmetic
  Value bitAnd(Value a, Value b);
  Value bitOr(Value a, Value b);
  Value bitXor(Value a, Value b);
  Value bitNot(Value a);
  /// Signed comparison.
  Value compare(Compare op, Value a, Value b);
  Value compare(Compare op, Value a, int64_t b) { return compare(op, a, constant(a.getType(), b)); }
  Value ones(Value a);          ///< set bits
  Value trailingOnes(Value a);  ///< set bits below the lowest clear one
  Value leadingZeros(Value a);  ///< the width for 0
  Value extend(Value i32Value); ///< i32 -> i64, signed; vectors too
  Value truncate(Value i64Value);

  //===-- Floats ----------------------------------------------------------===//
  Value fadd(Value a, Value b);
  Value fsub(Value a, Value b);
  Value fmul(Value a, Value b);
  Value fdiv(Value a, Value b);
  Value fneg(Value a);
  Value fabs(Value a);
  Value sqrt(Value a);
  Value fma(Value a, Value b, Value c); ///< a * b + c, rounded once
  Value fcompare(Compare op, Value a, Value b);
  Value unordered(Value a, Value b); ///< true where a or b is NaN
  Value select(Value condition, Value a, Value b);
  Value bitsOf(Value a);     ///< f32 -> i32
  Value fromBits(Value a);   ///< i32 -> f32
  Value toFloat(Value i32s); ///< i32 -> f32
  Value toInt(Value f32s);   ///< f32 -> i32, towards zero
  /// From here on vectors of 16 are rounded to bf16 by AVX512-BF16's instruction, which has the same bits.
  void roundByInstruction() { roundsByInstruction = true; }
  /// Rounds f32 to `type` (ties to even) and back: the rounding point of a result type.
  Value rounded(Value f32s, DType type);

  //===-- Lanes -----------------------------------------------------------===//
  /// A scalar on n lanes; n = 0 returns it.
  Value splat(Value scalar, int64_t n);
  Value splat(Value scalar) { return splat(scalar, vectorLanes); }
  Value lane(Value vector, int64_t i);
  Value lane(Value vector, Value i);
  Value setLane(Value vector, Value scalar, int64_t i);
  Value setLane(Value vector, Value scalar, Value i);
  Value shuffle(Value a, Value b, llvm::ArrayRef<int64_t> lanes);
  /// Lane (i + distance) mod n onto lane i.
  Value rotate(Value vector, int64_t distance);
  /// The same bits as a vector of another element.
  Value reinterpret(Value vector, Type type);
  /// The largest, or smallest, lane of signed integers.
  Value largestLane(Value vector);
  Value smallestLane(Value vector);

  //===-- Memory ----------------------------------------------------------===//
  /// The pointer `index` elements of `type` behind `ptr`.
  Value at(Value ptr, Value index, DType type);
  Value at(Value ptr, int64_t index, DType type) { return at(ptr, constant(index), type); }
  Value atBytes(Value ptr, Value bytes);
  Value row(Value base, const Rows &rows, Value index) { return at(base, mul(index, rows.stride), rows.type); }
  /// Raw elements: a scalar (n = 0) or n of them; those outside the mask are zero.
  Value load(Type type, Value ptr, DType element, Value mask = {});
  void store(Value value, Value ptr, DType element, Value mask = {});
  Value loadI32(Value ptr, Value index) { return load(i32(), at(ptr, index, DType::I32), DType::I32); }
  void storeI32(Value value, Value ptr, Value index) { store(value, at(ptr, index, DType::I32), DType::I32); }
  /// Lane i is the element of `type` at `base` + bytes[i] (i64 lanes), 0 where `mask` is not set.
  Value gather(Type type, Value base, Value bytes, Value mask, DType element);
  Value loadPtr(Value ptr, Value index);
  /// Loads n elements of F32 or BF16 as f32 (n = 0: one scalar).
  Value loadFloats(Value ptr, DType type, int64_t n, Value mask = {});
  /// Rounds to `type` and stores.
  void storeFloats(Value value, Value ptr, DType type, Value mask = {});
  Value loadFloats(Value rowPtr, DType type, const Chunk &chunk) {
    return loadFloats(at(rowPtr, chunk.column, type), type, chunk.lanes, chunk.mask);
  }
  void storeFloats(Value value, Value rowPtr, DType type, const Chunk &chunk) {
    storeFloats(value, at(rowPtr, chunk.column, type), type, chunk.mask);
  }
  /// Stack space of the function: `bytes`, aligned to 64. Allocated once, at the entry.
  Value stack(int64_t bytes);
  void prefetch(Value ptr, CacheLevel level = CacheLevel::First);
  /// The f32 at `ptr` becomes the larger, atomically.
  void atomicMax(Value ptr, Value value);
  Value nullPointer();
  /// The pointer as an i64: layer ordinals, null checks.
  Value integerOf(Value ptr);

  //===-- Control ---------------------------------------------------------===//
  void loop(Value first, Value last, int64_t step, llvm::function_ref<void(Value)> body);
  void loop(Value first, Value last, Value step, llvm::function_ref<void(Value)> body);
  void loop(int64_t first, int64_t last, int64_t step, llvm::function_ref<void(Value)> body) {
    loop(constant(first), constant(last), step, body);
  }
  Values loop(Value first, Value last, Value step, ValueRange init, llvm::function_ref<Values(Value, ValueRange)> body);
  Values loop(Value first, Value last, int64_t step, ValueRange init,
              llvm::function_ref<Values(Value, ValueRange)> body) {
    return loop(first, last, constant(step), init, body);
  }
  Values loop(int64_t first, int64_t last, int64_t step, ValueRange init,
              llvm::function_ref<Values(Value, ValueRange)> body) {
    return loop(constant(first), constant(last), step, init, body);
  }
  void when(Value condition, llvm::function_ref<void()> then);
  void choose(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise);
  Values choose(Value condition, mlir::TypeRange types, llvm::function_ref<Values()> then,
                llvm::function_ref<Values()> otherwise);
  /// Emits body(n) for value == n, first <= n <= last; `value` lies in that range.
  void switchOn(Value value, int64_t first, int64_t last, llvm::function_ref<void(int64_t)> body);
  /// Emits do { state = body(state) } while (condition). The condition is the first of body's values and is dropped.
  Values repeat(ValueRange init, llvm::function_ref<Values(ValueRange)> body);
  /// The first i in [first, last] that is `last` or does not satisfy `holds`.
  Value advance(Value first, Value last, llvm::function_ref<Value(Value)> holds);
  /// The kernel returns `status` at its end when `condition` holds; until then it goes on.
  void fail(Value condition, int64_t status);
  /// The same with K2RT_STATUS_ABSENT_EXPERT for the null at `entry` of a table of experts.
  void failAbsent(Value condition, Value entry);
  /// Chunks of `width` columns: a loop over full vectors, then one masked tail; the body is called for both.
  void columns(int64_t width, llvm::function_ref<void(const Chunk &)> body);
  /// This worker's grid items: body(item).
  void items(llvm::function_ref<void(Value)> body);

private:
  Value scratchPtr();
  Value bf16Of(Value f32s);
  Value entryConstant(mlir::TypedAttr value);
  /// Runs `make` with the insertion point in the entry block, after what was put there before.
  Value atEntry(llvm::function_ref<Value()> make);

  mlir::OpBuilder ops;
  mlir::Location loc;
  int64_t vectorLanes;
  bool roundsByInstruction = false;
  mlir::LLVM::LLVMFuncOp function;
  mlir::Block *entry = nullptr;
  mlir::Operation *entryEnd = nullptr; ///< last op of the entry's prefix of constants, arguments and stack slots
  Value workerPtr, argsPtr, stepPtr, scratchBase, status;
  llvm::DenseMap<mlir::Attribute, Value> constants;
  llvm::DenseMap<int64_t, Value> arguments;
};

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_BUILDER_H
