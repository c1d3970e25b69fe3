//===- TinyDecoder.cpp - small decoders whose parts can be replaced -------------===//
#include "TinyDecoder.h"

#include <cmath>

namespace k2c::onnx::test {

std::vector<double> sampled(const std::string &name, int64_t count) {
  uint32_t state = 2166136261u;
  for (char c : name)
    state = (state ^ uint8_t(c)) * 16777619u;
  std::vector<double> out;
  for (int64_t i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    out.push_back((int32_t(state >> 25) - 63.5) / 64); // exact in BF16 but for the half
    out.back() = std::floor(out.back() * 64) / 64;
    out.back() += out.back() == 0 ? 1.0 / 64 : 0;
  }
  return out;
}

std::vector<double> transposed(const std::string &name, int64_t rows, int64_t columns) {
  const std::vector<double> of = sampled(name, rows * columns);
  std::vector<double> out;
  for (int64_t column = 0; column < columns; column++)
    for (int64_t row = 0; row < rows; row++)
      out.push_back(of[size_t(row * columns + column)]);
  return out;
}

ValueId TinyDecoder::part(const std::string &name, ValueId value) {
  values[name] = value;
  const auto change = changes.find(name);
  if (change == changes.end())
    return value;
  const Change made = change->second;
  changes.erase(change);
  return values[name] = made(*this, value);
}

ValueId TinyDecoder::weight(const std::string &name, const std::vector<int64_t> &shape, ElementType type) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return part(name, graph.constant(name, shape, sampled(name, count), type));
}

ValueId TinyDecoder::cut(ValueId value, int64_t axis, int64_t begin, int64_t end) {
  return op("Slice", {value, graph.list({begin}), graph.list({end}), graph.list({axis})});
}

ValueId TinyDecoder::norm(const std::string &name, ValueId rows, int64_t size, double eps) {
  const ValueId squares = part(name + ".squares", op("Mul", {rows, rows}));
  const ValueId mean = op("ReduceMean", {squares, graph.list({-1})}, {{"keepdims", 1}});
  const ValueId added = op("Add", {mean, part(name + ".eps", graph.number(eps))});
  const ValueId root = part(name + ".root", op("Sqrt", {added}));
  return op("Mul", {op("Div", {rows, root}), weight(name, {size})});
}

ValueId TinyDecoder::turned(ValueId rows, int64_t dims, double theta) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < dims / 2; i++)
    frequencies.push_back(1 / std::pow(theta, 2.0 * double(i) / double(dims)));
  const ValueId of = graph.constant("frequencies", {dims / 2}, frequencies);
  const ValueId half = op("Mul", {unsqueezed(op("Cast", {positions}, {{"to", 1}}), {2}), of});
  const ValueId angles = unsqueezed(op("Concat", {half, half}, {{"axis", -1}}), {1});
  const ValueId first = cut(rows, -1, 0, dims / 2), second = cut(rows, -1, dims / 2, dims);
  const ValueId other = op("Concat", {op("Neg", {second}), first}, {{"axis", -1}});
  return op("Add", {op("Mul", {rows, op("Cos", {angles})}), op("Mul", {other, op("Sin", {angles})})});
}

ValueId TinyDecoder::inHeads(ValueId rows, int64_t heads, int64_t width) {
  return op("Transpose", {reshaped(rows, {0, 0, heads, width})}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
}

ValueId TinyDecoder::withPast(const std::string &prefix, const std::string &what, ValueId rows, int64_t heads,
                              int64_t width) {
  if (!options.hasPast)
    return part(prefix + what + "s", rows);
  const std::vector<SizeOf> shape{"batch", heads, "past", width}, grown{"batch", heads, "total", width};
  const ValueId past = graph.input("past." + prefix + what, ElementType::F32, shape);
  const ValueId kept = part(prefix + what + ".kept", op("Concat", {past, rows}, {{"axis", 2}}));
  if (kept != noValue)
    graph.output(kept, "present." + prefix + what, grown);
  return part(prefix + what + "s", op("Concat", {part(prefix + what + ".past", past), rows}, {{"axis", 2}}));
}

ValueId TinyDecoder::mask(const std::string &prefix, ValueId keys) {
  const auto size = [&](ValueId of, int64_t axis) {
    return op("Gather", {op("Shape", {of}), graph.number(double(axis), ElementType::I64)});
  };
  const auto whole = [&](double number) { return graph.number(number, ElementType::I64); };
  const ValueId total = size(keys, 2), sequence = size(ids, 1);
  const ValueId step = op("Range", {whole(0), sequence, whole(1)});
  const ValueId rows = part(prefix + "rows", unsqueezed(op("Add", {step, op("Sub", {total, sequence})}), {1}));
  const ValueId columns = part(prefix + "columns", unsqueezed(op("Range", {whole(0), total, whole(1)}), {0}));
  ValueId seen = op("LessOrEqual", {columns, rows});
  if (options.window != 0)
    seen = op("And", {seen, op("Greater", {columns, op("Sub", {rows, whole(double(options.window))})})});
  seen = part(prefix + "seen", seen);
  return part(prefix + "mask", op("Where", {seen, graph.number(0), graph.number(-1e9)}));
}

ValueId TinyDecoder::attended(const std::string &prefix, ValueId query, ValueId keys, ValueId values, double scale) {
  const int64_t width = options.isLatent ? options.value : options.width;
  const ValueId turnedKeys = op("Transpose", {keys}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  const ValueId factor = part(prefix + "scale", graph.number(scale));
  const ValueId scores = part(prefix + "scores", op("Mul", {op("MatMul", {query, turnedKeys}), factor}));
  const ValueId masked = part(prefix + "masked", op("Add", {scores, mask(prefix, keys)}));
  const ValueId weights = part(prefix + "weights", op("Softmax", {masked}, {{"axis", -1}}));
  const ValueId rows = part(prefix + "weighted", op("MatMul", {weights, values}));
  const ValueId joined = op("Transpose", {rows}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  const ValueId all = part(prefix + "attended", reshaped(joined, {0, 0, options.heads * width}));
  return part(prefix + "output", linear(prefix + "wo", all, options.heads * width, options.hidden));
}

ValueId TinyDecoder::attention(const std::string &prefix, ValueId rows) {
  const int64_t width = options.width, shared = options.heads / options.kvHeads;
  const auto projected = [&](const std::string &what, int64_t heads) {
    const ValueId all = linear(prefix + "w" + what.substr(0, 1), rows, options.hidden, heads * width);
    return part(prefix + what + ".heads", inHeads(part(prefix + what, all), heads, width));
  };
  ValueId query = projected("query", options.heads), key = projected("key", options.kvHeads);
  const ValueId value = projected("value", options.kvHeads);
  if (options.isTurned) {
    query = part(prefix + "query.turned", turned(query, width, options.theta));
    key = part(prefix + "key.turned", turned(key, width, options.theta));
  }
  const auto ofAll = [&](const std::string &what, ValueId of) {
    const ValueId ones = graph.list({1, 1, shared, 1, 1});
    const ValueId spread = op("Expand", {unsqueezed(of, {2}), ones});
    return part(prefix + what + "s.shared", reshaped(spread, {0, options.heads, -1, width}));
  };
  const ValueId keys = ofAll("key", withPast(prefix, "key", key, options.kvHeads, width));
  const ValueId values = ofAll("value", withPast(prefix, "value", value, options.kvHeads, width));
  return attended(prefix, query, keys, values, 1 / std::sqrt(double(width)));
}

ValueId TinyDecoder::latentAttention(const std::string &prefix, ValueId rows) {
  const int64_t heads = options.heads, nope = options.nope, rope = options.rope, width = nope + rope;
  const int64_t value = options.value, latent = options.latent;
  ValueId query = rows;
  int64_t depth = options.hidden;
  if (options.hasQueryLatent) {
    depth = options.queryLatent;
    query = part(prefix + "query.latent", linear(prefix + "wqa", rows, options.hidden, depth));
    query = norm(prefix + "query.norm", query, depth);
  }
  query = part(prefix + "query", linear(prefix + "wq", query, depth, heads * width));
  query = inHeads(query, heads, width);
  const ValueId down = part(prefix + "down", linear(prefix + "wkva", rows, options.hidden, latent + rope));
  const ValueId turnedKey = part(prefix + "key.rope", unsqueezed(cut(down, -1, latent, latent + rope), {1}));
  const ValueId own = part(prefix + "latent", cut(down, -1, 0, latent));
  const ValueId normed = part(prefix + "latent.normed", norm(prefix + "key.norm", own, latent));
  const ValueId up = part(prefix + "up", linear(prefix + "wkvb", normed, latent, heads * (nope + value)));
  const ValueId both = inHeads(up, heads, nope + value);
  const ValueId spread =
      op("Expand", {part(prefix + "key.turned", turned(turnedKey, rope, options.theta)), graph.list({1, heads, 1, 1})});
  const ValueId key = op("Concat", {cut(both, -1, 0, nope), spread}, {{"axis", -1}});
  const ValueId turnedQuery = part(prefix + "query.turned", turned(cut(query, -1, nope, width), rope, options.theta));
  query = op("Concat", {cut(query, -1, 0, nope), turnedQuery}, {{"axis", -1}});
  const ValueId values = part(prefix + "value.heads", cut(both, -1, nope, nope + value));
  const ValueId keys = withPast(prefix, "key", key, heads, width);
  return attended(prefix, query, keys, withPast(prefix, "value", values, heads, value), 1 / std::sqrt(double(width)));
}

void TinyDecoder::addLayer(int64_t layer) {
  const std::string prefix = std::to_string(layer) + ".";
  const ValueId rows = part(prefix + "normed", norm(prefix + "norm", stream, options.hidden));
  const ValueId attended = options.isLatent ? latentAttention(prefix, rows) : attention(prefix, rows);
  stream = part(prefix + "between", op("Add", {stream, attended}));
  const ValueId read = part(prefix + "mlp.normed", norm(prefix + "mlp.norm", stream, options.hidden));
  ValueId added = part(prefix + "mlp", options.experts ? experts(prefix, read) : mlp(prefix + "mlp.", read));
  if (options.hasShared)
    added = op("Add", {added, mlp(prefix + "shared.", read)});
  stream = part(prefix + "stream", op("Add", {stream, added}));
}

Graph TinyDecoder::build() {
  ids = graph.input("input_ids", ElementType::I64, {"batch", "sequence"});
  positions = graph.input("position_ids", ElementType::I64, {"batch", "sequence"});
  values["ids"] = ids;
  values["positions"] = positions;
  stream =
      part("embedded", op("Gather", {weight("embedding", {options.vocab, options.hidden}), part("read ids", ids)}));
  for (int64_t layer = 0; layer < options.layers; layer++)
    addLayer(layer);
  stream = part("final", norm("final.norm", stream, options.hidden));
  const ValueId logits = part("logits", linear("head", stream, options.hidden, options.vocab));
  graph.output(logits, "logits", {"batch", "sequence", options.vocab});
  for (const auto &[name, change] : changes)
    ADD_FAILURE() << "no part is called '" << name << "'";
  return graph.finish();
}

Imported::Imported(TinyDecoder tiny) : graph(tiny.build()) {
  Expected<ImportedGraph> imported = importGraph(graph);
  EXPECT_TRUE(imported) << imported.error().text();
  if (imported)
    model = std::move(*imported);
}

std::vector<double> Imported::tensor(const std::string &name) const {
  const Expected<StoredTensor> found = model.tensors ? model.tensors->find(name) : Error{name, "no model", ""};
  EXPECT_TRUE(found) << found.error().text();
  if (!found)
    return {};
  int64_t count = 1;
  for (int64_t size : found->shape)
    count *= size;
  std::vector<float> out(static_cast<size_t>(count));
  const Status read =
      model.tensors->read(name, 0, reinterpret_cast<char *>(out.data()), count * int64_t(sizeof(float)));
  EXPECT_TRUE(read) << read.error().text();
  return std::vector<double>(out.begin(), out.end());
}

std::string failure(TinyDecoder tiny) {
  const Graph graph = tiny.build();
  const Expected<ImportedGraph> imported = importGraph(graph);
  return imported ? "" : imported.error().message + " (" + imported.error().remedy + ")";
}

std::string failure(const TinyOptions &options, const std::string &part, TinyDecoder::Change change) {
  TinyDecoder tiny(options);
  tiny.changes[part] = std::move(change);
  return failure(tiny);
}

} // namespace k2c::onnx::test
