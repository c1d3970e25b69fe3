//===- Dialects.h - All dialects of k2c -------------------------------------===//
#ifndef K2C_DIALECTS_DIALECTS_H
#define K2C_DIALECTS_DIALECTS_H

#include "dialects/Dist/Dist.h"
#include "dialects/Kern/Kern.h"
#include "dialects/Mem/Mem.h"
#include "dialects/Mla/Mla.h"
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/Nn.h"
#include "dialects/Rt/Rt.h"

namespace k2c {
/// Makes every dialect of k2c known to contexts of `registry`.
inline void registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<nn::NnDialect, moe::MoeDialect, mla::MlaDialect, dist::DistDialect, mem::MemDialect,
                  kern::KernDialect, rt::RtDialect>();
}
} // namespace k2c

#endif // K2C_DIALECTS_DIALECTS_H
