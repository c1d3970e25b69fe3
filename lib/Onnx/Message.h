//===- Message.h - protobuf messages, written -----------------------------------===//
//
// The other direction of Wire.h: fields are put one behind another, and a message is a field of the one around it.
//
//   Message set;
//   set.text(OperatorSetFields::domain, "").integer(OperatorSetFields::version, 23);
//   model.message(ModelFields::opsetImport, set);
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_ONNX_MESSAGE_H
#define K2C_LIB_ONNX_MESSAGE_H

#include <cstdint>
#include <string>

namespace k2c::onnx {

/// The fields of a message, in the order in which they are added.
class Message {
public:
  Message &integer(uint32_t field, int64_t value);
  Message &real(uint32_t field, float value);
  /// Text or bytes.
  Message &text(uint32_t field, const std::string &value);
  Message &message(uint32_t field, const Message &inner) { return text(field, inner.all); }

  const std::string &bytes() const { return all; }

private:
  void tag(uint32_t field, uint32_t wireType);
  void varint(uint64_t value);

  std::string all;
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_MESSAGE_H
