// What opening a fake bundle of several ranks says.
#ifndef K2C_UNIT_RUNTIME_FAKE_OPENBUNDLE_H
#define K2C_UNIT_RUNTIME_FAKE_OPENBUNDLE_H

#include "fake/FakeBundle.h"
#include "program/Bundle.h"
#include <string>

namespace k2c::runtime {

/// What opening `bundle` for a rank says after the folder's name.
inline std::string opening(const FakeBundle &bundle, int32_t rank = 0) {
  const Expected<Bundle> opened = Bundle::open(bundle.folder, rank);
  return opened ? "accepted" : opened.error().text().substr(bundle.folder.size() + 1);
}

inline const std::string again = "; compile the bundle again with this version of k2c";

} // namespace k2c::runtime

#endif
