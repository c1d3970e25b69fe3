//===- Wire.cpp - fields of protobuf messages ---------------------------------===//
//
// protobuf's stream knows limits: a message is a limit pushed on the one around it, and the outermost is the file. Its
// own readers return false at a limit or at the end of the file; a length is compared with the limit here first, as
// PushLimit would cut it silently and ReadString would allocate it.
//
//===----------------------------------------------------------------------===//
#include "Wire.h"
#include "base/FormatBytes.h"
#include "base/Utf8.h"
#include <cstring>

namespace k2c::onnx {

namespace {

bool isUtf8(const std::string &text) {
  size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Step step = utf8Step(text, at);
    if (step.kind != Utf8Step::character)
      return false;
    at += step.length;
  }
  return true;
}

} // namespace

Wire::Wire(google::protobuf::io::ZeroCopyInputStream &stream, int64_t bytes, std::string path, Budget &budget)
    : stream(&stream), where(std::move(path)), budget(budget) {
  this->stream.PushLimit(static_cast<int>(bytes));
}

void Wire::fail(Error error) {
  if (!failure)
    failure = std::move(error);
}

void Wire::damaged(const std::string &message) {
  fail(Error{where, "byte " + std::to_string(stream.CurrentPosition()) + ", in " + current + ": " + message,
             "the file is damaged or no ONNX model: export or copy it again"});
}

void Wire::ended() { damaged("the message or the file ends inside a value"); }

bool Wire::take(int64_t bytes) {
  if (failure)
    return false;
  if (budget.take(bytes))
    return true;
  fail(Error{where, "the graph without its weights takes more than " + formatBytes(Budget::limitBytes),
             "store weights in raw_data or as external data, and export fewer nodes"});
  return false;
}

bool Wire::next() {
  if (failure || stream.BytesUntilLimit() == 0)
    return false;
  tag = stream.ReadTagNoLastTag();
  if (tag >> 3 == 0)
    damaged("a field without a number, or the file ends");
  return !failure;
}

bool Wire::expect(WireType type) {
  if (!failure && (tag & 7) != type)
    damaged("field " + std::to_string(field()) + " has wire type " + std::to_string(tag & 7) + ", it must be " +
            std::to_string(type));
  return !failure;
}

int64_t Wire::varint() {
  uint64_t value = 0;
  if (failure)
    return 0;
  if (!stream.ReadVarint64(&value)) {
    damaged("a number of more than 10 bytes, or one that its message cuts");
    return 0;
  }
  return static_cast<int64_t>(value);
}

int64_t Wire::integer() { return expect(varintType) ? varint() : 0; }

float Wire::fixed32() {
  uint32_t bits = 0;
  float value = 0;
  if (!failure && !stream.ReadLittleEndian32(&bits))
    ended();
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float Wire::real() { return expect(fixed32Type) ? fixed32() : 0; }

std::optional<int> Wire::length() {
  if (!expect(lengthDelimited))
    return std::nullopt;
  const int64_t count = varint();
  const int64_t left = stream.BytesUntilLimit();
  if (failure)
    return std::nullopt;
  if (count < 0 || count > left) {
    damaged("field " + std::to_string(field()) + " has " + std::to_string(static_cast<uint64_t>(count)) +
            " bytes, its message has " + std::to_string(left) + " left");
    return std::nullopt;
  }
  return static_cast<int>(count);
}

const std::string &Wire::bytes() {
  buffer.clear();
  const std::optional<int> count = length();
  if (count && take(*count) && !stream.ReadString(&buffer, *count))
    ended();
  return buffer;
}

const std::string &Wire::text() {
  if (!isUtf8(bytes())) {
    damaged("'" + shortened(buffer) + "' is not UTF-8");
    buffer.clear();
  }
  return buffer;
}

Place Wire::place() {
  const std::optional<int> count = length();
  if (!count)
    return {};
  const Place place{stream.CurrentPosition(), *count};
  advance(*count);
  return place;
}

void Wire::advance(int count) {
  if (!stream.Skip(count))
    ended();
}

void Wire::skip() {
  switch (tag & 7) {
  case varintType:
    varint();
    return;
  case fixed64Type:
    return advance(8);
  case lengthDelimited:
    place();
    return;
  case fixed32Type:
    return advance(4);
  default:
    damaged("field " + std::to_string(field()) + " has wire type " + std::to_string(tag & 7) +
            ", which no message of ONNX has");
  }
}

std::optional<Wire::Outer> Wire::enter(const char *name) {
  const std::optional<int> count = length();
  if (!count)
    return std::nullopt;
  const Outer outer{stream.PushLimit(*count), current};
  current = name;
  return outer;
}

void Wire::leave(const Outer &outer) {
  stream.PopLimit(outer.limit);
  current = outer.name;
}

} // namespace k2c::onnx
