//===- MapFile.cpp - weights/map.json -------------------------------------===//
//
// {"format":1,"slots":[
//   {"slot":0,"family":"down","layer":3,"layout":{"kind":"panels","type":"bf16","matrices":384,"n":7168,"k":2048,
//    "parts":1},"sources":[{"name":"model.layers.3...","shape":[7168,2048],"slice":[0,0,10],"transpose":true},..]}
// "experts":384 says that each matrix of the layout is a range of its own.
// `slice` (dimension, from, to) and `transpose` are left out where there is none, `stored` (the checkpoint's shape)
// where the tensor is read as it is. Block-scaled matrices have "scales":
// [columns, rows] of a block in the layout and "scales":{"name":"model.layers.3...._scale_inv","block":[128,128]} in
// each source.
//
//===----------------------------------------------------------------------===//
#include "ObjectReader.h"
#include "SlotPacker.h"
#include "base/JsonText.h"
#include "k2c/Weights/Packer.h"
#include "k2c/Weights/WeightIndex.h"

namespace k2c {

using namespace weights;
using Json = nlohmann::ordered_json;

static constexpr int64_t maxMapBytes = int64_t(1) << 60;

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
  std::string text = "{\"format\":1,\"slots\":[\n";
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
      if (source.slice)
        entry["slice"] = {source.slice->dimension, source.slice->from, source.slice->to};
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
    tableFiles[slot.slot] = packed->ranges[0].file;
  }
  if (Status status = store->sync(); !status)
    return status;
  return replaceFile(mapPath(bundle), mapText(map, tableFiles));
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static DType readType(ObjectReader &in) {
  std::string text = in.string("type");
  for (int index = 0; index <= int(DType::Bool); ++index)
    if (name(DType(index)) == text)
      return DType(index);
  in.fail("type", "'" + shortened(text) + "' is no element type");
  return DType::F32;
}

/// An array of integers; `length` of them when not negative.
static std::vector<int64_t> readIntegers(ObjectReader &in, const char *key, int64_t length) {
  std::vector<int64_t> numbers;
  const nlohmann::json &array = in.array(key);
  for (const nlohmann::json &entry : array)
    if (entry.is_number_integer())
      numbers.push_back(entry.get<int64_t>());
  if (numbers.size() != array.size() || (length >= 0 && int64_t(numbers.size()) != length))
    in.fail(key, "must be a list of " + (length < 0 ? "" : std::to_string(length) + " ") + "integers");
  return numbers;
}

static Expected<Transform> readLayout(ObjectReader in) {
  std::string kind = in.string("kind");
  Transform transform;
  if (kind == "rows") {
    transform = RowMajor{readType(in), in.integer("elements")};
  } else if (kind == "panels" || kind == "matrix_rows") {
    Matrix matrix{readType(in), in.integer("matrices"), in.integer("n"), in.integer("k"), in.integer("parts")};
    if (in.has("scales"))
      if (std::vector<int64_t> scales = readIntegers(in, "scales", 2); in) {
        matrix.blockColumns = scales[0];
        matrix.blockRows = scales[1];
      }
    if (kind == "panels")
      transform = PanelLayout{matrix};
    else
      transform = RowLayout{matrix};
  } else if (kind == "table") {
    Table table{in.integer("bytes"), in.string("file"), nullptr};
    if (!isBlobName(table.file))
      in.fail("file", "'" + shortened(table.file) + "' is not the name of a blob");
    transform = std::move(table);
  } else {
    in.fail("kind", "is '" + shortened(kind) + "'; known are rows, panels, matrix_rows, table");
  }
  if (!in)
    return in.takeError();
  return transform;
}

static Expected<SourceTensor> readSource(ObjectReader in) {
  SourceTensor source;
  source.name = in.string("name");
  source.shape = readIntegers(in, "shape", -1);
  if (in.has("slice"))
    if (std::vector<int64_t> slice = readIntegers(in, "slice", 3); in)
      source.slice = TensorSlice{slice[0], slice[1], slice[2]};
  source.transpose = in.has("transpose") && in.boolean("transpose");
  if (in.has("scales")) {
    ObjectReader scales = in.child("scales");
    source.scales = SourceScales{scales.string("name")};
    if (std::vector<int64_t> block = readIntegers(scales, "block", 2); scales) {
      source.scales->blockRows = block[0];
      source.scales->blockColumns = block[1];
    }
    if (!scales)
      return scales.takeError();
  }
  if (in.has("stored"))
    source.stored = readIntegers(in, "stored", -1);
  if (!in)
    return in.takeError();
  return source;
}

static Expected<WeightSlot> readSlot(ObjectReader in, int64_t expected) {
  WeightSlot slot;
  slot.slot = in.integer("slot");
  slot.family = in.string("family");
  slot.layer = in.integerOrNull("layer");
  slot.experts = in.has("experts") ? in.integer("experts") : 0;
  size_t sources = in.array("sources").size();
  if (slot.slot != expected)
    in.fail("slot", "is " + std::to_string(slot.slot) + " where " + std::to_string(expected) + " comes next");
  if (!in)
    return in.takeError();
  Expected<Transform> transform = readLayout(in.child("layout"));
  if (!transform)
    return transform.takeError();
  slot.transform = std::move(*transform);
  for (size_t i = 0; i < sources; ++i) {
    Expected<SourceTensor> source = readSource(in.child("sources", i));
    if (!source)
      return source.takeError();
    slot.sources.push_back(std::move(*source));
  }
  if (Status status = check(slot); !status)
    return status.takeError();
  return slot;
}

Expected<WeightMap> readWeightMap(const std::string &bundle) {
  Expected<std::vector<WeightSlot>> slots = readEntries(mapPath(bundle), "slots", readSlot);
  if (!slots)
    return slots.takeError();
  int64_t bytes = 0; // check() bounds each slot far below maxMapBytes
  for (const WeightSlot &slot : *slots)
    if (bytes += rangeBytes(slot); bytes > maxMapBytes)
      return Error{mapPath(bundle),
                   "the blobs up to slot " + std::to_string(slot.slot) + " have " + std::to_string(bytes) +
                       " bytes, more than the " + std::to_string(maxMapBytes) + " accepted",
                   "compile the bundle again"};
  return WeightMap{std::move(*slots)};
}

} // namespace k2c
