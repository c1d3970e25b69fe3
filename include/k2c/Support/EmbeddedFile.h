//===- EmbeddedFile.h - Files of the source tree, compiled in -------------===//
#ifndef K2C_SUPPORT_EMBEDDEDFILE_H
#define K2C_SUPPORT_EMBEDDEDFILE_H

#include <vector>

namespace k2c {

/// Its name without folders, and its text; cmake/K2CEmbed.cmake makes lists of them.
struct EmbeddedFile {
  const char *name;
  const char *text;
};

} // namespace k2c

#endif // K2C_SUPPORT_EMBEDDEDFILE_H
