//===- Decoder.h - the layers of a decoder, in order -----------------------------===//
#ifndef K2C_LIB_ONNX_DECODER_H
#define K2C_LIB_ONNX_DECODER_H

#include "Match.h"

namespace k2c::onnx {

/// One layer: attention and a feed-forward part, each of the residual stream behind what stands before.
struct DecoderLayer {
  AttentionLayer attention;
  NormLayer attentionNorm;
  std::optional<MlpLayer> mlp;         ///< of dense layers
  std::optional<ExpertsLayer> experts; ///< of others
  std::vector<MlpLayer> eachExpert;    ///< of a graph that runs all experts: in order, in place of experts.experts
  std::optional<MlpLayer> shared;      ///< the expert of all tokens
  NormLayer feedForwardNorm;
};

struct Decoder {
  View embedding; ///< [vocab, hidden]
  std::vector<DecoderLayer> layers;
  NormLayer finalNorm;
  View head; ///< [vocab, hidden]
  int64_t vocab = 0, hidden = 0;
};

/// What was found of a decoder.
struct FoundParts {
  InputRoles roles;                              ///< of the inputs, by which it was looked for
  int64_t attentions = 0, mlps = 0, experts = 0; ///< summands of the residual stream; mlps: single experts, too
  int64_t vocab = 0, hidden = 0;                 ///< of the head; 0: it was not found
};

/// Finds the decoder that the graph's outputs are. `parts`, if any: what was found, also of a decoder that is refused.
/// Error: what is not understood, with its node.
Expected<Decoder> findDecoder(Matcher &matcher, FoundParts *parts = nullptr);

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_DECODER_H
