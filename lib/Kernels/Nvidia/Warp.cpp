//===- Warp.cpp - Vectors of 32 over the lanes of a warp ---------------------------===//
//
// A kernel is emitted for vectors of 32 and then rewritten, so that lane i of a warp has element i of each vector:
//
//   %v = llvm.load %p : vector<32xf32>           %v = llvm.load %p[lane] : f32
//   %w = math.fma %v, %b, %c : vector<32xf32>    %w = math.fma %v, %b, %c : f32
//   %s = vector.extract %w[3]                    %s = what lane 3 has of %w
//
// What is done element by element stays as it is but for its type, and all lanes have what is no vector over them:
// scalars, and vectors of fewer elements. So bits are those of the vector: no order of a sum changes. A vector of 64
// (rotary's pairs, halves of words) is two values of each lane.
//
//===----------------------------------------------------------------------===//
#include "Lanes.h"
#include "Memory.h"
#include "Permutation.h"
#include "k2c/Kernels/Cta.h"
#include "k2c/Kernels/Nvidia.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace k2c {

namespace {

using warp::Lanes;
using Parts = SmallVector<Value, 2>;

/// Vectors over the lanes have one value of a lane for each 32 elements.
int64_t partsOf(Type type) { return cast<VectorType>(type).getNumElements() / warp::lanes; }

/// Rewrites the operations that have to do with vectors over the lanes, each behind those of its operands.
class Spreader {
public:
  explicit Spreader(MLIRContext *context) : ops(context) {}

  LogicalResult spread(Operation *op) {
    ops.setInsertionPoint(op);
    loc = op->getLoc();
    Parts made;
    LogicalResult result = llvm::TypeSwitch<Operation *, LogicalResult>(op)
                               .Case([&](arith::ConstantOp constant) { return replace(op, constants(constant)); })
                               .Case([&](LLVM::ZeroOp zero) { return replace(op, zeros(zero)); })
                               .Case([&](vector::BroadcastOp splat) { return broadcast(splat); })
                               .Case([&](vector::ShuffleOp shuffle) { return replace(op, shuffled(shuffle)); })
                               .Case([&](LLVM::BitcastOp cast) {
                                 return partsOf(cast.getType()) == int64_t(partsOfValue(cast->getOperand(0)).size())
                                            ? retype(cast)
                                            : replace(cast, regrouped(cast));
                               })
                               .Case([&](vector::ExtractOp extract) { return lane(extract); })
                               .Case([&](vector::ReductionOp reduction) { return reduce(reduction); })
                               .Case([&](LLVM::LoadOp load) { return replace(op, loads(load)); })
                               .Case([&](LLVM::MaskedLoadOp load) { return replace(op, maskedLoads(load)); })
                               .Case([&](LLVM::masked_gather gather) { return replace(op, gathered(gather)); })
                               .Case([&](LLVM::StoreOp store) { return stores(store); })
                               .Case([&](LLVM::MaskedStoreOp store) { return maskedStores(store); })
                               .Default([&](Operation *) { return retype(op); });
    return result;
  }

  void eraseReplaced() {
    for (Operation *op : llvm::reverse(replaced))
      op->erase();
  }

private:
  /// The values of a lane of what was a vector. Operands are asked for by number: what they are by name are vectors.
  Parts partsOfValue(Value value) {
    auto found = parts.find(value);
    return found == parts.end() ? Parts{value} : found->second;
  }

  LogicalResult replace(Operation *op, const Parts &made) {
    if (made.empty())
      return refuse(op);
    if (made.size() == 1)
      op->getResult(0).replaceAllUsesWith(made.front());
    else
      parts[op->getResult(0)] = made;
    replaced.push_back(op);
    return success();
  }

  LogicalResult refuse(Operation *op) {
    return op->emitError() << op->getName() << " does not lie over the lanes of a warp";
  }

  Parts constants(arith::ConstantOp op) {
    auto values = dyn_cast<DenseElementsAttr>(op.getValue());
    Type element = cast<VectorType>(op.getType()).getElementType();
    if (!values)
      return {};
    Parts made;
    for (int64_t part = 0; part < partsOf(op.getType()); ++part) {
      if (values.isSplat()) {
        made.push_back(arith::ConstantOp::create(ops, loc, values.getSplatValue<TypedAttr>()));
        continue;
      }
      SmallVector<uint64_t> own;
      for (int64_t i = 0; i < warp::lanes && isa<IntegerType>(element); ++i)
        own.push_back(values.getValues<APInt>()[size_t(part * warp::lanes + i)].getZExtValue());
      if (own.empty())
        return {};
      made.push_back(Lanes(ops, loc).table(element, own));
    }
    return made;
  }

  Parts zeros(LLVM::ZeroOp op) {
    auto type = cast<VectorType>(op.getType());
    Value zero = arith::ConstantOp::create(ops, loc, ops.getZeroAttr(type.getElementType()));
    return Parts(size_t(partsOf(type)), zero);
  }

  LogicalResult broadcast(vector::BroadcastOp op) {
    if (isa<VectorType>(op.getSourceType()) || partsOf(op.getType()) != 1)
      return refuse(op);
    return replace(op, {op.getSource()});
  }

  /// Lane l takes element mask[l] of the parts in a row.
  Value picked(const Parts &from, ArrayRef<int64_t> mask) {
    SmallVector<uint64_t> lanes, sources;
    bool isInPlace = true;
    for (auto [l, element] : llvm::enumerate(mask)) {
      lanes.push_back(uint64_t(element % warp::lanes));
      sources.push_back(uint64_t(element / warp::lanes));
      isInPlace &= lanes.back() == l;
    }
    Lanes warp(ops, loc);
    Value other = isInPlace ? Value() : warp.table(ops.getI32Type(), lanes), result;
    for (size_t source = 0; source < from.size(); ++source) {
      if (!llvm::is_contained(sources, source))
        continue;
      Value moved = isInPlace ? from[source] : warp.valueOf(from[source], other);
      SmallVector<uint64_t> isOfSource;
      for (uint64_t each : sources)
        isOfSource.push_back(each == source);
      result = result ? Value(arith::SelectOp::create(ops, loc, warp.table(ops.getI1Type(), isOfSource), moved, result))
                      : moved;
    }
    return result;
  }

  Parts shuffled(vector::ShuffleOp op) {
    Parts from = partsOfValue(op->getOperand(0)), made;
    llvm::append_range(from, partsOfValue(op->getOperand(1)));
    for (ArrayRef<int64_t> mask = op.getMask(); !mask.empty(); mask = mask.drop_front(warp::lanes))
      made.push_back(picked(from, mask.take_front(warp::lanes)));
    return made;
  }

  /// 64 halves and 32 words: word l is halves 2 l and 2 l + 1.
  Parts regrouped(LLVM::BitcastOp op) {
    Parts from = partsOfValue(op->getOperand(0)), made;
    SmallVector<int64_t> even, odd;
    SmallVector<uint64_t> shifts;
    for (int64_t l = 0; l < warp::lanes; ++l) {
      even.push_back(2 * l);
      odd.push_back(2 * l + 1);
      shifts.push_back(uint64_t(l % 2 * 16));
    }
    if (from.size() == 2 && from[0].getType().isInteger(16)) {
      Value low = arith::ExtUIOp::create(ops, loc, ops.getI32Type(), picked(from, even));
      Value high = arith::ExtUIOp::create(ops, loc, ops.getI32Type(), picked(from, odd));
      Value half = arith::ConstantOp::create(ops, loc, ops.getI32IntegerAttr(16));
      return {arith::OrIOp::create(ops, loc, low, arith::ShLIOp::create(ops, loc, high, half))};
    }
    if (from.size() != 1 || !from[0].getType().isInteger(32))
      return {};
    for (int64_t part = 0; part < 2; ++part) {
      SmallVector<int64_t> words;
      for (int64_t l = 0; l < warp::lanes; ++l)
        words.push_back((part * warp::lanes + l) / 2);
      Value shift = Lanes(ops, loc).table(ops.getI32Type(), shifts);
      Value bits = arith::ShRUIOp::create(ops, loc, picked(from, words), shift);
      made.push_back(arith::TruncIOp::create(ops, loc, ops.getI16Type(), bits));
    }
    return made;
  }

  LogicalResult lane(vector::ExtractOp op) {
    if (op.getStaticPosition().size() != 1 || op.hasDynamicPosition())
      return refuse(op);
    const int64_t element = op.getStaticPosition()[0];
    Value lane = arith::ConstantOp::create(ops, loc, ops.getI32IntegerAttr(int32_t(element % warp::lanes)));
    Value part = partsOfValue(op->getOperand(0))[size_t(element / warp::lanes)];
    return replace(op, {Lanes(ops, loc).valueOf(part, lane)});
  }

  LogicalResult reduce(vector::ReductionOp op) {
    const bool isMax = op.getKind() == vector::CombiningKind::MAXSI;
    if (op.getAcc() || (!isMax && op.getKind() != vector::CombiningKind::MINSI))
      return refuse(op);
    return replace(op, {Lanes(ops, loc).reduce(op->getOperand(0), isMax)});
  }

  /// Where this lane's element of a part lies.
  Value addressOf(Value address, Type element, size_t part) {
    Value lane = arith::ExtUIOp::create(ops, loc, ops.getI64Type(), Lanes(ops, loc).id());
    Value first = arith::ConstantOp::create(ops, loc, ops.getI64IntegerAttr(int64_t(part) * warp::lanes));
    return LLVM::GEPOp::create(ops, loc, address.getType(), element, address,
                               ValueRange(arith::AddIOp::create(ops, loc, first, lane).getResult()));
  }

  Parts loads(LLVM::LoadOp op) {
    Type element = cast<VectorType>(op.getType()).getElementType();
    Parts made;
    for (int64_t part = 0; part < partsOf(op.getType()); ++part)
      made.push_back(LLVM::LoadOp::create(ops, loc, element, addressOf(op.getAddr(), element, size_t(part)),
                                          unsigned(op.getAlignment().value_or(0))));
    return made;
  }

  /// The element at `address` where the mask is set.
  Value loadIf(Value mask, Type element, Value address, Value otherwise, unsigned alignment) {
    auto choice = scf::IfOp::create(
        ops, loc, mask,
        [&](OpBuilder &inner, Location) {
          scf::YieldOp::create(inner, loc,
                               ValueRange(LLVM::LoadOp::create(inner, loc, element, address, alignment).getResult()));
        },
        [&](OpBuilder &inner, Location) { scf::YieldOp::create(inner, loc, otherwise); });
    return choice.getResult(0);
  }

  Parts maskedLoads(LLVM::MaskedLoadOp op) {
    auto type = cast<VectorType>(op.getType());
    Parts masks = partsOfValue(op->getOperand(1)), passed = partsOfValue(op->getOperand(2)), made;
    for (size_t part = 0; part < masks.size(); ++part)
      made.push_back(loadIf(masks[part], type.getElementType(), addressOf(op.getData(), type.getElementType(), part),
                            passed[part], op.getAlignment()));
    return made;
  }

  Parts gathered(LLVM::masked_gather op) {
    auto type = cast<VectorType>(op.getType());
    if (partsOf(type) != 1)
      return {};
    return {loadIf(op->getOperand(1), type.getElementType(), op->getOperand(0), op->getOperand(2), op.getAlignment())};
  }

  LogicalResult stores(LLVM::StoreOp op) {
    for (auto [part, value] : llvm::enumerate(partsOfValue(op->getOperand(0))))
      LLVM::StoreOp::create(ops, loc, value, addressOf(op.getAddr(), value.getType(), part),
                            unsigned(op.getAlignment().value_or(0)));
    replaced.push_back(op);
    return success();
  }

  LogicalResult maskedStores(LLVM::MaskedStoreOp op) {
    Parts masks = partsOfValue(op->getOperand(2));
    for (auto [part, value] : llvm::enumerate(partsOfValue(op->getOperand(0)))) {
      Value address = addressOf(op->getOperand(1), value.getType(), part), stored = value;
      scf::IfOp::create(ops, loc, masks[part], [&](OpBuilder &inner, Location) {
        LLVM::StoreOp::create(inner, loc, stored, address, op.getAlignment());
        scf::YieldOp::create(inner, loc);
      });
    }
    replaced.push_back(op);
    return success();
  }

  /// An operation on each element of vectors of more than 32: one for each part.
  LogicalResult repeat(Operation *op) {
    Parts made;
    SmallVector<Parts> operands = llvm::map_to_vector(op->getOperands(), [&](Value v) { return partsOfValue(v); });
    for (int64_t part = 0; part < partsOf(op->getResult(0).getType()); ++part) {
      OperationState state(loc, op->getName());
      for (const Parts &each : operands) {
        if (int64_t(each.size()) <= part)
          return refuse(op);
        state.addOperands(each[size_t(part)]);
      }
      state.addTypes(cast<VectorType>(op->getResult(0).getType()).getElementType());
      state.addAttributes(op->getAttrs());
      made.push_back(ops.create(state)->getResult(0));
    }
    return replace(op, made);
  }

  /// An operation on each element, or one that passes values on.
  LogicalResult retype(Operation *op) {
    const bool isElementwise = isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
    if (isElementwise && op->getNumResults() == 1 && warp::isOverLanes(op->getResult(0).getType()) &&
        partsOf(op->getResult(0).getType()) > 1)
      return repeat(op);
    const bool isKnown =
        isElementwise || isa<scf::SCFDialect>(op->getDialect()) || isa<LLVM::BitcastOp, LLVM::GEPOp>(op);
    auto narrow = [&](Value value) {
      if (!warp::isOverLanes(value.getType()))
        return true;
      auto type = cast<VectorType>(value.getType());
      if (type.getNumElements() == warp::lanes)
        value.setType(type.getElementType());
      return type.getNumElements() == warp::lanes;
    };
    bool isOver = isKnown && llvm::all_of(op->getResults(), narrow) &&
                  llvm::none_of(op->getOperands(), [&](Value value) { return parts.count(value) > 0; });
    for (Region &region : op->getRegions())
      for (Block &block : region)
        isOver &= llvm::all_of(block.getArguments(), narrow);
    return isOver ? success() : refuse(op);
  }

  OpBuilder ops;
  Location loc = UnknownLoc::get(ops.getContext());
  DenseMap<Value, Parts> parts; ///< of vectors of more than 32
  SmallVector<Operation *> replaced;
};

/// One lane of a warp does it.
void doOnce(Operation *op) {
  OpBuilder ops(op);
  Location loc = op->getLoc();
  Value zero = arith::ConstantOp::create(ops, loc, ops.getI32IntegerAttr(0));
  Value isFirst = arith::CmpIOp::create(ops, loc, arith::CmpIPredicate::eq, Lanes(ops, loc).id(), zero);
  auto once = scf::IfOp::create(ops, loc, isFirst, /*withElseRegion=*/false);
  op->moveBefore(once.thenBlock()->getTerminator());
}

} // namespace

LogicalResult spreadOverWarps(ModuleOp module, int64_t warps) {
  LLVM::LLVMFuncOp function = *module.getOps<LLVM::LLVMFuncOp>().begin();
  auto isOfCta = [&](Attribute attribute) { return attribute == StringAttr::get(module.getContext(), ctaAttribute); };
  if (warps != ctaWarps && function.getPassthrough() && llvm::any_of(*function.getPassthrough(), isOfCta))
    return emitError(module.getLoc()) << "is for CTAs of " << ctaWarps << " warps, not of " << warps;
  if (failed(warp::shareMemory(module, function, warps)))
    return failure();
  SmallVector<Operation *> spread, once;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    const bool hasArguments = llvm::any_of(op->getRegions(), [](Region &region) {
      return llvm::any_of(region.getArgumentTypes(), [](Type type) { return isa<VectorType>(type); });
    });
    if (warp::isSpread(op) || hasArguments)
      spread.push_back(op);
    if (isa<LLVM::AtomicRMWOp>(op))
      once.push_back(op);
  });
  Spreader spreader(module.getContext());
  for (Operation *op : spread)
    if (failed(spreader.spread(op)))
      return failure();
  spreader.eraseReplaced();
  llvm::for_each(once, doOnce);
  return verify(module);
}

OwningOpRef<ModuleOp> emitWarpKernel(MLIRContext *context, const KernelDesc &desc, const TileConfig &tile,
                                     llvm::StringRef symbol, int64_t warps) {
  if (const auto *permutation = std::get_if<PermutationDesc>(&desc.body)) {
    loadKernelDialects(*context);
    OwningOpRef<ModuleOp> own = ModuleOp::create(NameLoc::get(StringAttr::get(context, desc.name)));
    if (failed(warp::addPermutation(*own, *permutation, gridOf(desc, tile).itemsPerBlock, symbol, warps)) ||
        failed(verify(*own)))
      return {};
    return own;
  }
  OwningOpRef<ModuleOp> module = emitKernel(context, desc, tile, symbol);
  if (module && failed(spreadOverWarps(*module, warps)))
    return {};
  return module;
}

} // namespace k2c
