//===- Count.h - Parameters and bytes of a model, from its config ---------===//
//
// Exact to the last unit: parameters are summed over the weight families of the ModelSpec, so a family that is data is
// counted without code here. Papers 000 (table of models), 002 (sections 2 and 3) and 004 (sections 2 and 3) count the
// same things with small differences, which are options: "active" may include the input embedding or not. What only a
// published formula counts is in k2c/Formulas.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_COUNT_H
#define K2C_PLANNER_COUNT_H

#include "k2c/Model/Layers.h"
#include "k2c/Planner/Checked.h"
#include <vector>

namespace k2c {

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// What a weight family belongs to. Norms are those of layers; buffers count nowhere.
enum class Module : uint8_t { Embedding, Attention, Norm, Router, Experts, SharedExpert, Mlp, FinalNorm, Head, Buffer };
/// By the family's role (WeightFamily::id); what is no parameter is a Buffer.
Module moduleOf(const WeightFamily &family);

/// Parameters of one layer by module.
struct LayerParameters {
  Checked attention; ///< projections; of latent attention all eight matrices
  Checked norms;     ///< of the residual stream, the latents, queries and keys
  Checked router;    ///< without the bias that chooses experts, a buffer
  Checked experts;   ///< all routed ones
  Checked shared;    ///< the shared expert
  Checked mlp;       ///< of a dense layer

  Checked total() const { return attention + norms + router + experts + shared + mlp; }
};
/// `layer`: index in the checkpoint, within the model. Poisoned by overflow, as every Checked here.
LayerParameters layerParameters(const ModelSpec &spec, int64_t layer);

/// Of the input table.
Checked embeddingParameters(const ModelSpec &spec);
/// Of the output matrix; 0 when it is the embedding.
Checked headParameters(const ModelSpec &spec);

/// What counts as a parameter beside the model's own.
struct CountOptions {
  bool mtp = false;            ///< modules of multi-token prediction
  bool correctionBias = false; ///< biases that choose experts (buffers)
};
/// All parameters of the model, embedding and head included.
Checked totalParameters(const ModelSpec &spec, const CountOptions &options = {});
/// Parameters that one token reads; the input table counts when asked, or when it is also the output matrix.
Checked activeParameters(const ModelSpec &spec, bool withInputEmbedding);
/// One module of multi-token prediction: its layer (a copy of the last) and what surrounds it; `correctionBias` counts
/// the bias of its router.
Checked mtpParameters(const ModelSpec &spec, bool correctionBias);

/// One routed expert; 0 without experts.
Checked expertParameters(const ModelSpec &spec);
/// Router of one layer.
Checked routerParameters(const ModelSpec &spec);
/// The MLP of a dense layer; 0 when there is none.
Checked denseMlpParameters(const ModelSpec &spec);
/// Shared experts, each as wide as a routed one.
int64_t sharedExperts(const ModelSpec &spec);

/// The eight matrices of latent attention, with the names of papers 002 and 004. A model without query latent has no
/// W_DQ; its W_UQ and W_QR read the hidden state.
struct LatentMatrices {
  Checked dq, uq, qr;      ///< queries: down, up, rotated part
  Checked dkv, uk, kr, uv; ///< the latent down, keys up, the rotated key, values up
  Checked o;               ///< output
  Checked total() const { return dq + uq + qr + dkv + uk + kr + uv + o; }
};
/// Parameters of each matrix in one layer.
LatentMatrices latentMatrices(const MlaSpec &mla, int64_t hidden);

//===----------------------------------------------------------------------===//
// Layers and stages
//===----------------------------------------------------------------------===//

/// How layers are dealt to pipeline stages: `Front` gives every stage ceil(layers / stages) while they last, `Balanced`
/// one more to the first ones where they do not divide.
enum class StagePartition : uint8_t { Front, Balanced };
/// Layers of each stage; some may be 0 in `Front`.
std::vector<int64_t> stageLayers(int64_t layers, int64_t stages, StagePartition partition);

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

/// Storage of the cache. FlashMlaFp8: the latent in FP8 with an f32 scale for each 128, the rotated key in bf16; an
/// indexer's key in FP8 with one scale for each 128 (FlashMLA, DeepSeek V3.2).
enum class CacheFormat : uint8_t { Plain, FlashMlaFp8 };
/// Cache bytes of one token in one layer; `elementBytes` is read by Plain.
Checked cacheBytesOfLayer(const AttentionSizes &sizes, CacheFormat format, int64_t elementBytes);
/// Likewise, as a serving system stores elements of this type: FlashMlaFp8 in FP8, else Plain.
Checked cacheBytesOfLayer(const AttentionSizes &sizes, DType element);
/// Cache bytes of one token over all layers that cache (the decoder's).
Checked cacheBytesPerToken(const ModelSpec &spec, CacheFormat format, int64_t elementBytes);
/// Cache bytes of a sequence of `context` tokens: layers with a window keep no more tokens than that.
Checked cacheBytesOfContext(const ModelSpec &spec, CacheFormat format, int64_t elementBytes, int64_t context);

/// How a checkpoint stores its matrices. Fp8Blocks and MxFp4 quantise what the family's published checkpoints do
/// (`blocks`, `mxfp4` of the families file), and of other families what DeepSeek V3 and GPT-OSS would: matrices of
/// attention and MLPs, and of experts; the rest is bf16, router biases f32.
enum class CheckpointFormat : uint8_t { Published, Bf16, Fp8Blocks, MxFp4 };
/// Elements by storage, and bytes.
struct CheckpointSize {
  Checked fp8, fp4, scales, bf16, f32; ///< elements
  Checked bytes;                       ///< of all of them
  Checked elements() const { return fp8 + fp4 + scales + bf16 + f32; }
};
/// `block`: rows and columns of an FP8 block.
CheckpointSize checkpointSize(const ModelSpec &spec, CheckpointFormat format, bool mtp, int64_t block = 128);

} // namespace k2c

#endif // K2C_PLANNER_COUNT_H
