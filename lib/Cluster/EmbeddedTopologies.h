//===- EmbeddedTopologies.h - models/topologies, compiled in --------------===//
#ifndef K2C_LIB_CLUSTER_EMBEDDEDTOPOLOGIES_H
#define K2C_LIB_CLUSTER_EMBEDDEDTOPOLOGIES_H

#include <vector>

namespace k2c {

/// A file of the source tree: its name without folders, and its text.
struct EmbeddedFile {
  const char *name;
  const char *text;
};

const std::vector<EmbeddedFile> &embeddedTopologies();

} // namespace k2c

#endif // K2C_LIB_CLUSTER_EMBEDDEDTOPOLOGIES_H
