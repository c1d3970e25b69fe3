//===- Error.h - errors as values -----------------------------------------===//
//
// The MLIR-free libraries report a user's mistake as a value: where it is, what
// is wrong (with the numbers), what to do. Exceptions of third-party parsers
// end inside the library that calls them.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_SUPPORT_ERROR_H
#define K2C_SUPPORT_ERROR_H

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace k2c {

/// A mistake at a place. `where` is "file", "file:line:column" or a tensor
/// name; `remedy` may be empty.
struct Error {
  std::string where;
  std::string message;
  std::string remedy;

  /// One line: "where: message; remedy".
  std::string text() const;
};

/// A value or an Error. Reading the value of a failed Expected is a programming
/// error.
template <class T> class [[nodiscard]] Expected {
public:
  Expected(T value) : state(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : state(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state.index() == 0; }

  T &operator*() & { return value(); }
  const T &operator*() const & { return value(); }
  T &&operator*() && { return std::move(value()); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &value(); }

  const Error &error() const {
    assert(!*this && "no error here");
    return *std::get_if<1>(&state);
  }
  Error takeError() {
    assert(!*this && "no error here");
    return std::move(*std::get_if<1>(&state));
  }

private:
  T &value() {
    assert(*this && "unchecked error");
    return *std::get_if<0>(&state);
  }
  const T &value() const {
    assert(*this && "unchecked error");
    return *std::get_if<0>(&state);
  }

  std::variant<T, Error> state;
};

/// Success or an Error.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : failure(std::move(error)) {}
  static Status success() { return Status(); }

  explicit operator bool() const { return !failure; }
  const Error &error() const {
    assert(failure && "no error here");
    return *failure;
  }
  Error takeError() {
    assert(failure && "no error here");
    return std::move(*failure);
  }

private:
  std::optional<Error> failure;
};

} // namespace k2c

#endif // K2C_SUPPORT_ERROR_H
