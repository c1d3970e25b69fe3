#include "transport/TransportLibrary.h"
#include "base/Utf8.h"
#include <dlfcn.h>

namespace k2c::runtime {

Expected<void *> openFunction(const std::string &file, int scope, const char *name, const char *remedy) {
  void *opened = ::dlopen(file.c_str(), RTLD_NOW | scope);
  if (!opened)
    return Error{K2RT_UNSUPPORTED, file, std::string("cannot be opened: ") + shortened(::dlerror(), maxQuoted), remedy};
  return ::dlsym(opened, name);
}

Error notOfThisBuild(const std::string &file) {
  return {K2RT_UNSUPPORTED, file, "is not of this build of k2c", "take both from one build"};
}

} // namespace k2c::runtime
