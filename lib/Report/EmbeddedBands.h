//===- EmbeddedBands.h - Ratios of published runs, compiled in ------------===//
#ifndef K2C_LIB_REPORT_EMBEDDEDBANDS_H
#define K2C_LIB_REPORT_EMBEDDEDBANDS_H

#include "k2c/Support/EmbeddedFile.h"

namespace k2c {

/// The file models/published-bands.json alone.
const std::vector<EmbeddedFile> &embeddedBands();

} // namespace k2c

#endif // K2C_LIB_REPORT_EMBEDDEDBANDS_H
