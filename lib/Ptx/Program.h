//===- Program.h - A kernel as the machine runs it ------------------------===//
//
// Each instruction has become a function and the places of its operands. A register has a slot of 32 lanes: of 4 bytes
// where it has up to 32 bits (narrower ones are zero-extended), of 8 where it has 64; a predicate is one word, a bit
// for each lane. Constants have slots, too, which all warps share, so that an operand is always a slot.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PTX_PROGRAM_H
#define K2C_LIB_PTX_PROGRAM_H

#include "Conversion.h"
#include "Operands.h"

#include <cstring>
#include <map>

namespace k2c::ptx {

class Machine;
struct Warp;
struct Operation;

/// What an instruction has done.
enum class Outcome : uint8_t {
  Next,   ///< its lanes go on behind it
  Jumped, ///< it has set where its lanes go on
  Wait,   ///< it has to be tried again
  Failed, ///< it has recorded a finding
};

/// Runs `operation` for the lanes of `active`, of which there is one at least.
using Handler = Outcome (*)(Machine &machine, Warp &warp, const Operation &operation, uint32_t active);

/// Adds the `bytes` bytes at `from` to those at `to`, element by element, or does what else a reduction does.
using Combine = void (*)(std::byte *to, const std::byte *from, uint32_t bytes);

/// The place of an operand, in bytes: in the registers of a warp or, if the highest bit is set, in the constants.
using Slot = uint32_t;
constexpr Slot constantSlot = Slot(1) << 31;
constexpr Slot noSlot = ~Slot(0);

/// How an access is ordered with those of other threads. (PTX ISA, Memory Consistency Model)
enum class Strength : uint8_t { Weak, Relaxed, Acquire, Release, AcquireRelease };
enum class Scope : uint8_t { Cta, Cluster, Gpu, System };

/// Which addresses an instruction takes.
enum class Window : uint8_t { Generic, Global, Shared, Local, Param };

/// Where lanes go behind an instruction.
enum class Flow : uint8_t { Next, Branch, Table, End };

struct Operation {
  Handler run = nullptr;
  Slot destinations[2] = {noSlot, noSlot};
  Slot sources[4] = {noSlot, noSlot, noSlot, noSlot};
  Slot guard = noSlot;
  bool isGuardNegated = false;
  bool isAligned = false; ///< all lanes of the warp execute it together
  uint8_t count = 1;      ///< elements of a vector
  uint8_t bytes = 0;      ///< of an element
  bool isSigned = false;
  bool isConstant = false; ///< a load of what nobody writes
  uint8_t addressBytes = 8;
  uint64_t valueMask = ~uint64_t(0); ///< the bits of the register that a load writes
  Window window = Window::Generic;
  Strength strength = Strength::Weak;
  Scope scope = Scope::System;
  uint32_t target = 0;    ///< of a branch
  uint64_t immediate = 0; ///< what is added to an address; a choice of the handler
  uint32_t first = 0;     ///< of `count` slots in Program::lists
  Flow flow = Flow::Next;
  uint8_t kind = 0;                       ///< an InstructionClass
  Combine combine = nullptr;              ///< of a copy that reduces
  uint32_t checked = 0, checkedCount = 0; ///< in Program::lists: numbers of tracked slots that it reads
  uint32_t marked = 0, markedCount = 0;   ///< the same that it writes
  /// In Program::lists: numbers of registers of products that it reads, and behind them those that it writes.
  uint32_t touched = 0, readCount = 0, writtenCount = 0;
  int line = 0;
  uint32_t instruction = 0; ///< of Function::code
};

/// What a product of a warpgroup, or of a warp, multiplies.
struct MatrixForm {
  uint32_t rows, columns, depth, elementBytes;
  Element a, b;
  Sums sums;
  bool isSaturated, isRegisterA, isNegatedA, isNegatedB, isTransposedA, isTransposedB;
};

/// An address operand of an instruction that has several.
struct AddressOf {
  Slot base;
  uint64_t offset;
  uint8_t bytes; ///< of the base: 4 or 8
};

/// A special register, which is set when a warp starts.
enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  Laneid,
  Warpid,
  Nwarpid,
  LanemaskEq,
  LanemaskLt,
  LanemaskLe,
  LanemaskGt,
  LanemaskGe,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtarank,
  ClusterNctarank,
  ClusteridX,
  ClusteridY,
  ClusteridZ,
  NclusteridX,
  NclusteridY,
  NclusteridZ,
  DynamicSmemSize,
  TotalSmemSize,
};

struct Program {
  std::string moduleName;
  Function function;
  std::vector<Operation> code; ///< one for each instruction and one that ends the lanes
  std::vector<Slot> lists;     ///< vectors of operands, and what is checked
  std::vector<Conversion> conversions;
  std::vector<MatrixForm> matrixForms;
  std::map<Slot, uint32_t> matrixSlots; ///< registers of products: their numbers
  std::vector<AddressOf> addresses;     ///< those of one instruction lie together
  std::vector<uint64_t> constants;      ///< the bytes of their slots
  std::map<Special, Slot> specials;
  std::vector<Slot> slotOfRegister;
  uint32_t registerBytes = 0;            ///< of a warp
  std::vector<Slot> tracked;             ///< that some instruction may read before a write
  std::vector<uint64_t> variableAddress; ///< by VariableId; 0: of .global or .const, and not known
  uint64_t sharedBytes = 0;              ///< of static variables
  uint64_t localBytes = 0;               ///< of a lane
  uint64_t paramBytes = 0;
  std::vector<uint64_t> paramOffsets;
};

/// Addresses that are no address of .global. Shared memory begins above 0, so that a null pointer is outside; bits 24
/// to 31 of its addresses are 0 in the own CTA, or 1 + the rank of a CTA of the cluster.
constexpr uint64_t sharedWindow = uint64_t(1) << 56, localWindow = uint64_t(2) << 56, paramWindow = uint64_t(3) << 56;
constexpr uint64_t windowMask = ~(uint64_t(0xff) << 56);
constexpr uint64_t firstSharedAddress = 1024, sharedAddressBits = 24;

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_PROGRAM_H
