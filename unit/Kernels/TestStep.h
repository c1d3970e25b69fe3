//===- TestStep.h - Steps, caches and packed weights for kernel tests ---------===//
//
// Owns the arrays a step points to. Pages of a sequence are scattered, so that a kernel which ignores the block table
// reads the wrong keys. Random values come from a fixed generator: the same on every machine.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_KERNELS_TESTSTEP_H
#define K2C_UNIT_KERNELS_TESTSTEP_H

#include "k2c/Kernels/Evaluate.h"
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <initializer_list>
#include <vector>

namespace k2c::test {

/// Uniform in [-1, 1), 24 bits.
class Random {
public:
  explicit Random(uint64_t seed = 1) : state(seed * 0x9e3779b97f4a7c15u + 1) {}
  float operator()() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return float(int64_t(state >> 40) - (1 << 23)) / float(1 << 23);
  }
  int64_t below(int64_t n) { return int64_t((operator()() * 0.5f + 0.5f) * float(n)) % n; }
  std::vector<float> vector(int64_t n) {
    std::vector<float> v(n);
    for (float &x : v)
      x = operator()();
    return v;
  }

private:
  uint64_t state;
};

inline uint16_t bf16Of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float ofBf16(uint16_t h) {
  uint32_t bits = uint32_t(h) << 16;
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

/// An array of F32 or BF16 with element access as float.
class Array {
public:
  Array(DType type, int64_t n) : type(type), bytes(n * byteWidth(type)) {}
  Array(DType type, const std::vector<float> &values) : Array(type, int64_t(values.size())) {
    for (size_t i = 0; i < values.size(); ++i)
      set(i, values[i]);
  }
  float operator[](int64_t i) const {
    if (type == DType::F32) {
      float x;
      std::memcpy(&x, &bytes[i * 4], 4);
      return x;
    }
    uint16_t h;
    std::memcpy(&h, &bytes[i * 2], 2);
    return ofBf16(h);
  }
  void set(int64_t i, float x) {
    uint16_t h = bf16Of(x);
    if (type == DType::F32)
      std::memcpy(&bytes[i * 4], &x, 4);
    else
      std::memcpy(&bytes[i * 2], &h, 2);
  }
  void *data() { return bytes.data(); }
  /// Element i.
  void *at(int64_t i) { return bytes.data() + i * byteWidth(type); }
  int64_t size() const { return int64_t(bytes.size()) / byteWidth(type); }
  bool operator==(const Array &other) const { return bytes == other.bytes; }
  bool operator!=(const Array &other) const { return bytes != other.bytes; }

private:
  DType type;
  std::vector<char> bytes;
};

/// Packs w(matrix, n, k); padding is zero.
inline Array pack(const MatrixLayout &weights, const std::function<float(int64_t, int64_t, int64_t)> &w) {
  return std::visit(
      [&](const auto &layout) {
        const Matrix &matrix = layout.matrix;
        const int64_t width = byteWidth(matrix.type);
        Array packed(matrix.type, layout.bytes() / width);
        for (int64_t m = 0; m < matrix.count; ++m)
          for (int64_t n = 0; n < matrix.n; ++n)
            for (int64_t k = 0; k < matrix.k; ++k)
              packed.set(layout.offset(m, n, k) / width, w(m, n, k));
        return packed;
      },
      weights);
}
inline Array pack(const Matrix &matrix, const std::function<float(int64_t, int64_t, int64_t)> &w,
                  WeightLayout weights = WeightLayout::Panels) {
  return pack(layoutOf(matrix, weights), w);
}

/// Index of W[n][k] of matrix `m` in packed panels.
inline int64_t elementOf(const Matrix &matrix, int64_t m, int64_t n, int64_t k) {
  return PanelLayout{matrix}.offset(m, n, k) / byteWidth(matrix.type);
}

/// The table that a grouped linear takes: each matrix of packed weights at an address of its own, the last one first.
class ExpertTable {
public:
  ExpertTable(const MatrixLayout &weights, const void *packed) {
    const auto [bytes, count] =
        std::visit([](const auto &layout) { return std::pair(layout.bytes(), layout.matrix.count); }, weights);
    copies.resize(bytes);
    for (int64_t expert = 0; expert < count; ++expert) {
      char *copy = copies.data() + (count - 1 - expert) * (bytes / count);
      std::memcpy(copy, static_cast<const char *>(packed) + expert * (bytes / count), bytes / count);
      table.push_back(copy);
    }
  }
  ExpertTable(const Matrix &matrix, const void *packed) : ExpertTable(PanelLayout{matrix}, packed) {}
  /// Leaves the expert out.
  void remove(int64_t expert) { table[expert] = nullptr; }
  void *data() { return table.data(); }

private:
  std::vector<char> copies;
  std::vector<void *> table;
};

/// `rows` new tokens of a sequence that has `cached` ones.
struct Sequence {
  int64_t cached = 0, rows = 0;
  int32_t form = K2RT_FORM_EXPANDED;
  std::vector<int32_t> pages = {}; ///< default: pages scattered by sequence row
};

/// A step over sequences. All that is said of a cache is of group `group`; the groups before it hold nothing, and its
/// tokens have other positions in their sequences.
class TestStep {
public:
  static constexpr int64_t pageCount = 97, stride = 288;

  explicit TestStep(const std::vector<Sequence> &sequences, int64_t group = 0) {
    seqBegin.push_back(0);
    for (size_t s = 0; s < sequences.size(); ++s)
      addSequence(int64_t(s), sequences[s]);
    for (int32_t &position : positions)
      position += int32_t(group) * 100;
    none.resize(sequences.size() * stride);
    nowhere.resize(positions.size());
    lengthLists.assign(group, none.data());
    tables.assign(group, none.data());
    slotLists.assign(group, nowhere.data());
    lengthLists.push_back(seqLen.data());
    tables.push_back(table.data());
    slotLists.push_back(slots.data());
    step.token_rows = step.layer_rows = int64_t(positions.size());
    step.seq_rows = int64_t(sequences.size());
    step.positions = positions.data();
    step.row_seq = rowSeq.data();
    step.row_form = rowForm.data();
    step.seq_begin = seqBegin.data();
    step.seq_len = lengthLists.data();
    step.block_tables = tables.data();
    step.block_stride = stride;
    step.append_slots = slotLists.data();
  }
  TestStep(const TestStep &) = delete;

  /// One sequence row of `rows` tokens that no cache is used of.
  static std::vector<Sequence> plain(int64_t rows) { return {Sequence{0, rows}}; }

  int64_t slot(int64_t sequence, int64_t token) const {
    return int64_t(table[sequence * stride + token / 64]) * 64 + token % 64;
  }
  int64_t rows() const { return step.token_rows; }
  /// Which token of the group a row is.
  int64_t token(int64_t row) const { return seqLen[rowSeq[row]] + row - seqBegin[rowSeq[row]]; }

  k2rt_ir_step step = {};
  std::vector<int32_t> positions, rowSeq, rowForm, seqBegin, seqLen, table;
  std::vector<int64_t> slots;

private:
  void addSequence(int64_t s, const Sequence &sequence) {
    for (int64_t b = 0; b < stride; ++b)
      table.push_back(b < int64_t(sequence.pages.size()) ? sequence.pages[b]
                                                         : int32_t((s * 160 + b * 7 + 3) % pageCount));
    for (int64_t r = 0; r < sequence.rows; ++r) {
      int64_t position = sequence.cached + r;
      positions.push_back(int32_t(position));
      rowSeq.push_back(int32_t(s));
      rowForm.push_back(sequence.form);
      slots.push_back(slot(s, position));
    }
    seqBegin.push_back(int32_t(positions.size()));
    seqLen.push_back(int32_t(sequence.cached));
  }

  std::vector<int32_t> none; ///< no tokens, and page 0
  std::vector<int64_t> nowhere;
  std::vector<const int32_t *> lengthLists, tables;
  std::vector<const int64_t *> slotLists;
};

/// evaluate() with the arguments in order; the layer ordinal is passed as `ordinal(l)`.
inline void *ordinal(int64_t l) { return reinterpret_cast<void *>(intptr_t(l)); }

inline Status evaluateWith(const KernelBody &body, const k2rt_ir_step &step, std::initializer_list<void *> args,
                           WeightLayout weights = WeightLayout::Panels) {
  KernelDesc desc{"kernel", body};
  EXPECT_EQ(operands(desc).size(), args.size());
  return evaluate(desc, args.begin(), step, weights);
}

inline Rows rowsOf(int64_t width, DType type = DType::F32, RowSpace space = RowSpace::Token) {
  return {space, width, width, type};
}

} // namespace k2c::test

#endif // K2C_UNIT_KERNELS_TESTSTEP_H
