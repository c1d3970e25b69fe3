//===- EmbeddedTopologies.h - models/topologies, compiled in --------------===//
#ifndef K2C_LIB_CLUSTER_EMBEDDEDTOPOLOGIES_H
#define K2C_LIB_CLUSTER_EMBEDDEDTOPOLOGIES_H

#include "k2c/Support/EmbeddedFile.h"

namespace k2c {

const std::vector<EmbeddedFile> &embeddedTopologies();

} // namespace k2c

#endif // K2C_LIB_CLUSTER_EMBEDDEDTOPOLOGIES_H
