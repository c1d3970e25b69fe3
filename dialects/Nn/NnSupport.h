//===- NnSupport.h - What the interfaces of token ops speak about -----------===//
//
// The plain types of NnInterfaces.td (weight references, reductions, roles), the row space of a type, and the assembly
// directives shared by all dialects.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_NN_NNSUPPORT_H
#define K2C_DIALECTS_NN_NNSUPPORT_H

#include "k2c/Support/Elementwise.h"
#include "k2c/Support/IndexSet.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include <optional>

#include "dialects/Nn/NnEnums.h.inc"

namespace k2c {
/// For attributes that hold ranges.
inline llvm::hash_code hash_value(const IndexRange &range) {
  return llvm::hash_combine(range.from, range.to, range.step);
}
} // namespace k2c

#define GET_ATTRDEF_CLASSES
#include "dialects/Nn/NnAttributes.h.inc"

namespace k2c::nn {

/// The row space of a tensor type, or null if it has none.
RowsAttr rowsOf(mlir::Type type);

/// One weight an op reads: `@family[%layer]`, `@tensor`, or a tensor value (family is null).
struct WeightRef {
  llvm::StringRef name;              ///< the op's argument name
  mlir::FlatSymbolRefAttr family;    ///< null: the operand is the weight
  mlir::MutableOperandRange operand; ///< empty, the layer index, or the weight

  /// The layer index or the weight; null if the reference is a symbol alone.
  mlir::Value value() const;
};

/// The kinds of reductions whose order is declared: N1, N3, N5.
enum class ReductionKind : uint8_t { Contraction, Softmax, Combine };

/// One reduction of an op.
struct Reduction {
  llvm::StringRef attribute; ///< the attribute that holds the order
  ReductionKind kind;
  int64_t length;        ///< contracted elements, or experts; 0 for a softmax, whose length is the context
  mlir::Attribute order; ///< null before set-numerics
};

namespace detail {
RowsAttr rowSpaceOf(mlir::Operation *op);
llvm::LogicalResult verifyRowSpace(mlir::Operation *op);
llvm::SmallVector<WeightRef> presentRefs(llvm::ArrayRef<WeightRef> refs);
void bindWeight(mlir::Operation *op, WeightRef ref, mlir::Value value);
llvm::LogicalResult verifyWeights(mlir::Operation *op, unsigned required, mlir::SymbolTableCollection &tables);

/// An alias of an attribute or a type, which a dialect's own printing would not shorten further.
inline mlir::OpAsmAliasResult alias(llvm::raw_ostream &os, llvm::StringRef name) {
  os << name;
  return mlir::OpAsmAliasResult::OverridableAlias;
}

/// Names results for printing: by `names`, else the first by the op's first weight family, else by its mnemonic.
void nameResults(mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> names, mlir::OpAsmSetValueNameFn set);
} // namespace detail
} // namespace k2c::nn

namespace k2c {

/// `1.0e-06`: a real number as an f64 attribute, printed with as few digits as read back to it.
mlir::FailureOr<mlir::FloatAttr> parseReal(mlir::AsmParser &parser);
void printReal(mlir::AsmPrinter &printer, mlir::FloatAttr value);
mlir::ParseResult parseReal(mlir::OpAsmParser &parser, mlir::FloatAttr &value);
void printReal(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::FloatAttr value);

/// `@family[%layer]`, `@tensor` or `%value : tensor<..>`.
mlir::ParseResult parseWeightRef(mlir::OpAsmParser &parser, mlir::FlatSymbolRefAttr &family,
                                 std::optional<mlir::OpAsmParser::UnresolvedOperand> &operand, mlir::Type &type);
void printWeightRef(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::FlatSymbolRefAttr family,
                    mlir::Value operand, mlir::Type type);

/// Nothing, or `keyword` and a weight reference.
mlir::ParseResult parseOptionalWeightRef(mlir::OpAsmParser &parser, llvm::StringRef keyword,
                                         mlir::FlatSymbolRefAttr &family,
                                         std::optional<mlir::OpAsmParser::UnresolvedOperand> &operand,
                                         mlir::Type &type);
void printOptionalWeightRef(mlir::OpAsmPrinter &printer, mlir::Operation *op, llvm::StringRef keyword,
                            mlir::FlatSymbolRefAttr family, mlir::Value operand, mlir::Type type);

/// `tree<8>`: an attribute by its mnemonic; an alias of it is accepted too. (The full name `#nn.tree<8>` would swallow
/// a following colon and type.)
template <class T> mlir::ParseResult parseAttribute(mlir::OpAsmParser &parser, T &attribute) {
  if (failed(parser.parseOptionalKeyword(T::getMnemonic())))
    return parser.parseAttribute(attribute);
  attribute = llvm::dyn_cast_or_null<T>(T::parse(parser, mlir::Type()));
  return mlir::success(attribute != nullptr);
}
template <class T> void printAttribute(mlir::OpAsmPrinter &printer, mlir::Operation *, T attribute) {
  printer << T::getMnemonic();
  attribute.print(printer);
}

/// Nothing, or `keyword` and an attribute by its mnemonic; a keyword that is the mnemonic is written once.
template <class T>
mlir::ParseResult parseOptionalAttribute(mlir::OpAsmParser &parser, llvm::StringRef keyword, T &attribute) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return mlir::success();
  if (keyword != T::getMnemonic())
    return parseAttribute(parser, attribute);
  attribute = llvm::dyn_cast_or_null<T>(T::parse(parser, mlir::Type()));
  return mlir::success(attribute != nullptr);
}
template <class T>
void printOptionalAttribute(mlir::OpAsmPrinter &printer, mlir::Operation *op, llvm::StringRef keyword, T attribute) {
  if (!attribute)
    return;
  printer << ' ';
  if (keyword != T::getMnemonic())
    printer << keyword << ' ';
  printAttribute(printer, op, attribute);
}

/// `0 to 4 and 5 to 61 step 2`.
mlir::ParseResult parseIndices(mlir::AsmParser &parser, nn::IndicesAttr &indices);
void printIndices(mlir::AsmPrinter &printer, nn::IndicesAttr indices);
inline void printIndices(mlir::OpAsmPrinter &printer, mlir::Operation *, nn::IndicesAttr indices) {
  printIndices(printer, indices);
}

/// `over (layer = 0 to 3, expert = 0 to 384)`, or nothing for no domain.
mlir::ParseResult parseDomains(mlir::OpAsmParser &parser, mlir::ArrayAttr &domains);
void printDomains(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::ArrayAttr domains);

/// `2 x 16 x f32`.
mlir::ParseResult parseDimsAndElement(mlir::AsmParser &parser, llvm::SmallVectorImpl<int64_t> &dims,
                                      mlir::Type &element);
void printDimsAndElement(mlir::AsmPrinter &printer, llvm::ArrayRef<int64_t> dims, mlir::Type element);

/// `, group = 1`, or nothing for 0.
mlir::ParseResult parseCacheGroup(mlir::AsmParser &parser, int64_t &group);
void printCacheGroup(mlir::AsmPrinter &printer, int64_t group);

} // namespace k2c

#endif // K2C_DIALECTS_NN_NNSUPPORT_H
