//===- ContractionRows.cpp - How the warps of a GPU read rows -------------------------===//
//
// All lanes of a warp load the same element of a row. 16 bytes of it cost a lane as many instructions as four do, so
// rows are loaded by 16 bytes (of full tiles by 8, as their sums need the registers) where they lie so, which is found
// out when the kernel runs: it has a body for either.
//
//===----------------------------------------------------------------------===//
#include "Contraction.h"
#include "InstructionSet.h"

namespace k2c::emit {

/// Whether all elements of a row lie at multiples of wideBytes, if its first does.
bool PanelContraction::canLoadWide() const {
  const int64_t several = wideBytes / byteWidth(x.type);
  auto isWhole = [&](int64_t elements) { return elements % several == 0; };
  return tile.isOfWarp() && isWhole(x.stride) && isWhole(k) && isWhole(length) &&
         (!w.isScaled() || isWhole(w.blockRows));
}

/// `body` reads rows by wideBytes where they lie so.
void PanelContraction::byAlignment(Value xRow, Value rows, llvm::function_ref<void()> body) {
  rowCount = rows;
  if (!canLoadWide())
    return body();
  auto read = [&](bool wide) {
    isWide = wide;
    body();
    isWide = false;
  };
  Value beyond = b.bitAnd(b.integerOf(xRow), b.constant(wideBytes - 1));
  b.choose(b.compare(Compare::Eq, beyond, 0), [&] { read(true); }, [&] { read(false); });
}

/// Where the rows of a warp's tile begin, of which there are `known` at least; beyond the last it is the last again.
void PanelContraction::findRows(Value xRow, int64_t rows, int64_t known) {
  rowStarts.clear();
  for (int64_t row = 0; tile.isOfWarp() && row < rows; ++row)
    rowStarts.push_back(row < known ? b.row(xRow, x, b.constant(row)) : b.row(xRow, x, b.min(b.sub(rowCount, 1), row)));
}

/// Elements of a row that an iteration of wideChain takes: of few rows as many as bring enough bytes of weights on
/// their way, as a warp hides how long memory takes by nothing else.
int64_t PanelContraction::elementsAtOnce(int64_t rows, Streams streams) const {
  constexpr int64_t fewRows = 4, enoughBytes = 2048, maxWideLoads = 8;
  int64_t elements = wideBytes / byteWidth(x.type), wideLoads = rows * streams.count();
  const int64_t elementBytes = streams.count() * panelColumns * byteWidth(w.type);
  auto divides = [&](int64_t whole) { return whole % (2 * elements) == 0; };
  while (rows <= fewRows && elements * elementBytes < enoughBytes && 2 * wideLoads <= maxWideLoads && divides(k) &&
         divides(length) && (!w.isScaled() || divides(w.blockRows))) {
    elements *= 2;
    wideLoads *= 2;
  }
  return elements;
}

/// `bytes` bytes of a row, which lie at a multiple of them.
static Value loadSeveral(KernelBuilder &b, Value address, DType x, int64_t bytes) {
  mlir::Type type = b.vec(storageType(address.getContext(), x), bytes / byteWidth(x));
  return mlir::LLVM::LoadOp::create(b.builder(), address.getLoc(), type, address, unsigned(bytes));
}

/// The same, of rows that are read by wideBytes; of a full tile by half as many, as its sums take the registers.
Values PanelContraction::wideChain(ValueRange acc, Value xRow, Value first, Value last, int64_t rows, Streams streams,
                                   ValueRange scales) {
  const bool isFull = warps > 1 && rows == tile.mr;
  const int64_t bytes = isFull ? wideBytes / 2 : wideBytes, several = bytes / byteWidth(x.type);
  const int64_t elements = isFull ? several : elementsAtOnce(rows, streams);
  return b.loop(first, last, elements, acc, [&](Value begin, ValueRange carried) {
    Values next(carried);
    for (int64_t from = 0; from < elements; from += several) {
      Value at = b.add(begin, from);
      Values factors;
      for (int64_t stream = 0; stream < streams.count(); ++stream)
        for (int64_t row = 0; row < rows; ++row)
          factors.push_back(
              loadSeveral(b, factorAddress(xRow, row, b.add(at, streams.place(stream).first * length)), x.type, bytes));
      for (int64_t i = 0; i < several; i += w.kStep())
        next = step(next, b.add(at, i), rows, streams, scales, [&](int64_t stream, int64_t row) {
          return factorOf(b, factors[size_t(stream * rows + row)], i, x.type, w.type, tile.lanes);
        });
    }
    return next;
  });
}

} // namespace k2c::emit
