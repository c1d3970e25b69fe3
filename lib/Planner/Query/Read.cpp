//===- Read.cpp - Inputs that several parts read ------------------------------===//

#include "Read.h"

using namespace k2c;

const MlaSpec *planner::readMla(QueryInputs &in, const ModelSpec *model) {
  const MlaSpec *mla = model ? std::get_if<MlaSpec>(&model->attention) : nullptr;
  if (!mla)
    in.fail("model", "has no latent attention", "ask this of a DeepSeek or Kimi model");
  return mla;
}

const MoeSpec *planner::readMoe(QueryInputs &in, const ModelSpec *model) {
  if (!model || !model->moe) {
    in.fail("model", "has no routed experts", "ask this of a mixture-of-experts model");
    return nullptr;
  }
  return &*model->moe;
}

bool planner::readPaper(QueryInputs &in, const std::string &key) {
  return in.word(key, {"seed", "paper", "exact"}, in.isPaper() ? 0 : 2) != 2;
}
