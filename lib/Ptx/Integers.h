//===- Integers.h - Handlers by integer type ------------------------------===//
#ifndef K2C_LIB_PTX_INTEGERS_H
#define K2C_LIB_PTX_INTEGERS_H

#include "Decoder.h"
#include "Lanes.h"

namespace k2c::ptx {

/// Handlers of one operation; null where it has no form for a type.
struct Handlers {
  Handler u16, u32, u64, s16, s32, s64;

  Handler of(Type type) const {
    const bool isSigned = kindOf(type) == TypeKind::Signed;
    switch (bitsOf(type)) {
    case 16:
      return isSigned ? s16 : u16;
    case 32:
      return isSigned ? s32 : u32;
    case 64:
      return isSigned ? s64 : u64;
    default:
      return nullptr;
    }
  }
};

/// Handlers of `function`, a template over its type: of one source, of two, and of three.
#define K2C_PTX_UNARY(Result, function)                                                                                \
  Handlers {                                                                                                           \
    unary<K2C_PTX_RESULT(Result, uint16_t), uint16_t, function<uint16_t>>,                                             \
        unary<K2C_PTX_RESULT(Result, uint32_t), uint32_t, function<uint32_t>>,                                         \
        unary<K2C_PTX_RESULT(Result, uint64_t), uint64_t, function<uint64_t>>,                                         \
        unary<K2C_PTX_RESULT(Result, int16_t), int16_t, function<int16_t>>,                                            \
        unary<K2C_PTX_RESULT(Result, int32_t), int32_t, function<int32_t>>,                                            \
        unary<K2C_PTX_RESULT(Result, int64_t), int64_t, function<int64_t>>                                             \
  }
#define K2C_PTX_RESULT(Result, T) typename Result<T>::type
template <class T> struct Same {
  using type = T;
};
template <class T> struct Word {
  using type = uint32_t;
};
#define K2C_PTX_BINARY(function)                                                                                       \
  Handlers {                                                                                                           \
    binary<uint16_t, uint16_t, uint16_t, function<uint16_t>>,                                                          \
        binary<uint32_t, uint32_t, uint32_t, function<uint32_t>>,                                                      \
        binary<uint64_t, uint64_t, uint64_t, function<uint64_t>>,                                                      \
        binary<int16_t, int16_t, int16_t, function<int16_t>>, binary<int32_t, int32_t, int32_t, function<int32_t>>,    \
        binary<int64_t, int64_t, int64_t, function<int64_t>>                                                           \
  }
#define K2C_PTX_TERNARY(function)                                                                                      \
  Handlers {                                                                                                           \
    ternary<uint16_t, uint16_t, uint16_t, uint16_t, function<uint16_t>>,                                               \
        ternary<uint32_t, uint32_t, uint32_t, uint32_t, function<uint32_t>>,                                           \
        ternary<uint64_t, uint64_t, uint64_t, uint64_t, function<uint64_t>>,                                           \
        ternary<int16_t, int16_t, int16_t, int16_t, function<int16_t>>,                                                \
        ternary<int32_t, int32_t, int32_t, int32_t, function<int32_t>>,                                                \
        ternary<int64_t, int64_t, int64_t, int64_t, function<int64_t>>                                                 \
  }

inline bool isInteger(Type type) { return kindOf(type) == TypeKind::Unsigned || kindOf(type) == TypeKind::Signed; }
inline bool isBits(Type type) { return kindOf(type) == TypeKind::Bits; }

/// An instruction with operands destination, sources, of types {destination, sources..}; null: it is refused.
void decodeForm(Decoder &decoder, Handler handler, std::initializer_list<Type> types);

// Forms for integers of opcodes that floats have, too.
void decodeIntegerSum(Decoder &decoder, bool isDifference);
void decodeIntegerProduct(Decoder &decoder, bool isAdded);
void decodeIntegerOf(Decoder &decoder, std::string_view opcode);

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_INTEGERS_H
