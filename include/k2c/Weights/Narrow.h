//===- Narrow.h - f32 weights whose numbers are all bf16's ----------------===//
//
// Most models are published in bf16, and exporters widen them to f32. Such weights are stored as bf16 again without the
// loss of a bit: products in f32 read what they read before, from half the memory.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_WEIGHTS_NARROW_H
#define K2C_WEIGHTS_NARROW_H

#include "k2c/Model/ModelSpec.h"
#include "k2c/Weights/TensorSource.h"
#include <functional>
#include <memory>

namespace k2c {

/// Ids of the families of `spec` in f32 of which bf16 has every number. Reads all of their tensors, up to the first
/// number that it has not. `progress` is called with bytes, done and total; null: silent.
Expected<std::vector<std::string>> familiesOfBf16(const ModelSpec &spec, const TensorSource &tensors,
                                                  const std::function<void(int64_t, int64_t)> &progress);

/// Whether the first numbers of the largest family in f32 are bf16's, so that it is worth to look at all.
bool seemOfBf16(const ModelSpec &spec, const TensorSource &tensors);

/// Makes these families bf16: in `spec`, which names them as ModelSpec::narrowed, and in `tensors`, where it is not
/// null, so that a read fails where bf16 would round. Error: one that the spec, which is of `place`, does not have in
/// f32.
Status narrow(const std::vector<std::string> &ids, const std::string &place, ModelSpec &spec,
              std::shared_ptr<const TensorSource> &tensors);

} // namespace k2c

#endif // K2C_WEIGHTS_NARROW_H
