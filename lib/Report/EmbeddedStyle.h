//===- EmbeddedStyle.h - The style sheet of a plan's page, compiled in ----===//
//
// Colours of the drawings are told apart by the colour-blind too (after Okabe and Ito), and keep a contrast of 3 to the
// page in both themes. Nothing is scrolled sideways: drawings and tables take the width there is.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_REPORT_EMBEDDEDSTYLE_H
#define K2C_LIB_REPORT_EMBEDDEDSTYLE_H

#include "k2c/Support/EmbeddedFile.h"

namespace k2c {

/// The file style.css alone: light and dark, screen and print.
const std::vector<EmbeddedFile> &embeddedStyle();

} // namespace k2c

#endif // K2C_LIB_REPORT_EMBEDDEDSTYLE_H
