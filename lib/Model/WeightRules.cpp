//===- WeightRules.cpp - the weight families of a model -------------------===//
//
// A rule of the families file is evaluated over the fields of one config and gives one weight family: a pattern of
// tensor names, the layers and experts that the pattern runs over, a shape, and how its tensors are stored.
//
//   {tensors: "layers.{layer}.experts.{expert}.{gate|up}.weight", over: moe, experts: experts, shape: [inter, hidden]}
//   ->  layers [3, 61), 256 experts, alternatives gate and up
//
// The elements of a family are bounded here, so that counts further on need not fear the sizes of a hostile config. A
// family has one storage, whereas quantization_config excepts modules by name: every tensor name is compared with
// them, and a family of which some tensors are excepted and others not is refused. A quantised config whose family has
// no rule that takes blocks is refused as well, since its weights would be read as if they were plain.
//
//===----------------------------------------------------------------------===//

#include "WeightRules.h"

using namespace k2c;

namespace {

/// More than any checkpoint, and far from overflow in bytes and in sums.
constexpr int64_t maxElements = int64_t(1) << 50;
/// Names are visited one by one.
constexpr int64_t maxTensors = int64_t(1) << 24;

/// The words of "{a|b}" in a tensor's name.
std::vector<std::string> alternativesOf(const std::string &pattern) {
  for (size_t open = pattern.find('{'); open != std::string::npos; open = pattern.find('{', open + 1)) {
    std::string inside = pattern.substr(open + 1, pattern.find('}', open) - open - 1);
    if (inside.find('|') == std::string::npos)
      continue;
    std::vector<std::string> words;
    for (size_t at = 0; at <= inside.size();) {
      size_t bar = std::min(inside.find('|', at), inside.size());
      words.push_back(inside.substr(at, bar - at));
      at = bar + 1;
    }
    return words;
  }
  return {};
}

/// The part of `ranges` that lies in `within`.
std::vector<LayerRange> clipped(const std::vector<LayerRange> &ranges, const LayerRange &within) {
  std::vector<LayerRange> inside;
  for (const LayerRange &range : ranges) {
    LayerRange part{std::max(range.begin, within.begin), std::min(range.end, within.end)};
    if (part.begin < part.end)
      inside.push_back(part);
  }
  return inside;
}

/// Layers that `over` names; neighbouring runs are joined.
std::vector<LayerRange> layersOver(const ModelSpec &spec, const std::string &over) {
  std::vector<LayerRange> ranges;
  for (const LayersOfKind &run : spec.layersByKind()) {
    const char *part = run.kind.feedForward == FeedForward::Moe ? "moe" : "dense";
    if (over != "all" && over != part && over != run.kind.attention)
      continue;
    if (!ranges.empty() && ranges.back().end == run.range.begin)
      ranges.back().end = run.range.end;
    else
      ranges.push_back(run.range);
  }
  return ranges;
}

Expected<int64_t> when(const std::string &condition, const Fields &fields) {
  return condition.empty() ? Expected<int64_t>(1) : fields.integer(condition);
}

Status checkCount(const WeightFamily &family, const std::string &configFile) {
  int64_t count = family.layerCount();
  bool isTooLarge = false;
  auto times = [&](int64_t factor) {
    isTooLarge |= __builtin_mul_overflow(count, factor, &count) || count > maxElements;
  };
  for (int64_t size : family.shape)
    times(size);
  times(family.experts ? family.experts : 1);
  times(family.alternatives.empty() ? 1 : int64_t(family.alternatives.size()));
  const bool areTooMany = !isTooLarge && family.tensorCount() > maxTensors;
  if (!isTooLarge && !areTooMany)
    return Status::success();
  return Error{configFile,
               "weights '" + family.pattern + "' would have more than " +
                   (areTooMany ? formatCount(maxTensors) + " tensors" : formatCount(maxElements) + " elements"),
               "take config.json from the published model"};
}

/// Whether the words of `module` are the first or the last of `name`.
bool belongsTo(const std::string &name, const std::string &module) {
  size_t n = name.size(), m = module.size();
  if (n < m)
    return false;
  return (name.compare(0, m, module) == 0 && (n == m || name[m] == '.')) ||
         (name.compare(n - m, m, module) == 0 && (n == m || name[n - m - 1] == '.'));
}

/// Whether quantization_config leaves the family's tensors alone; it must do so with all or none.
Expected<bool> isUnquantized(const WeightFamily &family, const ModelSpec &spec, const std::string &configFile) {
  if (spec.unquantizedModules.empty())
    return false;
  std::string plain, stored; // a tensor of each kind
  Status status = family.visitTensors([&](const std::string &tensor) -> Status {
    const std::string module = tensor.substr(0, tensor.rfind('.'));
    bool named = false;
    for (const std::string &entry : spec.unquantizedModules)
      named |= belongsTo(module, entry);
    (named ? plain : stored) = tensor;
    if (plain.empty() || stored.empty())
      return Status::success();
    return Error{configFile,
                 "quantization_config leaves '" + plain + "' alone and not '" + stored +
                     "'; tensors of one role must be stored alike",
                 "convert the tensors of '" + family.pattern + "' to one type"};
  });
  return status ? Expected<bool>(stored.empty()) : status.takeError();
}

Expected<WeightFamily> makeFamily(const WeightRule &rule, const ModelSpec &spec, const Fields &fields) {
  WeightFamily family;
  family.id = rule.id;
  family.pattern = rule.tensors;
  family.place = rule.place;
  family.isParameter = !rule.buffer;
  family.alternatives = alternativesOf(rule.tensors);
  family.dtype = rule.dtype == "f32" ? DType::F32 : spec.storage;
  family.isLookup = rule.lookup;
  family.takesBlocks = rule.blocks;
  family.takesMicroScales = rule.microScales;
  if (rule.microScales)
    family.microScales = spec.microScales;
  auto evaluate = [&](const std::string &text, int64_t &out) -> Status {
    Expected<int64_t> value = fields.integer(text);
    if (!value)
      return Error{rule.place, value.error().message, ""};
    out = *value;
    return Status::success();
  };
  if (!rule.over.empty()) {
    LayerRange within{0, spec.layerCount()};
    if (Status status = evaluate(rule.from.empty() ? "0" : rule.from, within.begin); !status)
      return status.takeError();
    if (!rule.to.empty())
      if (Status status = evaluate(rule.to, within.end); !status)
        return status.takeError();
    family.layers = clipped(layersOver(spec, rule.over), within);
  }
  if (!rule.experts.empty())
    if (Status status = evaluate(rule.experts, family.experts); !status)
      return status.takeError();
  for (const std::string &text : rule.shape) {
    family.shape.push_back(0);
    if (Status status = evaluate(text, family.shape.back()); !status)
      return status.takeError();
  }
  return family;
}

/// Scaled blocks where the rule allows and quantization_config says them.
Status setStorage(WeightFamily &family, const WeightRule &rule, const ModelSpec &spec, const std::string &configFile) {
  if (!rule.blocks || !spec.quantization)
    return Status::success();
  Expected<bool> unquantized = isUnquantized(family, spec, configFile);
  if (!unquantized)
    return unquantized.takeError();
  if (*unquantized)
    return Status::success();
  family.blocks = spec.quantization;
  family.dtype = DType::F32;
  return Status::success();
}

} // namespace

static Status applyRules(const std::vector<WeightRule> &rules, const ModelSpec &spec, const Fields &fields,
                         const std::string &configFile, std::vector<WeightFamily> &weights) {
  for (const WeightRule &rule : rules) {
    Expected<int64_t> exists = when(rule.when, fields);
    if (!exists)
      return Error{rule.place, exists.error().message, ""};
    if (!*exists)
      continue;
    Expected<WeightFamily> made = makeFamily(rule, spec, fields);
    if (!made)
      return made.takeError();
    if (!rule.over.empty() && made->layers.empty())
      continue;
    if (Status status = checkCount(*made, configFile); !status)
      return status;
    if (Status status = setStorage(*made, rule, spec, configFile); !status)
      return status;
    weights.push_back(std::move(*made));
  }
  return Status::success();
}

Status k2c::applyWeightRules(ModelSpec &spec, const Family &family, const Fields &fields,
                             const std::string &configFile) {
  if (Status status = applyRules(family.weights, spec, fields, configFile, spec.weights); !status)
    return status;
  if (spec.mtpLayers > 0)
    if (Status status = applyRules(family.mtp, spec, fields, configFile, spec.mtpWeights); !status)
      return status;
  bool hasBlocks = false;
  for (const WeightRule &rule : family.weights)
    hasBlocks |= rule.blocks;
  if (spec.quantization && !hasBlocks)
    return Error{configFile, "quantization_config: FP8 weights of a " + spec.modelType + " model are not in this build",
                 "use a bf16 checkpoint"};
  for (const IgnoreRule &rule : family.ignore) {
    Expected<int64_t> exists = when(rule.when, fields);
    Expected<int64_t> from = fields.integer(rule.from);
    Expected<int64_t> to = fields.integer(rule.to);
    for (const Expected<int64_t> *value : {&exists, &from, &to})
      if (!*value)
        return Error{family.file, value->error().message, ""};
    if (*exists && *from < *to)
      spec.ignoredTensors.push_back({rule.tensors, {*from, *to}, rule.onlyWith});
  }
  return Status::success();
}
