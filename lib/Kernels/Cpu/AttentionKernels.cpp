//===- AttentionKernels.cpp - Grouped-query, absorbed and expanded attention -----------------===//
//
// The three differ in where queries, keys and values are: planes of k and v; the latent, which is key and value at
// once; or keys and values that are expanded from the latent, a block at a time, into scratch.
//
//===----------------------------------------------------------------------===//
#include "AttentionKernels.h"
#include "Contraction.h"
#include "Emitters.h"

namespace k2c::emit {

/// Queries, keys, weights and values are bf16 and multiply in pairs.
static bool takesPairs(const Rows &q, const AttentionShape &shape) {
  return q.type == DType::BF16 && shape.cache == DType::BF16;
}

TransposedKeysLayout layoutOf(const GqaAttentionDesc &d, const TileConfig &tile) {
  return transposedKeysLayout(tile, d.shape.heads / d.kvHeads, d.keyDim, d.valueDim, takesPairs(d.q, d.shape));
}
AttentionLayout layoutOf(const AbsorbedAttentionDesc &d, const TileConfig &tile) {
  return attentionLayout(tile, std::min(tile.headTile, d.shape.heads), d.latent + d.rope, d.latent,
                         takesPairs(d.qLatent, d.shape));
}
AttentionLayout layoutOf(const ExpandedAttentionDesc &d, const TileConfig &tile) {
  return attentionLayout(tile, 1, d.nope + d.rope, d.value, takesPairs(d.q, d.shape));
}

/// Expanded keys have whole panels of columns, so that expanding needs no mask; so have values, which follow them.
static int64_t expandedWidth(const Matrix &w) { return panelCount(w) * panelColumns; }

/// Expanded keys and values that multiply in pairs stay bf16.
static DType expandedType(const ExpandedAttentionDesc &d) {
  return takesPairs(d.q, d.shape) ? DType::BF16 : DType::F32;
}

int64_t expandedBytes(const ExpandedAttentionDesc &d) {
  return softmaxBlock * (expandedWidth(d.uk) + expandedWidth(d.uv)) * byteWidth(expandedType(d));
}

/// A block has 64 keys: tiles of 8 rows divide it, and are a third of the code of tiles of 14.
static TileConfig expansionTile(TileConfig tile) {
  tile.mr = std::min<int64_t>(tile.mr, 8);
  return tile;
}

/// How many tokens from the item's on are computed together: a worker's tokens of one head, up to `tile.rowsPerItem`.
static Value tokensTogether(KernelBuilder &b, const TileConfig &tile, const AttentionItem &item) {
  Value behind = b.sub(b.rowCount(RowSpace::Token, 1), item.token);
  Value count = b.min(b.min(item.remaining, behind), tile.rowsPerItem);
  return item.isApart ? b.select(item.isApart, b.constant(1), count) : count;
}

namespace {

struct GqaSource : AttentionSource {
  KernelBuilder &b;
  const GqaAttentionDesc &d;
  Value kvHead, o, upcoming;

  GqaSource(KernelBuilder &b, const GqaAttentionDesc &d) : b(b), d(d), o(b.argument(d.shape.maxLogit ? 5 : 4)) {}
  Pieces query(Value token, Value head) override {
    return {{b.at(b.row(b.argument(0), d.q, token), b.mul(head, d.keyDim), d.q.type), d.keyDim, 0, d.q.type}};
  }
  void prepare(Value, Value, Value next) override { upcoming = next; }
  Piece plane(Value base, Value slot, int64_t width) {
    auto row = [&](Value at) { return b.at(base, b.mul(b.add(b.mul(at, d.kvHeads), kvHead), width), d.shape.cache); };
    return {row(slot), width, d.kvHeads * width, d.shape.cache, row(upcoming)};
  }
  Pieces keys(Value slot) override { return {plane(b.argument(1), slot, d.keyDim)}; }
  Piece values(Value slot) override { return plane(b.argument(2), slot, d.valueDim); }
  Value output(Value token, Value head) override {
    return b.at(b.row(o, d.o, token), b.mul(head, d.valueDim), d.o.type);
  }
};

struct AbsorbedSource : AttentionSource {
  KernelBuilder &b;
  const AbsorbedAttentionDesc &d;
  Value o, upcoming;

  AbsorbedSource(KernelBuilder &b, const AbsorbedAttentionDesc &d)
      : b(b), d(d), o(b.argument(d.shape.maxLogit ? 6 : 5)) {}
  Pieces query(Value token, Value head) override {
    Value latent = b.at(b.row(b.argument(0), d.qLatent, token), b.mul(head, d.latent), d.qLatent.type);
    Value rope = b.at(b.row(b.argument(1), d.qRope, token), b.mul(head, d.qRopeHeadStride), d.qRope.type);
    return {{latent, d.latent, 0, d.qLatent.type}, {rope, d.rope, 0, d.qRope.type}};
  }
  void fetch(Value slot, Value keys) override {
    upcoming = slot;
    for (const Piece &piece : this->keys(slot)) {
      int64_t rowBytes = piece.width * byteWidth(piece.type);
      b.loop(b.constant(0), b.mul(keys, rowBytes), cacheLine,
             [&](Value at) { b.prefetch(b.atBytes(piece.pointer, at), CacheLevel::Second); });
    }
  }
  void prepare(Value, Value, Value next) override { upcoming = next; }
  Piece plane(Value base, Value slot, int64_t width) {
    auto row = [&](Value at) { return b.at(base, b.mul(at, width), d.shape.cache); };
    return {row(slot), width, width, d.shape.cache, row(upcoming)};
  }
  Pieces keys(Value slot) override { return {values(slot), plane(b.argument(3), slot, d.rope)}; }
  Piece values(Value slot) override { return plane(b.argument(2), slot, d.latent); }
  Value output(Value token, Value head) override { return b.at(b.row(o, d.o, token), b.mul(head, d.latent), d.o.type); }
};

struct ExpandedSource : AttentionSource {
  KernelBuilder &b;
  const ExpandedAttentionDesc &d;
  TileConfig tile; ///< of the expansions
  Rows latents;
  PanelContraction toKey, toValue;
  Value head, o, keyRows, valueRows;

  ExpandedSource(KernelBuilder &b, const ExpandedAttentionDesc &d, const TileConfig &attentionTile,
                 const AttentionLayout &layout)
      : b(b), d(d), tile(expansionTile(attentionTile)), latents{RowSpace::Token, d.latent, d.latent, d.shape.cache},
        toKey(b, latents, d.uk, {d.latent, leafCount(d.latent)}, tile, false),
        toValue(b, latents, d.uv, {d.latent, leafCount(d.latent)}, tile, false),
        o(b.argument(d.shape.maxLogit ? 7 : 6)), keyRows(b.scratch(layout.bytes())),
        valueRows(b.at(keyRows, softmaxBlock * expandedWidth(d.uk), expandedType(d))) {}

  Pieces query(Value token, Value head) override {
    int64_t width = d.nope + d.rope;
    return {{b.at(b.row(b.argument(0), d.q, token), b.mul(head, width), d.q.type), width, 0, d.q.type}};
  }
  void prepare(Value slot, Value keys, Value) override {
    Value latent = b.at(b.argument(1), b.mul(slot, d.latent), d.shape.cache);
    expand(toKey, d.uk, b.argument(3), latent, keys, keyRows);
    expand(toValue, d.uv, b.argument(4), latent, keys, valueRows);
  }
  /// Rows of `keys` latents times the head's matrix, rounded to the query's type.
  void expand(PanelContraction &contraction, const Matrix &w, Value matrices, Value latent, Value keys, Value to) {
    DType type = expandedType(d);
    b.loop(0, panelCount(w), 1, [&](Value panel) {
      Panel weights = contraction.panel(matrices, head, panel);
      b.loop(b.constant(0), keys, tile.mr, [&](Value first) {
        Value rows = b.min(b.sub(keys, first), tile.mr);
        b.loop(0, contraction.passes(), 1, [&](Value pass) {
          contraction.run(b.row(latent, latents, first), rows, weights, pass, contraction.ownPanel(weights));
          b.loop(b.constant(0), rows, 1, [&](Value inTile) {
            Value row = b.at(to, b.mul(b.add(first, inTile), expandedWidth(w)), type);
            for (int64_t v = 0; v < tile.nrVectors; ++v) {
              Value column = b.add(b.mul(panel, panelColumns), contraction.column(pass, v));
              b.storeFloats(b.rounded(contraction.sum(inTile, v), d.q.type), b.at(row, column, type), type);
            }
          });
        });
      });
    });
  }
  Pieces keys(Value slot) override {
    Value rope = b.at(b.argument(2), b.mul(slot, d.rope), d.shape.cache);
    return {{keyRows, d.nope, expandedWidth(d.uk), expandedType(d)}, {rope, d.rope, d.rope, d.shape.cache}};
  }
  Piece values(Value) override { return {valueRows, d.value, expandedWidth(d.uv), expandedType(d)}; }
  Value output(Value token, Value head) override { return b.at(b.row(o, d.o, token), b.mul(head, d.value), d.o.type); }
};

} // namespace

void emitBody(KernelBuilder &b, const GqaAttentionDesc &d, const TileConfig &tile) {
  TransposedKeysLayout layout = layoutOf(d, tile);
  if (layout.pairs && tile.instructionSet == InstructionSet::Avx512)
    b.roundByInstruction();
  GqaSource source(b, d);
  Value layer = d.shape.maxLogit ? b.integerOf(b.argument(4)) : Value();
  TransposedKeysEmitter attention(b, d.shape, layout, source, d.o.type, tile, layer);
  int64_t perKv = d.shape.heads / d.kvHeads;
  int64_t arguments = operands({"", d}).size();
  AttentionSplit split(b, {d.shape.group, d.shape.heads, d.kvHeads, d.valueDim, 1, FormFilter::All, arguments}, tile);
  auto compute = [&](const AttentionItem &item) {
    source.kvHead = item.tile;
    Value count = tokensTogether(b, tile, item);
    attention.emitItem({item.token, b.add(item.token, count)}, b.mul(item.tile, perKv), b.constant(perKv),
                       FormFilter::All, item.partial);
    return count;
  };
  split.emit(compute, [&](Value token, Value head) { return source.output(token, head); }, d.o.type);
}

void emitBody(KernelBuilder &b, const AbsorbedAttentionDesc &d, const TileConfig &tile) {
  AttentionLayout layout = layoutOf(d, tile);
  if (layout.pairs && tile.instructionSet == InstructionSet::Avx512)
    b.roundByInstruction();
  AbsorbedSource source(b, d);
  Value layer = d.shape.maxLogit ? b.integerOf(b.argument(5)) : Value();
  AttentionEmitter attention(b, d.shape, layout, source, d.o.type, tile.instructionSet, layer);
  // Consecutive parts of one (head tile, token) are computed together.
  int64_t width = (d.latent + tile.valueParts - 1) / tile.valueParts;
  const int64_t columnsOfPart = valuePartColumns(tile.lanes);
  width = (width + columnsOfPart - 1) / columnsOfPart * columnsOfPart;
  int64_t tiles = (d.shape.heads + tile.headTile - 1) / tile.headTile, arguments = operands({"", d}).size();
  AttentionSplit split(b, {d.shape.group, d.shape.heads, tiles, d.latent, tile.valueParts, d.rows, arguments}, tile);
  auto compute = [&](const AttentionItem &item) {
    ValuePart columns{b.mul(item.part, width), b.min(b.mul(b.add(item.part, item.parts), width), d.latent)};
    Value first = b.mul(item.tile, tile.headTile);
    Value heads = b.min(b.sub(b.constant(d.shape.heads), first), tile.headTile);
    b.when(b.compare(Compare::Lt, columns.begin, columns.end), [&] {
      attention.emitItem({item.token, b.add(item.token, 1)}, first, heads, d.rows, columns, item.partial);
    });
    return item.parts;
  };
  split.emit(compute, [&](Value token, Value head) { return source.output(token, head); }, d.o.type);
}

void emitBody(KernelBuilder &b, const ExpandedAttentionDesc &d, const TileConfig &tile) {
  AttentionLayout layout = layoutOf(d, tile);
  if (layout.pairs && tile.instructionSet == InstructionSet::Avx512)
    b.roundByInstruction();
  ExpandedSource source(b, d, tile, layout);
  Value layer = d.shape.maxLogit ? b.integerOf(b.argument(6)) : Value();
  AttentionEmitter attention(b, d.shape, layout, source, d.o.type, tile.instructionSet, layer);
  AttentionSplit whole(b, {d.shape.group, d.shape.heads, d.shape.heads, d.value, 1, d.rows, 0}, tile);
  auto compute = [&](const AttentionItem &item) {
    source.head = item.tile;
    Value count = tokensTogether(b, tile, item);
    attention.emitItem({item.token, b.add(item.token, count)}, item.tile, b.constant(1), d.rows);
    return count;
  };
  whole.emit(compute, [&](Value token, Value head) { return source.output(token, head); }, d.o.type);
}

} // namespace k2c::emit
