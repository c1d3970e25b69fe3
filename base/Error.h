// Errors as values: where it went wrong, what is wrong (with both numbers), what to do.
//
// A function that can fail returns Status or Expected<T>; exceptions of parsers, and of readers of JSON (JsonFields.h),
// end in the function that calls them.
#ifndef K2C_BASE_ERROR_H
#define K2C_BASE_ERROR_H

#include "k2rt/k2rt.h"
#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace k2c {

/// A failure at a place: a file, a file and a line or a JSON path, an argument, a tensor, a kernel. `remedy` may be
/// empty. `code` is what the C API of the runtime reports.
struct Error {
  Error() = default;
  Error(std::string where, std::string message, std::string remedy)
      : where(std::move(where)), message(std::move(message)), remedy(std::move(remedy)) {}
  Error(k2rt_code code, std::string where, std::string message, std::string remedy)
      : code(code), where(std::move(where)), message(std::move(message)), remedy(std::move(remedy)) {}

  k2rt_code code = K2RT_INVALID_ARGUMENT;
  std::string where;
  std::string message;
  std::string remedy;

  /// One line: "where: message; remedy"; bytes of a file quoted in a part are made printable (base/Utf8.h).
  std::string text() const;
};

/// The same for a refused system call: appends the system's text of `errorNumber`.
Error systemError(std::string where, const std::string &what, int errorNumber);

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

/// A value or an Error. Reading the value of a failed Expected is a programming error.
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

} // namespace k2c

#endif
