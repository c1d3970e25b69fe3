//===- Error.cpp - errors as values ---------------------------------------===//

#include "k2c/Support/Error.h"

using namespace k2c;

std::string Error::text() const {
  std::string line = where.empty() ? message : where + ": " + message;
  return remedy.empty() ? line : line + "; " + remedy;
}
