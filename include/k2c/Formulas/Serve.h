//===- Serve.h - Time and memory of serving on a cluster of GPUs ----------===//
//
// Paper 004: data-parallel attention, experts spread over all GPUs, dispatch and combine between. A step decodes one
// token of each of B sequences; each rank is bound by memory or by arithmetic, attention and experts apart, and
// communication by the slower of its links (equations 46-51). The paper leaves the assembly open; ours is written at
// each term in Step.cpp. Sizes are per GPU; bandwidths in bytes/s and one way, rates in FLOP/s.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_FORMULAS_SERVE_H
#define K2C_FORMULAS_SERVE_H

#include "k2c/Planner/Count.h"

namespace k2c {

/// GPUs in nodes of equal size. Names of built-in topologies and their sources: models/topologies.
struct ServeCluster {
  int64_t gpus = 1;           ///< of all nodes
  int64_t nodes = 1;          ///< divides gpus
  double memoryBandwidth = 1; ///< bytes/s of a GPU
  double bf16Rate = 1;        ///< FLOP/s of a GPU, dense
  double fp8Rate = 1;         ///< likewise
  double interBandwidth = 1;  ///< bytes/s of a GPU to other nodes, one way
  double intraBandwidth = 1;  ///< bytes/s of a GPU inside its node, one way
  double memory = 0;          ///< bytes of a GPU
};

/// How a step's worst GPU loads experts: all it owns, the paper's balls-into-bins bound, or the mean of the largest of
/// binomials; never more than it owns.
enum class ExpertsLoaded : uint8_t { Owned, BallsInBins, BinomialMax };

/// What the paper chose, with its values.
struct ServeParameters {
  double memoryInefficiency = 2.0;          ///< "conservative" (section 3.5)
  double attentionInefficiency = 1.5 * 1.1; ///< FlashMLA at 66 % of peak, and 10 % (section 3.5)
  double expertInefficiency = 1.3 * 1.1;    ///< DeepGEMM 1550 of 1980 TFLOP/s, and 10 % (section 3.5)
  double linkInefficiency = 1.25;           ///< DeepEP 40 of 50 GB/s (section 3.5)
  double balancedness = 1;                  ///< beta_eb: mean over largest expert load of a GPU (section 3.4)
  int64_t additionalExperts = 0;            ///< replicas
  double weightBytes = 1;                   ///< of a parameter: all weights FP8
  int64_t cacheElementBytes = 2;            ///< of an element of the cache, where it is Plain
  CacheFormat cacheFormat = CacheFormat::Plain;
  double dispatchBytes = 1;         ///< of an element sent to experts
  double combineBytes = 2;          ///< of an element sent back
  bool allLayersCommunicate = true; ///< as the paper counts; else the MoE layers
  bool paperFlops = true;           ///< see latentAttentionFlops
  ExpertsLoaded loaded = ExpertsLoaded::BallsInBins;
  int64_t embeddingsRead = 2; ///< input table and head; a decode step reads the head only
};

/// Seconds of the three parts of a step without overlap, inefficiencies included.
struct StepTerms {
  double attention = 0, experts = 0, communication = 0;
  double expertsLoaded = 0; ///< of the worst GPU in one layer
  double attentionMemory = 0, attentionCompute = 0, expertMemory = 0, expertCompute = 0;
};
/// `batch`: sequences on the whole cluster, fractional under two-batch overlap; `context`: tokens cached of each.
/// The model has latent attention and routed experts.
StepTerms stepTerms(const ModelSpec &spec, const ServeCluster &cluster, const ServeParameters &parameters, double batch,
                    int64_t context);
/// Seconds of a step: attention + experts + communication, or with two-batch overlap
/// 2 max(attention(B/2) + experts(B/2), communication(B/2)), which reads the weights twice.
double stepSeconds(const ModelSpec &spec, const ServeCluster &cluster, const ServeParameters &parameters, double batch,
                   int64_t context, bool twoBatches);
/// Largest batch whose sequences each get at least `tokensPerSecond`; 0: none.
int64_t largestBatch(const ModelSpec &spec, const ServeCluster &cluster, const ServeParameters &parameters,
                     int64_t context, bool twoBatches, double tokensPerSecond);

/// Experts that a GPU holds in one layer: ceil((shared + routed + additional) / gpus).
int64_t ownedExperts(const ModelSpec &spec, int64_t gpus, int64_t additional);
/// Weights of one GPU: attention, router, dense MLPs, embedding and head whole, its share of experts (paper 004,
/// sections 3.1 and 2.4); matrices only. `bytes` for each parameter.
Checked servedParameters(const ModelSpec &spec, int64_t gpus, int64_t additional);

/// Bytes into one GPU in a step: B (dispatch + combine) d layers (shared + top-k) / (gpus beta).
double communicationBytes(const ModelSpec &spec, const ServeCluster &cluster, const ServeParameters &parameters,
                          double batch, int64_t layers);
/// Seconds for `bytes` of which (N-1)/N leave the node (paper 004, section 3.3.2), inefficiency included.
double communicationSeconds(const ServeCluster &cluster, const ServeParameters &parameters, double bytes);
/// Bytes between nodes of one GPU when a token crosses once for each remote node (DeepEP's dispatch): of `meanNodes`
/// nodes that a token reaches, (N-1)/N are remote. The shared expert is on every GPU and sends nothing.
double deduplicatedBytes(const ModelSpec &spec, int64_t gpus, int64_t nodes, double batch, int64_t layers,
                         double meanNodes, double bytesPerValue);

} // namespace k2c

#endif // K2C_FORMULAS_SERVE_H
