//===- VerifyBuffers.cpp - Sites and the buffers that starts give them ----===//
//
// The exchange goes by the table: members, bytes of a row, a quota. The program goes by its buffers. So both have to
// say the same:
//
//   rt.collective @site0 .. members 4 row_bytes 288 quota 24
//   rt.collective_start @site0 source %m to %sent result %in from %came
//     %in    27648 bytes = 4 x 24 rows of 288, a place for each that a member may send
//     %m     any number of whole rows: some for each member, or the same ones for all
//     %sent, %came    64 bytes, the counts of 4 members
//
// How many rows a step may bring at most is proven of the earlier forms, which have row spaces (VerifyCollectives.cpp).
//
//===----------------------------------------------------------------------===//
#include "VerifyBuffers.h"
#include "dialects/Rt/Rt.h"
#include "k2c/Transforms/BoundBytes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace k2c {

namespace {

/// A start and what the table says of its site.
class Start {
public:
  Start(rt::CollectiveStartOp op, rt::CollectiveOp facts, StringRef who) : op(op), facts(facts), who(who) {}

  LogicalResult verify();

private:
  LogicalResult verifyRows(StringRef what, Value buffer);
  LogicalResult verifyCounts(StringRef what, Value buffer);
  LogicalResult verifyPlaces();
  LogicalResult verifySlices();
  static int64_t bytesOf(Value buffer) { return buffer.getDefiningOp<rt::ArenaOp>().getBytes(); }
  InFlightDiagnostic refuse() { return op.emitError() << who << ": @" << op.getSite() << " "; }

  rt::CollectiveStartOp op;
  rt::CollectiveOp facts;
  StringRef who;
};

LogicalResult Start::verifyRows(StringRef what, Value buffer) {
  if (!buffer || (bytesOf(buffer) > 0 && bytesOf(buffer) % facts.getRowBytes() == 0))
    return success();
  return refuse() << "has rows of " << facts.getRowBytes() << " bytes, and its " << what << " has " << bytesOf(buffer)
                  << "; exchange whole rows";
}

LogicalResult Start::verifyCounts(StringRef what, Value buffer) {
  const int64_t wanted = countsBytes(facts.getMembers());
  if (!buffer || bytesOf(buffer) == wanted)
    return success();
  return refuse() << "has " << facts.getMembers() << " members, whose counts take " << wanted << " bytes, and its "
                  << what << " have " << bytesOf(buffer) << "; count rows of each member";
}

/// By quota, the result has a place for each row that a member may send.
LogicalResult Start::verifyPlaces() {
  const int64_t held = op.getResult() ? bytesOf(op.getResult()) : 0;
  // Divided, not multiplied: the numbers of a table may be any.
  const int64_t rows = held / facts.getRowBytes(), members = facts.getMembers();
  if (!facts.getQuota() || (rows % members == 0 && rows / members == *facts.getQuota()))
    return success();
  return refuse() << "gets up to " << *facts.getQuota() << " rows of " << facts.getRowBytes() << " bytes from each of "
                  << facts.getMembers() << " members, and its result has " << held
                  << " bytes; have a place for each of them";
}

/// Slices of all ranks hold the rows of a step.
LogicalResult Start::verifySlices() {
  for (Value slice : op.getSlices()) {
    const bool isGathered = facts.getOp() == rt::Collective::GatherSlices;
    const int64_t whole = bytesOf(isGathered ? slice : op.getSource());
    const int64_t part = bytesOf(isGathered ? op.getSource() : slice);
    if (failed(verifyRows("slice", slice)))
      return failure();
    if (part > whole || part < (whole - 1) / facts.getMembers() + 1)
      return refuse() << "has " << facts.getMembers() << " slices of " << part << " bytes of " << whole
                      << "; have a slice of each member";
  }
  return success();
}

LogicalResult Start::verify() {
  return failure(failed(verifyRows("source", op.getSource())) || failed(verifyRows("result", op.getResult())) ||
                 failed(verifyRows("rows", op.getRows())) || failed(verifyCounts("counts of what goes", op.getTo())) ||
                 failed(verifyCounts("counts of what comes", op.getFrom())) || failed(verifyPlaces()) ||
                 failed(verifySlices()));
}

} // namespace

LogicalResult verifyBuffers(ModuleOp module, StringRef who) {
  SymbolTable symbols(module);
  for (auto function : module.getOps<func::FuncOp>()) {
    auto visit = [&](rt::CollectiveStartOp op) {
      return WalkResult(Start(op, symbols.lookup<rt::CollectiveOp>(op.getSite()), who).verify());
    };
    if (function.walk(visit).wasInterrupted())
      return failure();
  }
  return success();
}

} // namespace k2c
