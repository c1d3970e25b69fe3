//===- Wire.h - fields of protobuf messages -----------------------------------===//
//
// A message is a sequence of fields: a tag (number and wire type), then a varint, 4 or 8 bytes, or a length and bytes,
// which may be a message themselves. Which number means what is in Fields.h; the readers of messages are loops:
//
//   while (wire.next())
//     switch (wire.field()) {
//     case NodeFields::name: node.name = wire.text(); break;
//     default: wire.skip();
//     }
//
// The first failure ends all reading: `next` is false from then on, values are empty, and `status` says why. A length
// is compared with what is left of its message, and that with the file, before anything is allocated for it.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_ONNX_WIRE_H
#define K2C_LIB_ONNX_WIRE_H

#include "Budget.h"
#include "base/Error.h"
#include <cstdint>
#include <google/protobuf/io/coded_stream.h>
#include <optional>
#include <string>

namespace k2c::onnx {

/// Bytes [offset, offset + bytes) of a file.
struct Place {
  int64_t offset = 0;
  int64_t bytes = 0;
};

/// Reads the fields of one file in their order.
class Wire {
public:
  /// The most bytes that protobuf reads: it counts them in an int.
  static constexpr int64_t maxBytes = INT32_MAX;

  /// Of a `stream` of `bytes` bytes, at most `maxBytes`. `path` is for messages.
  Wire(google::protobuf::io::ZeroCopyInputStream &stream, int64_t bytes, std::string path, Budget &budget);

  /// Goes to the next field of the message; its value must be read or skipped before the next call. False: the message
  /// ends, or reading has failed.
  bool next();
  /// The number of the field.
  uint32_t field() const { return tag >> 3; }

  /// The value of a field of a scalar type; of one that has another wire type, a failure.
  int64_t integer();
  float real();
  /// Text that must be UTF-8; valid until the next call.
  const std::string &text();
  /// The same for any bytes.
  const std::string &bytes();
  /// Skips the bytes and says where they lie.
  Place place();
  void skip();

  /// Reads an embedded message: `read` is called within it. `name` is for messages.
  template <class Read> void message(const char *name, const Read &read) {
    const std::optional<Outer> outer = enter(name);
    if (!outer)
      return;
    read();
    leave(*outer);
  }

  /// Calls add(int64_t) for each element of a repeated integer, whether packed or not.
  template <class Add> void integers(const Add &add) {
    if ((tag & 7) != lengthDelimited) {
      add(integer());
      return;
    }
    message("a packed field", [&] {
      while (elementsLeft())
        add(varint());
    });
  }
  /// The same for a repeated float.
  template <class Add> void reals(const Add &add) {
    if ((tag & 7) != lengthDelimited) {
      add(real());
      return;
    }
    message("a packed field", [&] {
      while (elementsLeft())
        add(fixed32());
    });
  }

  /// Counts memory of what is read. False: it exceeds the budget, and reading has failed.
  bool take(int64_t bytes);

  /// Fails because of what the file says, which is well-formed. The first failure is kept.
  void fail(Error error);
  bool failed() const { return failure.has_value(); }
  Status status() const { return failure ? Status(*failure) : Status(); }
  const std::string &path() const { return where; }

private:
  enum WireType : uint32_t { varintType = 0, fixed64Type = 1, lengthDelimited = 2, fixed32Type = 5 };
  struct Outer {
    google::protobuf::io::CodedInputStream::Limit limit;
    const char *name;
  };

  bool expect(WireType type);
  bool elementsLeft() { return !failure && stream.BytesUntilLimit() > 0; }
  int64_t varint();
  float fixed32();
  /// The length of what follows, which lies inside the message; none: a failure.
  std::optional<int> length();
  std::optional<Outer> enter(const char *name);
  void leave(const Outer &outer);
  void advance(int count);
  /// Fails because the bytes are no such message.
  void damaged(const std::string &message);
  void ended();

  google::protobuf::io::CodedInputStream stream;
  std::string where;
  Budget &budget;
  std::optional<Error> failure;
  std::string buffer;
  const char *current = "ModelProto";
  uint32_t tag = 0;
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_WIRE_H
