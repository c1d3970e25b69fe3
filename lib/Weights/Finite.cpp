//===- Finite.cpp - Weights are numbers -----------------------------------===//
#include "k2c/Weights/Finite.h"

#include "StoredElements.h"
#include "base/Utf8.h"

namespace k2c {

/// Every bit of the exponent set: NaN or infinity.
template <class Word> static std::optional<int64_t> firstWith(Word exponent, const char *elements, int64_t count) {
  return weights::firstWhere<Word>(elements, count, [=](Word word) { return (word & exponent) == exponent; });
}

/// Index of the first of `count` elements that is NaN or infinite.
static std::optional<int64_t> firstNonFinite(const char *elements, int64_t count, DType type) {
  switch (type) {
  case DType::F64:
    return firstWith<uint64_t>(0x7ff0000000000000, elements, count);
  case DType::F32:
    return firstWith<uint32_t>(0x7f800000, elements, count);
  case DType::BF16:
    return firstWith<uint16_t>(0x7f80, elements, count);
  case DType::F16:
    return firstWith<uint16_t>(0x7c00, elements, count);
  case DType::F8E5M2:
    return firstWith<uint8_t>(0x7c, elements, count);
  case DType::F8E4M3: // no infinities; all bits but the sign set is NaN
    return firstWith<uint8_t>(0x7f, elements, count);
  default:
    return std::nullopt;
  }
}

Status readFinite(const TensorSource &tensors, const std::string &name, DType type, int64_t first, int64_t count,
                  char *out) {
  const int64_t width = byteWidth(type);
  if (Status status = tensors.read(name, first * width, out, count * width); !status)
    return status;
  if (const std::optional<int64_t> at = firstNonFinite(out, count, type))
    return Error{"tensor '" + shortened(name) + "'", "element " + std::to_string(first + *at) + " is NaN or infinite",
                 "the checkpoint is damaged: fetch it again"};
  return {};
}

} // namespace k2c
