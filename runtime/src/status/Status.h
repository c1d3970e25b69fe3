// How calls inside the runtime fail: a status with a place, a message and a remedy; no exception crosses a folder.
#ifndef K2RT_STATUS_STATUS_H
#define K2RT_STATUS_STATUS_H

#include "k2rt/k2rt.h"
#include <string>
#include <utility>
#include <variant>

namespace k2rt {

/// The outcome of a call without a value. Default: success.
struct Status {
  k2rt_code code = K2RT_OK;
  std::string place;   ///< file and field, flag, kernel or argument
  std::string message; ///< what is wrong, with both numbers where two disagree
  std::string remedy;  ///< what the user can do; may be empty

  bool ok() const { return code == K2RT_OK; }
  /// One line: "place: message; remedy".
  std::string text() const;
};

/// A failure: never call it with K2RT_OK.
Status failure(k2rt_code code, std::string place, std::string message, std::string remedy = "");

/// The same for the last failed system call: appends the text of `errorNumber`.
Status systemFailure(std::string place, std::string what, int errorNumber);

/// Copies `from` into the users' struct, cutting what is too long. Null `to` is allowed. Returns the code.
k2rt_code exportStatus(const Status &from, k2rt_status *to);

/// A value or the reason why there is none.
template <class T> class Result {
public:
  Result(T value) : content(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : content(std::in_place_index<1>, std::move(status)) {}

  explicit operator bool() const { return content.index() == 0; }
  T &operator*() { return std::get<0>(content); }
  const T &operator*() const { return std::get<0>(content); }
  T *operator->() { return &std::get<0>(content); }
  const T *operator->() const { return &std::get<0>(content); }
  /// The failure; only when there is no value.
  const Status &status() const { return std::get<1>(content); }

private:
  std::variant<T, Status> content;
};

} // namespace k2rt

#endif
