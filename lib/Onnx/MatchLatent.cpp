//===- MatchLatent.cpp - latent attention in graphs that expand it ---------------------===//
//
// Keys and values of all heads are linear layers of one latent, and a part of each key is turned and the same for all
// heads (DeepSeek V2, section 2.1):
//
//   latent = norm(Wa x)     key(h) = [Wk(h) latent, turned(Wr x)]     value(h) = Wv(h) latent
//
// Graphs keep expanded keys and values, or the latent; what is found is the same. Checkpoints store Wa and Wr as one
// matrix, and Wk and Wv of each head one behind the other.
//
//===----------------------------------------------------------------------===//
#include "Match.h"

namespace k2c::onnx {

/// Two parts of a matrix as one: of each head [first, second] rows, or of a matrix without heads.
static std::optional<LinearLayer> joined(const LinearLayer &first, const LinearLayer &second) {
  const View &a = first.weight, &b = second.weight;
  const size_t rank = a.shape.size();
  const int64_t rows = a.shape[rank - 2], others = b.shape[rank - 2], stride = a.strides[rank - 2];
  const bool isBehind = a.constant == b.constant && a.strides == b.strides && b.offset == a.offset + rows * stride;
  if (rank != b.shape.size() || !isBehind || first.bias.has_value() != second.bias.has_value() ||
      first.input != second.input || (rank == 3 && a.strides[0] != (rows + others) * stride))
    return std::nullopt;
  LinearLayer out = first;
  const int64_t heads = rank == 3 ? a.shape[0] : 1;
  out.weight.shape = {heads * (rows + others), a.shape[rank - 1]};
  out.weight.strides = {stride, a.strides[rank - 1]};
  if (first.bias) {
    const int64_t step = first.bias->strides.back();
    if (second.bias->constant != first.bias->constant || second.bias->offset != first.bias->offset + rows * step)
      return std::nullopt;
    out.bias->shape = {heads * (rows + others)};
    out.bias->strides = {step};
  }
  return out;
}

Expected<MlaLayer> Matcher::latent(const Attended &found, const TurnedRows &query, const TurnedRows &key) {
  MlaLayer out;
  if (!query.rotation || !key.rotation || !(*query.rotation == *key.rotation) || query.beforeSize != key.beforeSize ||
      query.beforeSize + query.rotation->dims != found.keyWidth || found.window != 0)
    return mismatch(found.query, "queries and keys with equal parts that are turned, and others");
  out.rotation = *query.rotation;
  out.spec.heads = found.heads;
  out.spec.nope = query.beforeSize;
  out.spec.rope = query.rotation->dims;
  out.spec.value = found.valueWidth;
  out.scale = found.scale * query.beforeFactor * key.beforeFactor;
  out.turnedScale = found.scale * query.factor * key.factor;
  const Term head = found.head, position = terms.add(fold.past, found.row);
  const Term plain = terms.variable(elementAt, terms.number(double(out.spec.nope)));
  const Term turned = terms.variable(elementAt, terms.number(double(out.spec.rope)));
  const auto at = [&](Term rows, Term element) { return replaced(rows, found.element, element); };
  const auto ofHead = [&](Term element) { // of one head there is no index
    return found.heads == 1 ? std::vector<Term>{element} : std::vector<Term>{head, element};
  };
  const Term values = replaced(found.value, found.keyIndex, position);
  Expected<LinearLayer> keyPart = linear(at(*key.before, plain), ofHead(plain));
  Expected<LinearLayer> valuePart = linear(values, ofHead(found.valueElement));
  Expected<LinearLayer> firstQuery = linear(at(*query.before, plain), ofHead(plain));
  Expected<LinearLayer> secondQuery = linear(at(query.rows, turned), ofHead(turned));
  Expected<LinearLayer> turnedKey = linear(at(key.rows, turned), {turned});
  for (Expected<LinearLayer> *layer : {&keyPart, &valuePart, &firstQuery, &secondQuery, &turnedKey})
    if (!*layer)
      return layer->takeError();
  const std::optional<LinearLayer> keyValue = joined(*keyPart, *valuePart), queries = joined(*firstQuery, *secondQuery);
  if (!keyValue || !queries)
    return mismatch(found.key, "the parts of a head one behind the other in one matrix");
  out.keyValue = *keyValue;
  out.query = *queries;
  out.spec.latent = keyValue->depth;
  const Term column = terms.variable(columnAt, terms.number(double(out.spec.latent)));
  Expected<NormLayer> norm = this->norm(keyValue->input, column);
  if (!norm)
    return norm.takeError();
  out.keyValueNorm = std::move(*norm);
  const Expected<LinearLayer> down = linear(out.keyValueNorm.input, {column});
  if (!down)
    return down.error();
  const std::optional<LinearLayer> keyValueLatent = joined(*down, *turnedKey);
  if (!keyValueLatent)
    return mismatch(out.keyValueNorm.input, "the latent and the turned key as rows of one matrix");
  out.keyValueLatent = *keyValueLatent;
  out.input = keyValueLatent->input;
  out.spec.latentNormEps = out.keyValueNorm.eps;
  out.spec.bias = keyValueLatent->bias.has_value();
  if (queries->input != out.input)
    if (Status status = readQueryLatent(*queries, out); !status)
      return status.takeError();
  return out;
}

/// The latent that queries have of their own.
Status Matcher::readQueryLatent(const LinearLayer &queries, MlaLayer &out) {
  const Term column = terms.variable(columnAt, terms.number(double(queries.depth)));
  Expected<NormLayer> norm = this->norm(queries.input, column);
  if (!norm)
    return norm.takeError();
  Expected<LinearLayer> latent = linear(norm->input, {column});
  if (!latent)
    return latent.takeError();
  if (latent->input != out.input || norm->eps != out.keyValueNorm.eps || latent->bias.has_value() != out.spec.bias)
    return mismatch(latent->input, "latents of queries and of keys of the same rows");
  out.spec.queryLatent = queries.depth;
  out.queryNorm = std::move(*norm);
  out.queryLatent = std::move(*latent);
  return Status::success();
}

} // namespace k2c::onnx
