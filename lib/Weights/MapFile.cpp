//===- MapFile.cpp - weights/map.json -------------------------------------===//
//
// {"format":1,"slots":[
//   {"slot":0,"family":"down","layer":3,"layout":{"kind":"panels","type":"bf16","matrices":384,"n":7168,"k":2048,
//    "parts":1},"sources":[{"name":"model.layers.3...","shape":[7168,2048],"slice":[0,0,10],"transpose":true},..]}
// "experts":384 says that each matrix of the layout is a range of its own.
// `slice` (dimension, from, to), `part` (likewise, of what the slice leaves) and `transpose` are left out where there
// is none, `stored` (the checkpoint's shape) where the tensor is read as it is. Block-scaled matrices have "scales":
// [columns, rows] of a block in the layout and "scales":{"name":"model.layers.3...._scale_inv","block":[128,128]} in
// each source. "reference":true beside the slots says that tensors are not packed.
//
//===----------------------------------------------------------------------===//
#include "Entries.h"
#include "SlotPacker.h"
#include "base/JsonText.h"
#include "k2c/Weights/BundleFiles.h"
#include "k2c/Weights/Packer.h"
#include "k2c/Weights/WeightIndex.h"

namespace k2c {

using namespace weights;
using Json = nlohmann::ordered_json;

static constexpr int64_t maxMapBytes = int64_t(1) << 60;
static constexpr size_t maxSources = 1 << 20, maxDimensions = 64;

static std::string mapPath(const std::string &bundle) { return bundle + "/weights/map.json"; }

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static Json layoutToJson(const Transform &transform, const std::string &tableFile) {
  if (const auto *rows = std::get_if<RowMajor>(&transform))
    return {{"kind", "rows"}, {"type", name(rows->type)}, {"elements", rows->elements}};
  if (const Matrix *matrix = matrixOf(transform)) {
    const bool panels = std::holds_alternative<PanelLayout>(transform);
    Json json = {{"kind", panels ? "panels" : "matrix_rows"},
                 {"type", name(matrix->type)},
                 {"matrices", matrix->count},
                 {"n", matrix->n},
                 {"k", matrix->k},
                 {"parts", matrix->parts}};
    if (matrix->isScaled())
      json["scales"] = {matrix->blockColumns, matrix->blockRows};
    return json;
  }
  return {{"kind", "table"}, {"bytes", std::get<Table>(transform).bytes}, {"file", tableFile}};
}

static std::string mapText(const WeightMap &map, const std::vector<std::string> &tableFiles) {
  std::string text = std::string("{\"format\":1,") + (map.isReference ? "\"reference\":true," : "") + "\"slots\":[\n";
  for (const WeightSlot &slot : map.slots) {
    Json json = {{"slot", slot.slot}, {"family", slot.family}, {"layer", nullptr}};
    if (slot.layer)
      json["layer"] = *slot.layer;
    json["layout"] = layoutToJson(slot.transform, tableFiles[slot.slot]);
    if (slot.experts > 0)
      json["experts"] = slot.experts;
    json["sources"] = Json::array();
    for (const SourceTensor &source : slot.sources) {
      Json entry = {{"name", source.name}, {"shape", source.shape}};
      for (const auto &[key, slice] : {std::pair{"slice", &source.slice}, std::pair{"part", &source.part}})
        if (*slice)
          entry[key] = {(*slice)->dimension, (*slice)->from, (*slice)->to};
      if (source.transpose)
        entry["transpose"] = true;
      if (source.scales)
        entry["scales"] = {{"name", source.scales->name},
                           {"block", {source.scales->blockRows, source.scales->blockColumns}}};
      if (!source.stored.empty())
        entry["stored"] = source.stored;
      json["sources"].push_back(std::move(entry));
    }
    text += jsonText(json) + (&slot == &map.slots.back() ? "\n" : ",\n");
  }
  return text + "]}\n";
}

Status writeWeightMap(const WeightMap &map, const std::string &bundle) {
  Expected<BlobStore> store = BlobStore::open(bundle + "/weights");
  if (!store)
    return store.takeError();
  std::vector<std::string> tableFiles(map.slots.size());
  for (const WeightSlot &slot : map.slots) {
    if (!std::holds_alternative<Table>(slot.transform))
      continue;
    Expected<PackedSlot> packed = packTable(slot, *store);
    if (!packed)
      return packed.takeError();
    tableFiles[slot.slot] = packed->ranges[0]->file;
  }
  if (Status status = store->sync(); !status)
    return status;
  return replaceFile(mapPath(bundle), mapText(map, tableFiles));
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static DType readType(const JsonFields &in) {
  const std::string &text = in.string("type");
  for (int index = 0; index <= int(DType::Bool); ++index)
    if (name(DType(index)) == text)
      return DType(index);
  in.fail("type", "'" + shortened(text) + "' is no element type");
}

static std::vector<int64_t> readShape(const JsonFields &in, const char *key) {
  return in.integers(key, INT64_MIN, INT64_MAX, maxDimensions);
}

/// A list of exactly `length` integers.
static std::vector<int64_t> readIntegers(const JsonFields &in, const char *key, size_t length) {
  std::vector<int64_t> numbers = in.integers(key, INT64_MIN, INT64_MAX, length);
  if (numbers.size() != length)
    in.fail(key, "is a list of " + std::to_string(numbers.size()) + ", must be a list of " + std::to_string(length));
  return numbers;
}

/// What the numbers may be is check's to say.
static Transform readLayout(const JsonFields &in) {
  const std::string &kind = in.string("kind");
  if (kind == "rows")
    return RowMajor{readType(in), in.integer("elements")};
  if (kind == "panels" || kind == "matrix_rows") {
    Matrix matrix{readType(in), in.integer("matrices"), in.integer("n"), in.integer("k"), in.integer("parts")};
    if (in.has("scales")) {
      const std::vector<int64_t> scales = readIntegers(in, "scales", 2);
      matrix.blockColumns = scales[0];
      matrix.blockRows = scales[1];
    }
    return kind == "panels" ? Transform(PanelLayout{matrix}) : Transform(RowLayout{matrix});
  }
  if (kind != "table")
    in.fail("kind", "is '" + shortened(kind) + "'; known are rows, panels, matrix_rows, table");
  Table table{in.integer("bytes"), in.string("file"), nullptr};
  if (!isBlobName(table.file))
    in.fail("file", "'" + shortened(table.file) + "' is not the name of a blob");
  return table;
}

static SourceTensor readSource(const JsonFields &in) {
  SourceTensor source;
  source.name = in.string("name");
  source.shape = readShape(in, "shape");
  for (const auto &[key, slice] : {std::pair{"slice", &source.slice}, std::pair{"part", &source.part}})
    if (in.has(key)) {
      const std::vector<int64_t> numbers = readIntegers(in, key, 3);
      *slice = TensorSlice{numbers[0], numbers[1], numbers[2]};
    }
  source.transpose = in.flag("transpose", false);
  if (in.has("scales")) {
    const JsonFields scales = in.object("scales");
    const std::vector<int64_t> block = readIntegers(scales, "block", 2);
    source.scales = SourceScales{scales.string("name")};
    source.scales->blockRows = block[0];
    source.scales->blockColumns = block[1];
  }
  if (in.has("stored"))
    source.stored = readShape(in, "stored");
  return source;
}

static WeightSlot readSlot(const JsonFields &in, int64_t expected) {
  WeightSlot slot;
  slot.slot = in.integer("slot");
  slot.family = in.string("family");
  if (in.has("layer"))
    slot.layer = in.integer("layer");
  slot.experts = in.integer("experts", INT64_MIN, INT64_MAX, 0);
  if (slot.slot != expected)
    in.fail("slot", "is " + std::to_string(slot.slot) + " where " + std::to_string(expected) + " comes next");
  slot.transform = readLayout(in.object("layout"));
  for (const JsonFields &source : in.objects("sources", maxSources))
    slot.sources.push_back(readSource(source));
  orThrow(check(slot));
  return slot;
}

Expected<WeightMap> readWeightMap(const std::string &bundle) {
  Expected<WeightMap> map = readListFile(mapPath(bundle), [](const JsonFields &root) {
    return WeightMap{entriesOf(root, "slots", readSlot), root.flag("reference", false)};
  });
  if (!map)
    return map;
  int64_t bytes = 0; // check() bounds each slot far below maxMapBytes
  for (const WeightSlot &slot : map->slots)
    if (bytes += rangeBytes(slot); bytes > maxMapBytes)
      return Error{mapPath(bundle),
                   "the blobs up to slot " + std::to_string(slot.slot) + " have " + std::to_string(bytes) +
                       " bytes, more than the " + std::to_string(maxMapBytes) + " accepted",
                   "compile the bundle again"};
  return map;
}

} // namespace k2c
