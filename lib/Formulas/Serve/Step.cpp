//===- Step.cpp - Time of a decode step on a cluster of GPUs --------------===//

#include "k2c/Formulas/ExpertHits.h"
#include "k2c/Formulas/Flops.h"
#include "k2c/Formulas/Serve.h"
#include "k2c/Support/Largest.h"

#include <algorithm>

using namespace k2c;

namespace {

/// Sizes as real numbers, with the letters of paper 004, table 1.
struct Sizes {
  double n, d, layers, moe, dense, dMoe, experts, chosen, shared, used, vocab, routerWeights;
  Sizes(const ModelSpec &spec, const ServeCluster &cluster)
      : n(double(cluster.gpus)), d(double(spec.hidden)), layers(double(spec.layerCount())),
        moe(double(spec.moeLayers().size())), dense(layers - moe), dMoe(double(spec.moe->inter)),
        experts(double(spec.moe->experts)), chosen(double(spec.moe->topK)), shared(double(sharedExperts(spec))),
        used(shared + chosen), vocab(double(spec.vocab)), routerWeights(routerParameters(spec).real()) {}
};

/// Experts of one layer that the worst GPU reads for `batch` tokens.
double expertsLoaded(const ModelSpec &spec, const ServeCluster &cluster, const ServeParameters &parameters,
                     double batch) {
  const int64_t experts = spec.moe->experts, shared = sharedExperts(spec);
  const double owned = double(ownedExperts(spec, cluster.gpus, parameters.additionalExperts));
  const ExpertChoice choice{experts, spec.moe->topK, batch};
  double most = owned;
  if (parameters.loaded == ExpertsLoaded::BallsInBins) {
    most = ballsInBinsMax(expertHitMean(choice) + double(shared), cluster.gpus);
  } else if (parameters.loaded == ExpertsLoaded::BinomialMax) {
    int64_t routed = (experts + parameters.additionalExperts + cluster.gpus - 1) / cluster.gpus;
    double hit = expertHitMean(choice) / double(experts);
    most = binomialMaxMean(routed, hit, cluster.gpus) + double(shared);
  }
  return std::min(owned, most);
}

/// Bytes and FLOP of attention on one GPU (sections 3.1.1 and 3.2.3): its weights in all layers; the cache read once
/// and one token of it written; activations out and in, one byte each.
void addAttention(StepTerms &terms, const ModelSpec &spec, const ServeParameters &parameters, const Sizes &z,
                  double batch, int64_t context) {
  const MlaSpec &mla = *spec.latentAttention();
  const double here = batch / z.n,
               cached = cacheBytesPerToken(spec, parameters.cacheFormat, parameters.cacheElementBytes).real();
  terms.attentionMemory = z.layers * latentMatrices(mla, spec.hidden).total().real() * parameters.weightBytes +
                          here * double(context) * cached + here * cached + 2 * here * z.d * z.layers;
  terms.attentionCompute =
      z.layers * here *
      latentAttentionFlops(mla, spec.hidden, Phase::Decode, context, LatentForm::Absorbed, parameters.paperFlops)
          .real();
}

/// Bytes and FLOP of everything else on the worst GPU (sections 3.1.2, 3.1.3 and 3.2.4). The largest load is 1 / beta
/// of the mean; the router and the dense layers see the GPU's own tokens.
void addExperts(StepTerms &terms, const ModelSpec &spec, const ServeParameters &parameters, const Sizes &z,
                double batch) {
  const double load = batch / parameters.balancedness * z.used / z.n, denseMlp = denseMlpParameters(spec).real();
  const double weights = z.moe * (expertParameters(spec).real() * terms.expertsLoaded + z.routerWeights) +
                         z.dense * denseMlp + double(parameters.embeddingsRead) * z.vocab * z.d;
  terms.expertMemory =
      weights * parameters.weightBytes + (parameters.dispatchBytes + parameters.combineBytes) * load * z.d * z.layers;
  terms.expertCompute =
      z.moe * (6 * load * z.d * z.dMoe + 2 * batch * z.d * z.experts / z.n) + z.dense * 2 * (batch / z.n) * denseMlp;
}

} // namespace

StepTerms k2c::stepTerms(const ModelSpec &spec, const ServeCluster &cluster, const ServeParameters &parameters,
                         double batch, int64_t context) {
  const Sizes z(spec, cluster);
  StepTerms terms;
  terms.expertsLoaded = expertsLoaded(spec, cluster, parameters, batch);
  addAttention(terms, spec, parameters, z, batch, context);
  addExperts(terms, spec, parameters, z, batch);
  // Equations 46 and 47: attention computes in bf16, experts in FP8.
  terms.attention = std::max(terms.attentionMemory / cluster.memoryBandwidth * parameters.memoryInefficiency,
                             terms.attentionCompute / cluster.bf16Rate * parameters.attentionInefficiency);
  terms.experts = std::max(terms.expertMemory / cluster.memoryBandwidth * parameters.memoryInefficiency,
                           terms.expertCompute / cluster.fp8Rate * parameters.expertInefficiency);
  int64_t layers = parameters.allLayersCommunicate ? spec.layerCount() : int64_t(spec.moeLayers().size());
  terms.communication =
      communicationSeconds(cluster, parameters, communicationBytes(spec, cluster, parameters, batch, layers));
  return terms;
}

double k2c::stepSeconds(const ModelSpec &spec, const ServeCluster &cluster, const ServeParameters &parameters,
                        double batch, int64_t context, bool twoBatches) {
  StepTerms t = stepTerms(spec, cluster, parameters, twoBatches ? batch / 2 : batch, context);
  return twoBatches ? 2 * std::max(t.attention + t.experts, t.communication)
                    : t.attention + t.experts + t.communication;
}

int64_t k2c::largestBatch(const ModelSpec &spec, const ServeCluster &cluster, const ServeParameters &parameters,
                          int64_t context, bool twoBatches, double tokensPerSecond) {
  auto meets = [&](int64_t batch) {
    return 1 / stepSeconds(spec, cluster, parameters, double(batch), context, twoBatches) >= tokensPerSecond;
  };
  // A step never gets shorter with more sequences.
  return largest(int64_t(1) << 40, meets);
}

int64_t k2c::ownedExperts(const ModelSpec &spec, int64_t gpus, int64_t additional) {
  return (sharedExperts(spec) + spec.moe->experts + additional + gpus - 1) / gpus;
}

Checked k2c::servedParameters(const ModelSpec &spec, int64_t gpus, int64_t additional) {
  const MlaSpec *mla = spec.latentAttention();
  int64_t moe = int64_t(spec.moeLayers().size());
  Checked attention =
      mla ? latentMatrices(*mla, spec.hidden).total() : layerParameters(spec, spec.layerCount() - 1).attention;
  return attention * spec.layerCount() +
         (expertParameters(spec) * ownedExperts(spec, gpus, additional) + routerParameters(spec)) * moe +
         denseMlpParameters(spec) * (spec.layerCount() - moe) + embeddingParameters(spec) + headParameters(spec);
}

double k2c::communicationBytes(const ModelSpec &spec, const ServeCluster &cluster, const ServeParameters &parameters,
                               double batch, int64_t layers) {
  const Sizes z(spec, cluster);
  return batch * (parameters.dispatchBytes + parameters.combineBytes) * z.d * double(layers) / parameters.balancedness *
         z.used / z.n;
}

double k2c::communicationSeconds(const ServeCluster &cluster, const ServeParameters &parameters, double bytes) {
  double nodes = double(cluster.nodes);
  return bytes * std::max((nodes - 1) / nodes / cluster.interBandwidth, 1 / nodes / cluster.intraBandwidth) *
         parameters.linkInefficiency;
}

double k2c::deduplicatedBytes(const ModelSpec &spec, int64_t gpus, int64_t nodes, double batch, int64_t layers,
                              double meanNodes, double bytesPerValue) {
  double remote = meanNodes * double(nodes - 1) / double(nodes);
  return bytesPerValue * batch / double(gpus) * double(spec.hidden) * double(layers) * remote;
}
