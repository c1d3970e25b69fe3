// The manifests whose files of several ranks are fuzzed; unit/Hostile/SeedsTest.cpp holds the seeds to them, too.
#ifndef K2C_FUZZ_RANKMANIFESTS_H
#define K2C_FUZZ_RANKMANIFESTS_H

#include "program/Manifest.h"

namespace k2c {

/// Two ranks, four experts in layers 1 and 2, three slots a rank.
inline runtime::Manifest manifestOfPlacement() {
  runtime::Manifest manifest;
  manifest.modelName = "fake";
  manifest.moeLayers = {1, 2};
  manifest.experts = manifest.ranks.placement.experts = 4;
  manifest.ranks.count = 2;
  manifest.ranks.placement.slots = 6;
  return manifest;
}

/// Two cache groups of few pages.
inline runtime::Manifest manifestOfSteps() {
  runtime::Manifest manifest;
  manifest.vocab = manifest.limits.vocab = 97;
  manifest.topK = 2;
  manifest.experts = 16;
  manifest.moeLayers = {1};
  manifest.limits.step_tokens = 12;
  manifest.limits.max_sequences = 3;
  manifest.limits.max_context = 200;
  manifest.limits.cache_groups = 2;
  manifest.groups.resize(2);
  manifest.groups[0].pages = 9;
  manifest.groups[1].pages = 5;
  manifest.memory.logits = 12 * 97 * 4;
  return manifest;
}

} // namespace k2c

#endif
