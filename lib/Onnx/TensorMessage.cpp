//===- TensorMessage.cpp - TensorProto to Tensor ------------------------------===//
//
// A tensor says its elements in one of several ways: raw_data and the packed fields of fixed width are bytes as they
// are wanted, so their place in the file is kept and they are skipped; integers of the int32_data family are varints
// and become bytes here; external data is a place in another file. Exactly one is there, and it has as many elements as
// type and shape ask for. Which type the integers are of may stand behind them, so they wait until the message ends.
//
//===----------------------------------------------------------------------===//
#include "Messages.h"
#include "base/Utf8.h"
#include <algorithm>
#include <limits>

namespace k2c::onnx {

namespace {

constexpr size_t maxRank = 64;

/// The range of values that a stored integer may have.
struct Range {
  int64_t least, most;
};

class TensorReader {
public:
  TensorReader(Wire &wire, ExternalData &external) : wire(wire), external(external) {}

  Tensor read() {
    while (wire.next())
      readField();
    if (!wire.failed() && finish())
      return std::move(tensor);
    return {};
  }

private:
  void readField() {
    switch (wire.field()) {
    case TensorFields::shape:
      return wire.integers([&](int64_t size) {
        if (wire.take(sizeof(size)))
          tensor.shape.push_back(size);
      });
    case TensorFields::type:
      type = wire.integer();
      return;
    case TensorFields::name:
      tensor.name = wire.text();
      return;
    case TensorFields::rawData:
    case TensorFields::floatData:
    case TensorFields::doubleData:
      return readPlace();
    case TensorFields::int32Data:
    case TensorFields::int64Data:
    case TensorFields::uint64Data:
      return readIntegers();
    case TensorFields::segment:
      chunked = true;
      return wire.skip();
    case TensorFields::externalData:
      return wire.message("StringStringEntryProto", [&] { readEntry(); });
    case TensorFields::location:
      isExternal = wire.integer() == TensorFields::external;
      return;
    default:
      return wire.skip();
    }
  }

  void readPlace() {
    const Place here = wire.place();
    if (here.bytes == 0 && wire.field() != TensorFields::rawData)
      return;
    note(wire.field());
    place = here;
  }

  void readIntegers() {
    wire.integers([&](int64_t value) {
      if (!wire.take(sizeof(value)))
        return;
      note(wire.field());
      integers.push_back(value);
    });
  }

  /// Data comes in one field, integers of which may come one by one.
  void note(uint32_t field) {
    const bool again = field == dataField && !integers.empty();
    if (dataField != 0 && !again)
      twice = true;
    dataField = field;
  }

  void readEntry() {
    std::string key, value;
    while (wire.next())
      switch (wire.field()) {
      case EntryFields::key:
        key = wire.text();
        break;
      case EntryFields::value:
        value = wire.text();
        break;
      default:
        wire.skip();
      }
    if (key == "location")
      entry.location = std::move(value);
    else if (key == "offset")
      entry.offset = std::move(value);
    else if (key == "length")
      entry.length = std::move(value);
  }

  bool fail(std::string message, std::string remedy = damagedModel) {
    wire.fail(Error{wire.path(), "tensor '" + shortened(tensor.name) + "': " + std::move(message), std::move(remedy)});
    return false;
  }

  bool finish() {
    const bool isType = type > 0 && type <= std::numeric_limits<int32_t>::max();
    if (!isType)
      return fail("element type " + std::to_string(type) + " is none of ONNX");
    tensor.type = static_cast<ElementType>(type);
    if (!checkShape())
      return false;
    // What has a type that is not read is refused where it is used.
    if (bitWidth(tensor.type) == 0)
      return true;
    if (chunked)
      return fail("is stored in chunks, which are not read", "export the model again with whole tensors");
    if (twice || (isExternal && dataField != 0))
      return fail("has its elements twice, or in several pieces");
    if (isExternal) {
      if (Status placed = external.place(tensor, entry); !placed) {
        wire.fail(placed.takeError());
        return false;
      }
      return true;
    }
    return finishOwn();
  }

  bool checkShape() {
    if (tensor.shape.size() > maxRank)
      return fail("has " + std::to_string(tensor.shape.size()) + " dimensions, at most " + std::to_string(maxRank) +
                  " are read");
    int64_t bits = std::max<int64_t>(bitWidth(tensor.type), 8);
    for (int64_t size : tensor.shape) {
      if (size < 0)
        return fail("has a dimension of " + std::to_string(size));
      // An empty dimension hides none of the others: whoever multiplies some of them stays below 2^63.
      if (__builtin_mul_overflow(bits, std::max<int64_t>(size, 1), &bits))
        return fail("its shape and type ask for more than 2^63 bits");
    }
    return true;
  }

  bool finishOwn() {
    const bool floats = dataField == TensorFields::floatData, doubles = dataField == TensorFields::doubleData;
    if ((floats && tensor.type != ElementType::F32) || (doubles && tensor.type != ElementType::F64))
      return fail("is " + name(tensor.type) + ", but its elements are " + (floats ? "float_data" : "double_data"));
    if (!integers.empty())
      return finishIntegers();
    if (place.bytes != tensor.byteSize())
      return fail("has " + std::to_string(place.bytes) + " bytes, its shape and type ask for " +
                  std::to_string(tensor.byteSize()));
    tensor.file = 0;
    tensor.offset = place.offset;
    return true;
  }

  /// What type may stand in which field, and the values that it has there.
  std::optional<Range> rangeOfIntegers() const {
    const ElementType t = tensor.type;
    if (dataField == TensorFields::int64Data)
      return t == ElementType::I64 ? std::optional<Range>({INT64_MIN, INT64_MAX}) : std::nullopt;
    if (dataField == TensorFields::uint64Data) {
      if (t == ElementType::U64)
        return Range{INT64_MIN, INT64_MAX};
      return t == ElementType::U32 ? std::optional<Range>({0, UINT32_MAX}) : std::nullopt;
    }
    switch (t) {
    case ElementType::Bool:
      return Range{0, 1};
    case ElementType::I8:
      return Range{INT8_MIN, INT8_MAX};
    case ElementType::I16:
      return Range{INT16_MIN, INT16_MAX};
    case ElementType::I32:
      return Range{INT32_MIN, INT32_MAX};
    case ElementType::U16:
    case ElementType::F16:
    case ElementType::BF16:
      return Range{0, UINT16_MAX};
    case ElementType::U8:
    case ElementType::F8E4M3:
    case ElementType::F8E4M3Z:
    case ElementType::F8E5M2:
    case ElementType::F8E5M2Z:
    case ElementType::U4:
    case ElementType::I4:
      return Range{0, UINT8_MAX}; // of 4 bits, two elements
    default:
      return std::nullopt;
    }
  }

  bool finishIntegers() {
    const std::optional<Range> range = rangeOfIntegers();
    if (!range)
      return fail("is " + name(tensor.type) + ", which is not stored in field " + std::to_string(dataField));
    const int64_t width = std::max<int64_t>(bitWidth(tensor.type) / 8, 1);
    const int64_t count = tensor.byteSize() / width;
    if (static_cast<int64_t>(integers.size()) != count)
      return fail("has " + std::to_string(integers.size()) + " stored numbers, its shape and type ask for " +
                  std::to_string(count));
    auto bytes = std::make_shared<std::string>();
    bytes->reserve(static_cast<size_t>(tensor.byteSize()));
    for (int64_t value : integers) {
      if (value < range->least || value > range->most)
        return fail("the stored number " + std::to_string(value) + " is no " + name(tensor.type));
      for (int64_t i = 0; i < width; ++i)
        bytes->push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
    }
    tensor.bytes = std::move(bytes);
    return true;
  }

  Wire &wire;
  ExternalData &external;
  Tensor tensor;
  int64_t type = 0;
  uint32_t dataField = 0; ///< 0: no data yet
  Place place;
  std::vector<int64_t> integers;
  ExternalEntry entry;
  bool chunked = false, twice = false, isExternal = false;
};

} // namespace

Tensor readTensorMessage(Wire &wire, ExternalData &external) { return TensorReader(wire, external).read(); }

} // namespace k2c::onnx
