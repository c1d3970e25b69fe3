//===- Message.cpp - protobuf messages, written ---------------------------------===//
#include "Message.h"

#include <google/protobuf/io/coded_stream.h>

namespace k2c::onnx {

using google::protobuf::io::CodedOutputStream;

namespace {
constexpr uint32_t varintType = 0, lengthDelimited = 2, fixed32Type = 5;
} // namespace

void Message::varint(uint64_t value) {
  uint8_t bytes[10];
  const uint8_t *const end = CodedOutputStream::WriteVarint64ToArray(value, bytes);
  all.append(reinterpret_cast<const char *>(bytes), size_t(end - bytes));
}

void Message::tag(uint32_t field, uint32_t wireType) { varint(uint64_t(field) << 3 | wireType); }

Message &Message::integer(uint32_t field, int64_t value) {
  tag(field, varintType);
  varint(uint64_t(value));
  return *this;
}

Message &Message::real(uint32_t field, float value) {
  tag(field, fixed32Type);
  all.append(reinterpret_cast<const char *>(&value), sizeof value);
  return *this;
}

Message &Message::text(uint32_t field, const std::string &value) {
  tag(field, lengthDelimited);
  varint(value.size());
  all += value;
  return *this;
}

} // namespace k2c::onnx
