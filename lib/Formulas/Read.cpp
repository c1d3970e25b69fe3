//===- Read.cpp - Inputs that several parts read --------------------------===//

#include "Read.h"

using namespace k2c;

const MlaSpec *formulas::readMla(QueryInputs &in, const ModelSpec *model) {
  const MlaSpec *mla = model ? model->latentAttention() : nullptr;
  if (!mla)
    in.fail("model", "has no latent attention", "ask this of a DeepSeek or Kimi model");
  return mla;
}

const MoeSpec *formulas::readMoe(QueryInputs &in, const ModelSpec *model) {
  if (!model || !model->moe) {
    in.fail("model", "has no routed experts", "ask this of a mixture-of-experts model");
    return nullptr;
  }
  return &*model->moe;
}

bool formulas::readPaper(QueryInputs &in, const std::string &key) {
  return in.word(key, {"seed", "paper", "exact"}, in.isPaper() ? 0 : 2) != 2;
}

void formulas::checkDivides(QueryInputs &in, const std::string &key, int64_t parts, const std::string &what,
                            int64_t size) {
  if (in.ok() && size % parts)
    in.fail(key, std::to_string(parts) + " does not divide " + what + " " + std::to_string(size),
            "choose a divisor of " + std::to_string(size));
}

PipelineKind formulas::readSchedule(QueryInputs &in, std::optional<PipelineKind> otherwise) {
  static const std::vector<std::string> words = {"gpipe", "1f1b",  "interleaved", "interleaved 1f1b",
                                                 "zb1p",  "zb-h1", "dualpipe",    "dualpipev"};
  static const PipelineKind kinds[] = {
      PipelineKind::GPipe,        PipelineKind::OneFOneB,     PipelineKind::Interleaved, PipelineKind::Interleaved,
      PipelineKind::ZeroBubbleH1, PipelineKind::ZeroBubbleH1, PipelineKind::DualPipe,    PipelineKind::DualPipeV};
  std::optional<size_t> index;
  for (size_t i = 0; otherwise && !index; ++i)
    if (kinds[i] == *otherwise)
      index = i;
  return kinds[in.word("schedule", words, index)];
}

int64_t formulas::readChunks(QueryInputs &in, PipelineKind kind) {
  const std::string key = in.has("vpp") ? "vpp" : "v";
  if (kind == PipelineKind::Interleaved)
    return in.whole(key, 1);
  if (in.whole(key, 1, 1, QueryInputs::maxNumber) != 1)
    in.fail(key, "is for interleaved schedules", "leave it out");
  return 1;
}
