//===- EvaluateAttention.cpp - N3, one query at a time ------------------------===//
//
// The three attentions differ only in where a sequence's keys and values come from: they are gathered (MLA expanded:
// expanded) once per sequence and kv head, then every query runs the online softmax that AttentionShape defines.
//
//===----------------------------------------------------------------------===//
#include "Evaluation.h"
#include "k2rt/polynomials.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace k2c::evaluation {

namespace {

/// Keys and values of one sequence as one head sees them, widened: [token][width].
struct KeysValues {
  std::vector<std::vector<float>> keys, values;
};

/// A running softmax: of the current partial, or of the total.
struct Softmax {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0;
  std::vector<float> out;

  explicit Softmax(int64_t width) : out(width, 0.0f) {}

  /// Takes the scores of one block; values[t] belongs to scores[t].
  void block(const float *scores, const std::vector<float> *values, int64_t count, bool pairs) {
    float next = max;
    for (int64_t t = 0; t < count; ++t)
      next = larger(next, scores[t]);
    float alpha = k2rt_expf(max - next);
    max = next;
    sum = sum * alpha;
    for (float &o : out)
      o = o * alpha;
    auto weigh = [&](int64_t t) {
      bool seen = t < count;
      float p = seen ? roundTo(pairs ? DType::BF16 : DType::F32, k2rt_expf(scores[t] - max)) : 0.0f;
      sum = std::fma(p, 1.0f, sum);
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = std::fma(p, seen ? values[t][i] : 0.0f, out[i]);
    };
    for (int64_t t = 0; t < count; t += pairs ? 2 : 1) {
      if (pairs)
        weigh(t + 1);
      weigh(t);
    }
  }

  /// Joins the partial of later keys.
  void merge(const Softmax &partial) {
    float next = larger(max, partial.max);
    float a = k2rt_expf(max - next), b = k2rt_expf(partial.max - next);
    max = next;
    sum = std::fma(partial.sum, b, sum * a);
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = std::fma(partial.out[i], b, out[i] * a);
  }
};

/// O * (1 / L) of a query at `position` with the given scores of keys 0 .. position.
std::vector<float> attend(const std::vector<float> &scores, const std::vector<std::vector<float>> &values,
                          int64_t position, bool pairs) {
  int64_t keys = position + 1, restart = softmaxRestart(position), width = values[0].size();
  Softmax total(width);
  for (int64_t start = 0; start < keys; start += restart) {
    Softmax partial(width);
    int64_t end = std::min(start + restart, keys);
    for (int64_t t = start; t < end; t += softmaxBlock)
      partial.block(&scores[t], &values[t], std::min(softmaxBlock, end - t), pairs);
    if (start == 0)
      total = std::move(partial);
    else
      total.merge(partial);
  }
  float factor = 1.0f / total.sum;
  for (float &o : total.out)
    o = o * factor;
  return std::move(total.out);
}

/// What the three kernels have in common: rows of a sequence, cache addresses, the capture of the largest score.
struct Attention {
  const AttentionShape &shape;
  const k2rt_ir_step &step;
  FormFilter filter;
  bool pairs; ///< queries and keys are bf16

  int64_t slot(int64_t sequence, int64_t token) const {
    const int32_t *table = as<int32_t>(as<const void *>(step.block_tables)[shape.group]);
    return int64_t(table[sequence * step.block_stride + token / softmaxBlock]) * softmaxBlock + token % softmaxBlock;
  }

  /// Rows of the sequence that this kernel defines.
  std::vector<int64_t> rows(int64_t sequence) const {
    std::vector<int64_t> list;
    const int32_t *begin = as<int32_t>(step.seq_begin);
    for (int64_t row = begin[sequence]; row < begin[sequence + 1]; ++row)
      if (takesRow(filter, step, row))
        list.push_back(row);
    return list;
  }

  /// In the cache group.
  int64_t position(int64_t row) const {
    const int64_t sequence = as<int32_t>(step.row_seq)[row];
    const int32_t *lengths = as<int32_t>(as<const void *>(step.seq_len)[shape.group]);
    return lengths[sequence] + row - as<int32_t>(step.seq_begin)[sequence];
  }

  /// Keys that the last of `rows` sees.
  int64_t keyCount(const std::vector<int64_t> &rows) const { return rows.empty() ? 0 : position(rows.back()) + 1; }

  /// `maxLogit`: where the head's largest score is captured, or null.
  std::vector<float> query(const std::vector<float> &q, const KeysValues &kv, int64_t row, float *maxLogit) const {
    int64_t p = position(row), width = q.size();
    Contraction order{width, leafCount(width)};
    std::vector<float> scores(p + 1);
    for (int64_t t = 0; t <= p; ++t) {
      scores[t] = contract(q.data(), kv.keys[t].data(), order, pairs) * float(shape.scale);
      if (maxLogit)
        *maxLogit = larger(scores[t], *maxLogit);
    }
    return attend(scores, kv.values, p, pairs);
  }

  /// The capture of `head`, or null.
  float *capture(int64_t head) const {
    float *all = static_cast<float *>(step.capture_max_logit);
    return shape.maxLogit && all ? all + layer * shape.heads + head : nullptr;
  }

  /// Reads [step], [layer]; the result pointer is next.
  void tail(Arguments &args) {
    args.pointer();
    layer = shape.maxLogit ? args.ordinal() : 0;
  }

  int64_t layer = 0;
};

void storeHead(void *o, const Rows &rows, int64_t row, int64_t head, const std::vector<float> &values) {
  for (size_t i = 0; i < values.size(); ++i)
    store(o, row * rows.stride + head * int64_t(values.size()) + int64_t(i), rows.type, values[i]);
}

void append(std::vector<float> &to, const std::vector<float> &from) { to.insert(to.end(), from.begin(), from.end()); }

} // namespace

Status run(const GqaAttentionDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *q = args.pointer(), *k = args.pointer(), *v = args.pointer();
  Attention attention{d.shape, step, FormFilter::All, d.q.type == DType::BF16 && d.shape.cache == DType::BF16};
  attention.tail(args);
  void *o = args.pointer();
  int64_t perKv = d.shape.heads / d.kvHeads;
  for (int64_t sequence = 0; sequence < step.seq_rows; ++sequence) {
    std::vector<int64_t> rows = attention.rows(sequence);
    for (int64_t kvHead = 0; kvHead < d.kvHeads; ++kvHead) {
      KeysValues kv;
      for (int64_t t = 0; t < attention.keyCount(rows); ++t) {
        int64_t head = attention.slot(sequence, t) * d.kvHeads + kvHead;
        kv.keys.push_back(loadRow(k, head * d.keyDim, d.keyDim, d.shape.cache));
        kv.values.push_back(loadRow(v, head * d.valueDim, d.valueDim, d.shape.cache));
      }
      for (int64_t head = kvHead * perKv; head < (kvHead + 1) * perKv; ++head)
        for (int64_t row : rows) {
          std::vector<float> query = loadRow(q, row * d.q.stride + head * d.keyDim, d.keyDim, d.q.type);
          storeHead(o, d.o, row, head, attention.query(query, kv, row, attention.capture(head)));
        }
    }
  }
  return Status::success();
}

Status run(const AbsorbedAttentionDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *qLatent = args.pointer(), *qRope = args.pointer(), *latent = args.pointer(), *rope = args.pointer();
  Attention attention{d.shape, step, d.rows, d.qLatent.type == DType::BF16 && d.shape.cache == DType::BF16};
  attention.tail(args);
  void *o = args.pointer();
  for (int64_t sequence = 0; sequence < step.seq_rows; ++sequence) {
    std::vector<int64_t> rows = attention.rows(sequence);
    KeysValues kv;
    for (int64_t t = 0; t < attention.keyCount(rows); ++t) {
      int64_t slot = attention.slot(sequence, t);
      kv.values.push_back(loadRow(latent, slot * d.latent, d.latent, d.shape.cache));
      kv.keys.push_back(kv.values.back());
      append(kv.keys.back(), loadRow(rope, slot * d.rope, d.rope, d.shape.cache));
    }
    for (int64_t head = 0; head < d.shape.heads; ++head)
      for (int64_t row : rows) {
        std::vector<float> query = loadRow(qLatent, row * d.qLatent.stride + head * d.latent, d.latent, d.qLatent.type);
        append(query, loadRow(qRope, row * d.qRope.stride + head * d.qRopeHeadStride, d.rope, d.qRope.type));
        storeHead(o, d.o, row, head, attention.query(query, kv, row, attention.capture(head)));
      }
  }
  return Status::success();
}

/// All columns of one head's expansion of a latent, each rounded to `type`.
static std::vector<float> expand(const std::vector<float> &latent, const std::vector<std::vector<float>> &columns,
                                 DType type, bool pairs) {
  Contraction order{int64_t(latent.size()), leafCount(latent.size())};
  std::vector<float> out;
  for (const std::vector<float> &column : columns)
    out.push_back(roundTo(type, contract(latent.data(), column.data(), order, pairs)));
  return out;
}

static std::vector<std::vector<float>> loadMatrix(const void *base, const Matrix &matrix, WeightLayout layout,
                                                  int64_t head) {
  std::vector<std::vector<float>> columns;
  for (int64_t n = 0; n < matrix.n; ++n)
    columns.push_back(loadColumn(base, layoutOf(matrix, layout), head, n));
  return columns;
}

Status run(const ExpandedAttentionDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *q = args.pointer(), *latents = args.pointer(), *ropes = args.pointer();
  const void *uk = args.pointer(), *uv = args.pointer();
  bool pairs = d.q.type == DType::BF16 && d.shape.cache == DType::BF16;
  auto expandsPairs = [&](const Matrix &w) { return d.shape.cache == DType::BF16 && w.type == DType::BF16; };
  Attention attention{d.shape, step, d.rows, pairs};
  attention.tail(args);
  void *o = args.pointer();
  int64_t keyDim = d.nope + d.rope;
  for (int64_t head = 0; head < d.shape.heads; ++head) {
    std::vector<std::vector<float>> toKey = loadMatrix(uk, d.uk, args.weights, head),
                                    toValue = loadMatrix(uv, d.uv, args.weights, head);
    for (int64_t sequence = 0; sequence < step.seq_rows; ++sequence) {
      std::vector<int64_t> rows = attention.rows(sequence);
      KeysValues kv;
      for (int64_t t = 0; t < attention.keyCount(rows); ++t) {
        int64_t slot = attention.slot(sequence, t);
        std::vector<float> latent = loadRow(latents, slot * d.latent, d.latent, d.shape.cache);
        kv.keys.push_back(expand(latent, toKey, d.q.type, expandsPairs(d.uk)));
        append(kv.keys.back(), loadRow(ropes, slot * d.rope, d.rope, d.shape.cache));
        kv.values.push_back(expand(latent, toValue, d.q.type, expandsPairs(d.uv)));
      }
      for (int64_t row : rows) {
        std::vector<float> query = loadRow(q, row * d.q.stride + head * keyDim, keyDim, d.q.type);
        storeHead(o, d.o, row, head, attention.query(query, kv, row, attention.capture(head)));
      }
    }
  }
  return Status::success();
}

} // namespace k2c::evaluation
