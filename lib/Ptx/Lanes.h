//===- Lanes.h - Values of lanes as C++ types -----------------------------===//
#ifndef K2C_LIB_PTX_LANES_H
#define K2C_LIB_PTX_LANES_H

#include "Execution.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace k2c::ptx {

/// What a lane's slot holds of a T.
template <class T> using Stored = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T> inline T valueOf(Stored<T> bits) {
  if constexpr (std::is_floating_point_v<T>) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  } else {
    return static_cast<T>(bits);
  }
}

template <class T> inline Stored<T> bitsOf(T value) {
  Stored<T> bits = 0;
  if constexpr (std::is_floating_point_v<T>)
    std::memcpy(&bits, &value, sizeof value);
  else
    bits = static_cast<Stored<T>>(static_cast<std::make_unsigned_t<T>>(value)); // narrower than its slot: zeros above
  return bits;
}

/// destination = apply(sources of T), of as many as `apply` takes.
template <class R, class T, R (*apply)(T)> Outcome unary(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const auto *a = warp.source<Stored<T>>(o.sources[0]);
  auto *d = warp.destination<Stored<R>>(o.destinations[0]);
  forLanes(active, [=](int lane) { d[lane] = bitsOf<R>(apply(valueOf<T>(a[lane]))); });
  return Outcome::Next;
}

template <class R, class T, class U, R (*apply)(T, U)>
Outcome binary(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const auto *a = warp.source<Stored<T>>(o.sources[0]);
  const auto *b = warp.source<Stored<U>>(o.sources[1]);
  auto *d = warp.destination<Stored<R>>(o.destinations[0]);
  forLanes(active, [=](int lane) { d[lane] = bitsOf<R>(apply(valueOf<T>(a[lane]), valueOf<U>(b[lane]))); });
  return Outcome::Next;
}

template <class R, class T, class U, class V, R (*apply)(T, U, V)>
Outcome ternary(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const auto *a = warp.source<Stored<T>>(o.sources[0]);
  const auto *b = warp.source<Stored<U>>(o.sources[1]);
  const auto *c = warp.source<Stored<V>>(o.sources[2]);
  auto *d = warp.destination<Stored<R>>(o.destinations[0]);
  forLanes(active, [=](int lane) {
    d[lane] = bitsOf<R>(apply(valueOf<T>(a[lane]), valueOf<U>(b[lane]), valueOf<V>(c[lane])));
  });
  return Outcome::Next;
}

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_LANES_H
