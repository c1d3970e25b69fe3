//===- Copy.h - A dialect of asynchronous copies, for tests -----------------===//
#ifndef K2C_TEST_HARNESS_COPY_COPY_H
#define K2C_TEST_HARNESS_COPY_COPY_H

#include "dialects/Nn/Nn.h"

#include "test/Harness/Copy/CopyDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "test/Harness/Copy/CopyTypes.h.inc"

#define GET_OP_CLASSES
#include "test/Harness/Copy/CopyOps.h.inc"

#endif // K2C_TEST_HARNESS_COPY_COPY_H
