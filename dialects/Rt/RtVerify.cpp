//===- RtVerify.cpp - Verifiers of the rt dialect -------------------------===//
//
// Ids are those of RtOps.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Rt/Rt.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace k2c::rt;

/// The symbol `name` as an op of type T, or an error naming what was expected.
template <class T>
static FailureOr<T> lookup(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &tables, StringRef id,
                           StringRef expected) {
  if (auto found = tables.lookupNearestSymbolFrom<T>(op, name))
    return found;
  return op->emitOpError() << '[' << id << "] expects " << name << " to be " << expected;
}

/// [C1] of program.
LogicalResult ProgramOp::verify() {
  for (int64_t bytes : {getArenaBytes(), getScratchBytes()})
    if (bytes < 0)
      return emitOpError("[C1] expects no negative size, got ") << bytes;
  if (getExpandedFrom().value_or(0) < -1)
    return emitOpError("[C1] expects expanded_from >= -1, got ") << *getExpandedFrom();
  return success();
}

/// [C3] of program.
static LogicalResult verifyShape(ProgramOp program, func::FuncOp function) {
  if (function.isExternal())
    return program.emitOpError("[C3] expects a body of @") << function.getName();
  if (function.getNumResults() > 0)
    return program.emitOpError("[C3] expects @")
           << function.getName() << " to return nothing, got " << function.getResultTypes();
  return success();
}

namespace {
/// [C4] of program: follows the calls of functions, depth first. A chain of calls may be longer than a stack is deep.
class CallWalk {
public:
  CallWalk(ProgramOp program, SymbolTableCollection &tables) : program(program), tables(tables) {}

  LogicalResult from(func::FuncOp function) {
    if (!isDone.contains(function))
      enter(function);
    while (!path.empty()) {
      Caller &caller = path.back();
      if (caller.next == caller.calls.size()) {
        isDone[caller.function] = true;
        path.pop_back();
      } else if (failed(follow(caller, caller.calls[caller.next++]))) {
        return failure();
      }
    }
    return success();
  }

private:
  struct Caller {
    func::FuncOp function;
    SmallVector<func::CallOp> calls;
    size_t next = 0;
  };

  void enter(func::FuncOp function) {
    isDone[function] = false;
    Caller caller{function, {}, 0};
    function.walk([&](func::CallOp call) { caller.calls.push_back(call); });
    path.push_back(std::move(caller));
  }

  /// A function that was entered and is not done is on the path.
  LogicalResult follow(const Caller &caller, func::CallOp call) {
    auto callee = tables.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    if (!callee)
      return success(); // the call refuses it
    auto isEntry = [&](NamedAttribute entry) { return entry.getValue() == call.getCalleeAttr(); };
    if (llvm::any_of(program.getEntries(), isEntry))
      return program.emitOpError("[C4] expects no call of entry ")
             << call.getCalleeAttr() << ", got one in @" << func::FuncOp(caller.function).getName();
    auto known = isDone.find(callee);
    if (known == isDone.end())
      return enter(callee), success();
    if (known->second)
      return success();
    return program.emitOpError("[C4] expects no function to call itself, got a call of ")
           << call.getCalleeAttr() << " in @" << func::FuncOp(caller.function).getName();
  }

  ProgramOp program;
  SymbolTableCollection &tables;
  llvm::DenseMap<Operation *, bool> isDone;
  std::vector<Caller> path;
};
} // namespace

/// [C5] of program.
static LogicalResult verifyHalves(ProgramOp program) {
  const std::optional<int64_t> second = program.getSecond();
  if (second && (*second <= 0 || program.getArenaBytes() != 2 * *second))
    return program.emitOpError("[C5] expects the second arena at half of ")
           << program.getArenaBytes() << " bytes, got " << *second;
  auto hasHalves = [](func::FuncOp function) {
    return function.walk([](SecondHalfOp) { return WalkResult::interrupt(); }).wasInterrupted();
  };
  if (!second && llvm::any_of(program->getParentRegion()->getOps<func::FuncOp>(), hasHalves))
    return program.emitOpError("[C5] expects a second arena for what is done for the second half of a step, got none");
  return success();
}

/// [C2] to [C5] of program.
LogicalResult ProgramOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (getEntries().empty())
    return emitOpError("[C2] expects an entry, got none");
  for (NamedAttribute entry : getEntries()) {
    auto function = dyn_cast<FlatSymbolRefAttr>(entry.getValue());
    if (!function)
      return emitOpError("[C2] expects entry '")
             << entry.getName().getValue() << "' to name a function, got " << entry.getValue();
    auto found = lookup<func::FuncOp>(*this, function, tables, "C2", "a function");
    if (failed(found))
      return failure();
    if (found->getNumArguments() > 0)
      return emitOpError("[C2] expects entry ") << function << " to take nothing, got " << found->getArgumentTypes();
  }
  CallWalk calls(*this, tables);
  for (auto function : (*this)->getParentRegion()->getOps<func::FuncOp>())
    if (failed(verifyShape(*this, function)) || failed(calls.from(function)))
      return failure();
  return verifyHalves(*this);
}

static LogicalResult verifyMatrices(function_ref<InFlightDiagnostic()> emitError, StringRef name,
                                    ArrayRef<int64_t> sizes, int64_t blockColumns, int64_t blockRows) {
  for (int64_t size : sizes)
    if (size <= 0)
      return emitError() << "'#rt." << name << "' [C1] expects positive sizes, got " << size;
  if (blockColumns < 0 || blockRows < 0 || (blockColumns > 0) != (blockRows > 0))
    return emitError() << "'#rt." << name << "' [C2] expects columns and rows of a block, or neither, got "
                       << blockColumns << " and " << blockRows;
  return success();
}

/// [C1], [C2] of panels.
LogicalResult PanelsAttr::verify(function_ref<InFlightDiagnostic()> emitError, Type, int64_t matrices, int64_t n,
                                 int64_t k, int64_t parts, int64_t blockColumns, int64_t blockRows) {
  return verifyMatrices(emitError, getMnemonic(), {matrices, n, k, parts}, blockColumns, blockRows);
}

/// [C1], [C2] of rows.
LogicalResult RowsAttr::verify(function_ref<InFlightDiagnostic()> emitError, Type, int64_t matrices, int64_t n,
                               int64_t k, int64_t parts, int64_t blockColumns, int64_t blockRows) {
  return verifyMatrices(emitError, getMnemonic(), {matrices, n, k, parts}, blockColumns, blockRows);
}

/// [C1] of row_major.
LogicalResult RowMajorAttr::verify(function_ref<InFlightDiagnostic()> emitError, Type, int64_t elements) {
  if (elements <= 0)
    return emitError() << "'#rt.row_major' [C1] expects elements, got " << elements;
  return success();
}

/// [C1] to [C3] of weight_slots.
LogicalResult WeightSlotsOp::verify() {
  if (getFirst() < 0)
    return emitOpError("[C1] expects a first slot that is not negative, got ") << getFirst();
  if (getCount() <= 0 || getBytes() <= 0)
    return emitOpError("[C1] expects a positive count and size, got ") << getCount() << " and " << getBytes();
  for (std::optional<int64_t> size : {getItems(), getItemBytes()})
    if (size && *size <= 0)
      return emitOpError("[C2] expects positive items and item_bytes, got ") << *size;
  auto panels = dyn_cast<PanelsAttr>(getLayout());
  auto rows = dyn_cast<RowsAttr>(getLayout());
  const int64_t matrices = panels ? panels.getMatrices() : rows ? rows.getMatrices() : 0;
  if (getExperts() && (*getExperts() <= 0 || *getExperts() != matrices))
    return emitOpError("[C3] expects a matrix for each of ") << *getExperts() << " experts, got " << matrices;
  if (getParts() && *getParts() < 2)
    return emitOpError("[C4] expects two parts or more, got ") << *getParts();
  return success();
}

/// [C1] of plane_table.
LogicalResult PlaneTableOp::verify() {
  for (int64_t number : {getIndex(), getGroup(), getLayerBytes()})
    if (number < 0)
      return emitOpError("[C1] expects no negative index, group or size, got ") << number;
  for (int64_t number : {getCount(), getWidth(), getPages()})
    if (number <= 0)
      return emitOpError("[C1] expects a positive count, width and pages, got ") << number;
  return success();
}

/// [C1] to [C3] of kernel.
LogicalResult KernelOp::verify() {
  if (getId() < 0)
    return emitOpError("[C1] expects an id that is not negative, got ") << getId();
  int64_t items = getItems().value_or(0), bytes = getBytes().value_or(0);
  if (getStreams() && (*getStreams() < 0 || items <= 0 || bytes <= 0))
    return emitOpError("[C2] expects a streamed argument to have a number and positive items and bytes, got ")
           << *getStreams() << ", " << items << " and " << bytes;
  if (getTouches())
    for (auto text : getTouches()->getAsRange<StringAttr>())
      if (!symbolizeTouch(text.getValue()))
        return emitOpError("[C3] expects words of Touch, as \"reads|by_row\", got ") << text;
  return success();
}

/// [C1] of stage_layers.
LogicalResult StageLayersOp::verify() {
  if (getFirst() < 0 || getLast() < getFirst())
    return emitOpError("[C1] expects 0 <= first <= last, got ") << getFirst() << " to " << getLast();
  return success();
}

/// [C1] to [C5] of collective.
LogicalResult CollectiveOp::verify() {
  if (getSite() < 0)
    return emitOpError("[C1] expects a site that is not negative, got ") << getSite();
  for (int64_t size : {getMembers(), getRowBytes(), getQuota().value_or(1)})
    if (size <= 0)
      return emitOpError("[C2] expects members, a positive size of rows and a positive quota, got ") << size;
  if ((getOp() == Collective::Send) != getTo().has_value())
    return emitOpError("[C3] expects ") << (getTo() ? "no site to which it goes of " : "a site to which it goes of ")
                                        << stringifyCollective(getOp());
  const bool isOfSlices = getOp() == Collective::GatherSlices || getOp() == Collective::ScatterSlices;
  const bool isOfStages = getOp() == Collective::Send || getOp() == Collective::Receive;
  if (isOfStages != (getAxis() == Axis::Pp) || isOfSlices != (getAxis() == Axis::Tp))
    return emitOpError("[C4] expects stages to send and receive along pp, slices to travel along tp, and others to do "
                       "neither, got ")
           << stringifyCollective(getOp()) << " along " << stringifyAxis(getAxis());
  if (getQuota() && getOp() != Collective::AllToAllRows)
    return emitOpError("[C5] expects no quota of ") << stringifyCollective(getOp()) << ", got " << *getQuota();
  return success();
}

/// [C1], [C2] of placement.
LogicalResult PlacementOp::verify() {
  if (getExperts() <= 0 || getExperts() > getSlots())
    return emitOpError("[C1] expects 0 < experts <= ") << getSlots() << " slots, got " << getExperts();
  const int64_t count = getCount(), slots = getSlots();
  if (getPart() == Part::Held && (count < 1 || slots % count != 0 || (getHolder() == Holder::World && count != slots)))
    return emitOpError("[C2] expects slots of a holder that divide ") << slots << " slots, got " << count;
  return success();
}

/// [C1], [C2] of second_half.
LogicalResult SecondHalfOp::verify() {
  if ((*this)->getParentOfType<SecondHalfOp>())
    return emitOpError("[C2] expects to be in no other one");
  WalkResult walked = getBody().walk([&](Operation *inner) -> WalkResult {
    for (Value operand : inner->getOperands())
      if (!getBody().isAncestor(operand.getParentRegion()) &&
          !(isa<BlockArgument>(operand) && operand.getType().isIndex()))
        return emitOpError("[C1] expects to take indices from outside that are arguments of blocks, got a ")
               << operand.getType() << (isa<BlockArgument>(operand) ? "" : " that was computed there");
    return success();
  });
  return failure(walked.wasInterrupted());
}

/// [C1], [C2] of collective_start.
LogicalResult CollectiveStartOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto site = lookup<CollectiveOp>(*this, getSiteAttr(), tables, "C1", "an rt.collective");
  if (failed(site))
    return failure();
  const bool isToAll = site->getAxis() != Axis::Pp && site->getAxis() != Axis::Tp;
  const bool isOfStages = site->getAxis() == Axis::Pp;
  const bool hasCounts = getTo() && getResult() && getFrom();
  const int64_t slices = isToAll || isOfStages ? 0 : site->getOp() == Collective::GatherSlices ? 1 : site->getMembers();
  if (static_cast<bool>(getSource()) == isOfStages || hasCounts != isToAll ||
      static_cast<bool>(getRows()) != isOfStages || static_cast<int64_t>(getSlices().size()) != slices)
    return emitOpError("[C2] expects ") << (isToAll      ? "a source, counts and a result"
                                            : isOfStages ? "rows"
                                                         : "a source and ")
                                        << (slices > 0 ? std::to_string(slices) + (slices == 1 ? " slice" : " slices")
                                                       : "")
                                        << " at " << getSiteAttr();
  return success();
}

/// [C1] of collective_wait.
LogicalResult CollectiveWaitOp::verifySymbolUses(SymbolTableCollection &tables) {
  return success(succeeded(lookup<CollectiveOp>(*this, getSiteAttr(), tables, "C1", "an rt.collective")));
}

/// `name` is a site whose rows are counted when they come.
static LogicalResult verifyArrivals(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &tables,
                                    StringRef id) {
  auto site = lookup<CollectiveOp>(op, name, tables, id, "an rt.collective");
  if (failed(site))
    return failure();
  if (!site->getQuota())
    return op->emitOpError() << '[' << id << "] expects " << name << " to have a quota";
  return success();
}

/// [C1] of arrived.
LogicalResult ArrivedOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyArrivals(*this, getSiteAttr(), tables, "C1");
}

/// [C1], [C2] of arena.
LogicalResult ArenaOp::verify() {
  if (getOffset() < 0 || getBytes() < 0)
    return emitOpError("[C1] expects an offset and bytes that are not negative, got ")
           << getOffset() << " and " << getBytes();
  if (getSkip() && (*getSkip() <= 0 || *getSkip() >= getBytes()))
    return emitOpError("[C2] expects to skip some of ") << getBytes() << " bytes, got " << *getSkip();
  return success();
}

/// [C1], [C2] of weight.
LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto slots = lookup<WeightSlotsOp>(*this, getFamilyAttr(), tables, "C1", "rt.weight_slots");
  if (failed(slots))
    return failure();
  if (!getOrdinal() && slots->getCount() != 1)
    return emitOpError("[C2] expects an ordinal for ")
           << getFamilyAttr() << ", which has " << slots->getCount() << " slots";
  return success();
}

/// [C1] of plane.
LogicalResult PlaneOp::verifySymbolUses(SymbolTableCollection &tables) {
  return success(succeeded(lookup<PlaneTableOp>(*this, getPlaneAttr(), tables, "C1", "an rt.plane_table")));
}

/// [C1], [C2] of share.
LogicalResult ShareOp::verify() {
  for (int64_t factor : {getItems(), getBytes()})
    if (factor <= 0)
      return emitOpError("[C1] expects positive items and bytes, got ") << factor;
  if (getMax() < 0)
    return emitOpError("[C2] expects `max` not to be negative, got ") << getMax();
  return success();
}

/// [C1] of grid.
LogicalResult GridOp::verify() {
  for (int64_t factor : {getSlots(), getRowsPerItem(), getItems()})
    if (factor <= 0)
      return emitOpError("[C1] expects positive factors, got ") << factor;
  return success();
}

/// [C2] of launch.
LogicalResult LaunchOp::verify() {
  if (getGathered() && getArrived())
    return emitOpError("[C5] expects rows that came to ") << getArrivedAttr() << " not to be gathered";
  if (!getNowait())
    return success();
  for (Operation *next = (*this)->getNextNode(); next; next = next->getNextNode()) {
    if (isa<LaunchOp>(next))
      return success();
    if (!isPure(next) && !isa<PrefetchOp>(next))
      return emitOpError("[C2] expects a nowait launch to be followed by a launch, got '") << next->getName() << '\'';
  }
  return emitOpError("[C2] expects a nowait launch to be followed by a launch, got the end of the block");
}

/// [C1], [C3], [C4], [C6] of launch.
LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (getArrived() && failed(verifyArrivals(*this, getArrivedAttr(), tables, "C4")))
    return failure();
  auto kernel = lookup<KernelOp>(*this, getKernelAttr(), tables, "C1", "an rt.kernel");
  if (failed(kernel))
    return failure();
  const size_t streamed = kernel->getStreams().value_or(0);
  if (kernel->getStreams() && (streamed >= getArgs().size() || !isa<PtrType>(getArgs()[streamed].getType())))
    return emitOpError("[C3] expects argument ")
           << streamed << ", which " << getKernelAttr() << " streams, to be an address, got " << getArgs().getTypes();
  if (kernel->getTouches() && kernel->getTouches()->size() != getArgs().size())
    return emitOpError("[C6] expects ") << kernel->getTouches()->size() << " arguments, which " << getKernelAttr()
                                        << " touches, got " << getArgs().size();
  return success();
}
