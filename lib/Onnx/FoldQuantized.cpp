//===- FoldQuantized.cpp - weights of few bits -----------------------------------------===//
//
// A quantised weight is (q - zero point) * scale, one scale and zero point a block. Elements of 4 bits lie two in a
// byte; where the file calls them bytes, a leaf "nibbles" has them, unsigned, the low half first, in a shape whose last
// dimension is doubled. Of tensors whose type has 4 bits the leaf "constant" has elements already.
//
// Where all three are parts of constants, the weight is a leaf "quantised" with that formula as its body, and matchers
// take it for a constant: which element of it a layer reads says where numbers and scales lie (FoldWeights.cpp).
//
//===----------------------------------------------------------------------===//
#include "Fold.h"

#include "base/Utf8.h"
#include <algorithm>

namespace k2c::onnx {

/// The constant whose elements a value has in the order of storage, if it is one in any shape.
std::optional<ValueId> Fold::constantOf(const Node &node, size_t input) {
  const Folded &value = in(node, input);
  if (graph.constants.count(node.inputs[input]))
    return node.inputs[input];
  if (terms.kind(value.element) != TermKind::Element)
    return std::nullopt;
  const LeafDefinition &definition = terms.definition(terms.leaf(value.element));
  if (definition.op != "constant")
    return std::nullopt;
  const ValueId constant = ValueId(definition.numbers[0]);
  const Term elements = total(definition.shape, 0, definition.shape.size());
  Term own = terms.number(0);
  const std::vector<Term> indices = variables(value.shape);
  for (size_t i = 0; i < indices.size(); i++)
    own = terms.add(terms.multiply(own, value.shape[i]), indices[i]);
  const bool isWhole = total(value.shape, 0, value.shape.size()) == elements;
  return isWhole && flatIndex(value.element) == own ? std::optional(constant) : std::nullopt;
}

/// The 4-bit elements of a constant of bytes. Error: it is none.
Expected<Folded> Fold::nibbles(const Node &node, size_t input) {
  const std::optional<ValueId> constant = constantOf(node, input);
  const auto tensor = constant ? graph.constants.find(*constant) : graph.constants.end();
  std::vector<Term> shape = in(node, input).shape;
  const Error wrong =
      refuse(node, "input " + std::to_string(input) + ", of 4-bit elements, is not a constant of bytes");
  if (tensor == graph.constants.end() || tensor->second.type != ElementType::U8 || tensor->second.shape.empty() ||
      shape.empty())
    return wrong;
  shape.back() = terms.scale(shape.back(), 2);
  LeafDefinition definition{"nibbles", {}, {*constant}, {}, true, 0, -1};
  for (int64_t size : tensor->second.shape)
    definition.shape.push_back(terms.number(double(size)));
  definition.shape.back() = terms.scale(definition.shape.back(), 2);
  Folded out{ElementType::U8, definition.shape, Term{}};
  const std::optional<double> first = constantAt(*constant, 0);
  const std::vector<double> &all = decoded[*constant];
  const bool isUniform = first && std::all_of(all.begin(), all.end(), [&](double byte) {
                           return byte == *first && int64_t(byte) % 16 == int64_t(byte) / 16;
                         });
  const Leaf leaf = terms.leafOf(std::move(definition));
  out.element = isUniform ? terms.number(double(int64_t(*first) / 16)) : terms.element(leaf, variables(out.shape));
  if (out.shape == shape)
    return out;
  const std::optional<Folded> inOwn = inShape(out, shape);
  return inOwn ? Expected<Folded>(*inOwn) : wrong;
}

/// Elements of a quantised input: nibbles of bytes, or those of a type of its own.
Expected<Folded> Fold::quantised(const Node &node, size_t input, int64_t bits) {
  if (bits == 4 && in(node, input).type == ElementType::U8)
    return nibbles(node, input);
  if (bits == 8 && in(node, input).type == ElementType::U8)
    return in(node, input);
  return refuse(node, "weights of " + std::to_string(bits) + " bits in " + name(in(node, input).type) +
                          " are not understood");
}

/// A value with the same elements in another shape; none: they are more or fewer.
std::optional<Folded> Fold::inShape(const Folded &value, const std::vector<Term> &shape) {
  if (total(value.shape, 0, value.shape.size()) != total(shape, 0, shape.size()))
    return std::nullopt;
  const std::optional<std::vector<Term>> indices = reindex(value.shape, shape);
  return indices ? std::optional<Folded>(reshaped(value, shape, *indices)) : std::nullopt;
}

/// A value as rows of so many columns. Error: it has more or fewer elements.
Expected<Folded> Fold::asRows(const Node &node, const Folded &value, std::vector<Term> rows, int64_t columns,
                              const char *what) {
  rows.push_back(terms.number(double(columns)));
  const std::optional<Folded> out = inShape(value, rows);
  if (!out)
    return refuse(node,
                  std::string(what) + " of shape " + text(value.shape) + " do not fit rows of shape " + text(rows));
  return *out;
}

/// Refuses what com.microsoft has no blocks of.
Status Fold::checkBlock(const Node &node, int64_t block) const {
  if (block < 16 || (block & (block - 1)) != 0)
    return refuse(node, "blocks of " + std::to_string(block) + " are no power of 2 from 16 on");
  return Status::success();
}

Status Fold::checkScales(const Node &node, size_t input) const {
  const ElementType type = in(node, input).type;
  return isReal(type) ? Status::success() : refuse(node, "scales of " + name(type) + " are not understood");
}

/// The zero points of blocks: as rows [rows.., blocks], or of rows that are one block, [rows..]; none are 0 in the
/// middle.
Expected<Folded> Fold::zerosOf(const Node &node, const Blocked &of, int64_t blocks) {
  if (!has(node, of.zeros))
    return Folded{ElementType::U8, of.rows, terms.number(double(int64_t(1) << (of.bits - 1)))};
  if (isFloat(in(node, of.zeros)))
    return asRows(node, in(node, of.zeros), of.rows, blocks, "zero points");
  Expected<Folded> zeros = quantised(node, of.zeros, of.bits);
  if (!zeros)
    return zeros;
  const int64_t perByte = 8 / of.bits; // what lies in bytes ends with one
  if (of.zerosAlongRows && zeros->shape.size() == 2 && zeros->shape[0] == of.rows[0] &&
      terms.isNeverNegative(terms.subtract(zeros->shape[1], of.rows[1])))
    return Folded{zeros->type, of.rows, zeros->element};
  return asRows(node, *zeros, of.rows, (blocks + perByte - 1) / perByte * perByte, "zero points");
}

/// Rows of weights in blocks along their columns, of QMoE and MatMulNBits, as a value [rows.., depth].
Expected<Folded> Fold::blockedRows(const Node &node, const Blocked &of) {
  if (Status status = checkScales(node, of.scales); !status)
    return status.takeError();
  const int64_t blocks = of.depth / of.block + (of.depth % of.block != 0);
  Expected<Folded> weights = quantised(node, of.weights, of.bits);
  if (weights)
    weights = asRows(node, *weights, of.rows, blocks * of.block, "weights");
  if (!weights)
    return weights;
  const Expected<Folded> scales = asRows(node, in(node, of.scales), of.rows, blocks, "scales");
  if (!scales)
    return scales.error();
  const Expected<Folded> zeros = zerosOf(node, of, blocks);
  if (!zeros)
    return zeros.error();
  std::vector<Term> shape = of.rows;
  shape.push_back(terms.number(double(of.depth)));
  const std::vector<Term> i = variables(shape);
  std::vector<Term> block = i;
  block.back() = terms.floorDivide(i.back(), terms.number(double(of.block)));
  const Term scale = at(*scales, block);
  if (zeros->shape.size() < block.size())
    block.pop_back();
  return weight(scales->type, shape, at(*weights, i), at(*zeros, block), scale, of.zerosAlongRows ? 0 : of.block);
}

/// MatMulNBits: rows times weights [N, K] of few bits, plus a bias.
Fold::Result Fold::matMulNBits(const Node &node) {
  const Folded &a = in(node, 0);
  const int64_t depth = integer(node, "K", 0), columns = integer(node, "N", 0), block = integer(node, "block_size", 0);
  const int64_t bits = integer(node, "bits", 4);
  if (bits != 4 && bits != 8)
    return refuse(node, "its weights have " + std::to_string(bits) + " bits, and 4 and 8 are read");
  if (depth < 1 || columns < 1 || block < 1 || a.shape.empty() || terms.asInteger(a.shape.back()) != depth)
    return refuse(node, "N " + std::to_string(columns) + ", K " + std::to_string(depth) + ", blocks of " +
                            std::to_string(block) + " and " + std::to_string(bits) + " bits do not fit rows of shape " +
                            text(a.shape));
  if (integer(node, "weight_prepacked", 0) != 0 || has(node, 4))
    return refuse(node, "weights that are packed for one device, and g_idx, are not understood");
  if (Status status = checkBlock(node, block); !status)
    return status.takeError();
  Expected<Folded> weights = blockedRows(node, {1, 2, 3, bits, {terms.number(double(columns))}, depth, block, false});
  if (!weights)
    return weights.takeError();
  std::vector<Term> shape = a.shape;
  shape.back() = terms.number(double(columns));
  std::vector<Term> row = variables(shape);
  const Term column = row.back(), inner = reduceVariable(0, a.shape.back());
  row.back() = inner;
  Folded out =
      contraction(node, a.type, shape, terms.multiply(at(a, row), at(*weights, {column, inner})), {a.shape.back()});
  if (has(node, 5)) {
    if (in(node, 5).shape != std::vector<Term>{shape.back()})
      return refuse(node, "a bias of shape " + text(in(node, 5).shape) + " does not fit " + std::to_string(columns) +
                              " columns");
    out.element = terms.add(out.element, at(in(node, 5), {column}));
  }
  return std::vector<Folded>{out};
}

/// The element of scales or zero points that belongs to an element of what is quantised: one for all, one for each
/// index of an axis, or one for each block of it. None: they do not fit.
std::optional<Term> Fold::perBlock(const Folded &value, const std::vector<Term> &shape, int64_t axis, int64_t block) {
  if (value.shape.empty() || (value.shape.size() == 1 && terms.asInteger(value.shape[0]) == 1 && block == 0))
    return at(value, std::vector<Term>(value.shape.size(), terms.number(0)));
  std::vector<Term> indices = variables(shape);
  const Term index = indices[size_t(axis)];
  if (block == 0)
    return value.shape == std::vector<Term>{shape[size_t(axis)]} ? std::optional<Term>(at(value, {index}))
                                                                 : std::nullopt;
  std::vector<Term> expected = shape;
  expected[size_t(axis)] =
      terms.floorDivide(terms.plus(shape[size_t(axis)], double(block - 1)), terms.number(double(block)));
  indices[size_t(axis)] = terms.floorDivide(index, terms.number(double(block)));
  return value.shape == expected ? std::optional<Term>(at(value, indices)) : std::nullopt;
}

/// Whether elements are real numbers of 8 bits.
static bool isEight(ElementType type) { return !isWhole(type) && bitWidth(type) == 8; }

Fold::Result Fold::dequantizeLinear(const Node &node) {
  const Folded &x = in(node, 0), &scale = in(node, 1);
  const int64_t rank = int64_t(x.shape.size()), given = integer(node, "axis", 1),
                block = integer(node, "block_size", 0);
  const int64_t axis = given < 0 ? given + rank : given;
  const bool isOneForAll = scale.shape.empty() || (scale.shape.size() == 1 && terms.asInteger(scale.shape[0]) == 1);
  if (block < 0 || ((axis < 0 || axis >= rank) && !isOneForAll))
    return refuse(node, "axis " + std::to_string(given) + " of a tensor of rank " + std::to_string(rank) +
                            " in blocks of " + std::to_string(block) + " is not understood");
  if (Status status = checkScales(node, 1); !status)
    return status.takeError();
  const int64_t along = isOneForAll && (axis < 0 || axis >= rank) ? 0 : axis;
  const std::optional<Term> scales = perBlock(scale, x.shape, along, block);
  if (!scales)
    return refuse(node, "scales of shape " + text(scale.shape) + " do not fit elements of shape " + text(x.shape));
  std::optional<Term> zero = terms.number(0);
  if (has(node, 2))
    zero = perBlock(in(node, 2), x.shape, along, block);
  if (!zero)
    return refuse(node,
                  "zero points of shape " + text(in(node, 2).shape) + " do not fit elements of shape " + text(x.shape));
  if (has(node, 2) && in(node, 2).type != x.type)
    return refuse(node, "zero points of " + name(in(node, 2).type) + " do not fit elements of " + name(x.type));
  if (isEight(x.type) && *zero != terms.number(0))
    return refuse(node, "zero points other than 0 of elements of " + name(x.type) + " are not understood");
  return std::vector<Folded>{weight(scale.type, x.shape, x.element, *zero, *scales, block)};
}

/// Rows of a quantised table, as GatherBlockQuantized of com.microsoft has them.
Fold::Result Fold::gatherBlockQuantized(const Node &node) {
  const Folded &which = in(node, 1);
  const ElementType type = in(node, 0).type;
  const int64_t bits = integer(node, "bits", 4), block = integer(node, "block_size", 128);
  const bool isBytes = type == ElementType::U8;
  if (Status status = checkBlock(node, block); !status)
    return status.takeError();
  if (Status status = checkScales(node, 2); !status)
    return status.takeError();
  Expected<Folded> data = isBytes ? quantised(node, 0, bits) : Expected<Folded>(in(node, 0));
  if (!data)
    return data.takeError();
  const int64_t rank = int64_t(data->shape.size());
  const auto axisOf = [&](const char *name, int64_t otherwise) {
    const int64_t given = integer(node, name, otherwise);
    return given < 0 ? given + rank : given;
  };
  const int64_t axis = axisOf("gather_axis", 0), along = axisOf("quantize_axis", 1);
  if ((!isBytes && type != ElementType::U4 && type != ElementType::I4) || axis < 0 || axis >= rank || along < 0 ||
      along >= rank)
    return refuse(node, "a table of " + name(type) + " of shape " + text(data->shape) + " in blocks of " +
                            std::to_string(block) + " is not understood");
  const std::optional<Term> scale = perBlock(in(node, 2), data->shape, along, block);
  std::optional<Term> zero = terms.number(isBytes ? double(int64_t(1) << (bits - 1)) : 0);
  if (has(node, 3)) {
    Expected<Folded> zeros = isBytes ? quantised(node, 3, bits) : Expected<Folded>(in(node, 3));
    if (!zeros)
      return zeros.takeError();
    if (isBytes && !zeros->shape.empty()) { // a row of packed zero points may end with one too many
      const std::vector<Term> &fitting = in(node, 2).shape;
      if (zeros->shape.size() == fitting.size() && terms.plus(fitting.back(), 1) == zeros->shape.back())
        zeros->shape.back() = fitting.back();
    }
    zero = perBlock(*zeros, data->shape, along, block);
  }
  if (!scale || !zero)
    return refuse(node, "scales of shape " + text(in(node, 2).shape) +
                            ", or their zero points, do not fit elements of "
                            "shape " +
                            text(data->shape));
  const Folded table = weight(in(node, 2).type, data->shape, data->element, *zero, *scale, block);
  Expected<Folded> out = gathered(node, table, which, axis);
  if (!out)
    return out.takeError();
  return std::vector<Folded>{*out};
}

} // namespace k2c::onnx
