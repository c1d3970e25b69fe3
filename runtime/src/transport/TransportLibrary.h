// The shared object of a transport over a library, as k2c builds it: it exports one function, which is asked for a
// version of what it offers.
#ifndef K2RT_TRANSPORT_TRANSPORTLIBRARY_H
#define K2RT_TRANSPORT_TRANSPORTLIBRARY_H

#include "base/Error.h"
#include <cstdint>
#include <string>

namespace k2c::runtime {

/// Its function `name`, null where it has none. `scope`: RTLD_LOCAL or RTLD_GLOBAL; `remedy`: for one that does not
/// open.
Expected<void *> openFunction(const std::string &file, int scope, const char *name, const char *remedy);
Error notOfThisBuild(const std::string &file);

/// What it offers; Query is the type of its function.
template <class Query>
auto openLibrary(const std::string &file, int scope, const char *name, uint32_t version, const char *remedy)
    -> Expected<decltype(Query()(0))> {
  Expected<void *> function = openFunction(file, scope, name, remedy);
  if (!function)
    return function.takeError();
  const auto query = reinterpret_cast<Query>(*function);
  const auto *library = query ? query(version) : nullptr;
  if (!library)
    return notOfThisBuild(file);
  return library;
}

} // namespace k2c::runtime

#endif
