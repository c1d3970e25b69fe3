//===- Storage.cpp - Bytes of caches and checkpoints --------------------------===//

#include "k2c/Model/Layers.h"
#include "k2c/Planner/Count.h"

#include <algorithm>

using namespace k2c;

Checked k2c::cacheBytesOfLayer(const AttentionSizes &sizes, CacheFormat format, int64_t elementBytes) {
  const auto &[first, second] = sizes.cache;
  Checked indexer = sizes.indexer ? sizes.indexer->dim : 0;
  if (format == CacheFormat::Plain || !sizes.isLatent())
    return (Checked(first.elements) * sizes.cachedHeads() + Checked(second.elements) * sizes.cachedHeads() + indexer) *
           elementBytes;
  // FlashMLA: f32 scales for each 128 values, the rotated key in bf16.
  auto scaled = [](Checked values) { return values + values.dividedUp(128) * 4; };
  return scaled(first.elements) + Checked(second.elements) * 2 + scaled(indexer);
}

Checked k2c::cacheBytesOfLayer(const AttentionSizes &sizes, DType element) {
  return cacheBytesOfLayer(sizes, element == DType::F8E4M3 ? CacheFormat::FlashMlaFp8 : CacheFormat::Plain,
                           byteWidth(element));
}

Checked k2c::cacheBytesPerToken(const ModelSpec &spec, CacheFormat format, int64_t elementBytes) {
  return cacheBytesOfContext(spec, format, elementBytes, 1);
}

Checked k2c::cacheBytesOfContext(const ModelSpec &spec, CacheFormat format, int64_t elementBytes, int64_t context) {
  Checked bytes = 0;
  for (const auto &[sizes, layers] : attentionLayers(spec)) {
    const int64_t caching = countWithin(layers, {spec.encoderLayers, spec.layerCount()});
    bytes += cacheBytesOfLayer(sizes, format, elementBytes) * (Checked(caching) * sizes.within(context));
  }
  return bytes;
}

namespace {

/// Which families a format quantises: what the model's own FP8 or MXFP4 checkpoints do where such are published, else
/// by DeepSeek V3's rule (matrices of attention and of MLPs; not routers, norms, tables and the head) and OpenAI's
/// (matrices of experts).
class Quantised {
public:
  Quantised(const ModelSpec &spec, CheckpointFormat format) : format(format) {
    for (const WeightFamily &family : spec.weights)
      isPublished |= format == CheckpointFormat::Fp8Blocks ? family.takesBlocks : family.takesMicroScales;
  }
  bool fp8(const WeightFamily &family) const {
    if (format != CheckpointFormat::Fp8Blocks)
      return format == CheckpointFormat::Published && family.takesBlocks && family.blocks;
    const Module module = moduleOf(family);
    return isPublished ? family.takesBlocks
                       : isMatrix(family) && (module == Module::Attention || module == Module::Experts ||
                                              module == Module::SharedExpert || module == Module::Mlp);
  }
  bool fp4(const WeightFamily &family) const {
    if (format != CheckpointFormat::MxFp4)
      return format == CheckpointFormat::Published && family.takesMicroScales && family.microScales;
    return isPublished ? family.takesMicroScales : isMatrix(family) && moduleOf(family) == Module::Experts;
  }

private:
  static bool isMatrix(const WeightFamily &family) { return family.shape.size() >= 2 && !family.isLookup; }
  CheckpointFormat format;
  bool isPublished = false;
};

/// Adds `copies` tensors of a family, stored as `format` says.
void add(CheckpointSize &size, const WeightFamily &family, Checked copies, CheckpointFormat format,
         const Quantised &quantised, int64_t block) {
  Checked rows = 1, columns = family.shape.back();
  for (size_t i = 0; i + 1 < family.shape.size(); ++i)
    rows = rows * family.shape[i];
  Checked elements = rows * columns * copies;
  bool published = format == CheckpointFormat::Published;
  const bool fp8 = quantised.fp8(family), fp4 = quantised.fp4(family);
  if (fp8) {
    int64_t high = published ? family.blocks->rows : block, wide = published ? family.blocks->columns : block;
    Checked scales = rows.dividedUp(high) * columns.dividedUp(wide) * copies;
    size.fp8 += elements;
    size.scales += scales;
    size.bytes += elements + scales * 4;
  } else if (fp4) {
    Checked scales = rows * columns.dividedUp(MicroScales().block) * copies;
    size.fp4 += elements;
    size.scales += scales;
    size.bytes += rows * columns.dividedUp(2) * copies + scales;
  } else if (family.dtype == DType::F32 && !family.blocks && !family.microScales) {
    // A matrix stored quantised is F32 once read; another format of it is bf16.
    size.f32 += elements;
    size.bytes += elements * 4;
  } else {
    size.bf16 += elements;
    size.bytes += elements * 2;
  }
}

} // namespace

CheckpointSize k2c::checkpointSize(const ModelSpec &spec, CheckpointFormat format, bool mtp, int64_t block) {
  CheckpointSize size;
  const Quantised quantised(spec, format);
  for (const WeightFamily &family : spec.weights) {
    int64_t layers = family.layerCount();
    if (mtp && !spec.mtpWeights.empty() && family.hasLayer(spec.layerCount() - 1))
      layers += spec.mtpLayers;
    add(size, family, Checked(family.tensorsOfLayer()) * layers, format, quantised, block);
  }
  for (const WeightFamily &family : spec.mtpWeights)
    if (mtp)
      add(size, family, Checked(family.tensorsOfLayer()) * spec.mtpLayers, format, quantised, block);
  return size;
}
