//===- RopeConfig.cpp - the rotary embedding of a config.json -------------===//
//
// Files spell it in two ways: rope_theta beside rope_scaling {type | rope_type,
// ...} (null: unscaled), or everything in rope_parameters. Both are read by the
// same code, with the object's name as a prefix. Each scaling type reads its
// own keys; a key that the type does not have is unknown.
//
//===----------------------------------------------------------------------===//

#include "RopeConfig.h"
#include "base/JsonText.h"
#include "k2c/Model/Rope.h"

using namespace k2c;
using nlohmann::json;

namespace {

constexpr int64_t maxContext = INT32_MAX;

class RopeReader {
public:
  RopeReader(ConfigFile &config, Section &section, int64_t maxPosition)
      : config(config), section(section), maxPosition(maxPosition) {}

  Expected<RopeSpec> read() {
    rope.dims = section.size("dims");
    rope.pairs =
        section.oneOf<RopePairs>("pairs", {{"half", RopePairs::Half}, {"interleaved", RopePairs::Interleaved}});
    if (section.error())
      return *section.error();
    if (rope.dims % 2 != 0)
      return Error{config.file(), "rotary width " + std::to_string(rope.dims) + " is odd, pairs need an even one",
                   "take config.json from the published model"};
    if (section.has("theta"))
      return readOwnTheta();
    chooseObject();
    if (!failure)
      readTheta();
    if (!failure && !object.empty())
      readScaling();
    if (failure)
      return *failure;
    return rope;
  }

private:
  void fail(const std::string &pointer, std::string message, std::string remedy = "") {
    if (!failure)
      failure = config.error(pointer, std::move(message), std::move(remedy));
  }

  /// Sets `object` to the pointer of the object that holds the scaling, or "".
  void chooseObject() {
    const json *scaling = config.getNonNull("/rope_scaling");
    const json *parameters = config.getNonNull("/rope_parameters");
    if (scaling && parameters)
      return fail("/rope_parameters", "rope_scaling and rope_parameters are both given", "keep one of the two");
    const json *chosen = scaling ? scaling : parameters;
    if (!chosen)
      return;
    object = scaling ? "/rope_scaling" : "/rope_parameters";
    isParameters = parameters != nullptr;
    if (!chosen->is_object())
      fail(object, keyName(object) + " must be an object or null");
  }

  /// A key of the object: a positive number, or `otherwise` when absent.
  double number(const char *key, std::optional<double> otherwise = {}) {
    std::string pointer = object + "/" + key;
    const json *value = config.getNonNull(pointer);
    if (!value && otherwise)
      return *otherwise;
    if (!value)
      return fail(object, keyName(pointer) + " is missing", "rope type '" + shortened(type) + "' needs it"), 1;
    Expected<double> number = config.positiveNumber(pointer, *value);
    if (number)
      return *number;
    if (!failure)
      failure = number.takeError();
    return 1;
  }

  int64_t context() {
    std::string pointer = object + "/original_max_position_embeddings";
    const json *value = config.getNonNull(pointer);
    if (!value)
      return fail(object, keyName(pointer) + " is missing", "rope type '" + shortened(type) + "' needs it"), 1;
    Expected<int64_t> whole = config.wholeNumber(pointer, *value, 1, maxContext);
    if (whole)
      return *whole;
    if (!failure)
      failure = whole.takeError();
    return 1;
  }

  Expected<RopeSpec> readOwnTheta() {
    rope.theta = section.number("theta");
    if (section.error())
      return *section.error();
    if (rope.theta <= 1)
      return Error{config.file(), "the base of a rotary table must be above 1, got " + json(rope.theta).dump(),
                   "take config.json from the published model"};
    return rope;
  }

  void readTheta() {
    const json *outer = config.getNonNull("/rope_theta");
    const json *inner = isParameters ? config.getNonNull(object + "/rope_theta") : nullptr;
    if (outer && inner && *outer != *inner)
      return fail("/rope_theta",
                  "rope_theta " + shortenedJson(*outer) + " differs from rope_parameters.rope_theta " +
                      shortenedJson(*inner),
                  "keep one of the two");
    std::string pointer = inner ? object + "/rope_theta" : "/rope_theta";
    const json *value = inner ? inner : outer;
    if (!value) {
      if (section.has("default_theta"))
        rope.theta = section.number("default_theta");
      else
        failure = Error{config.file(), "key 'rope_theta' is missing", "take config.json from the published model"};
      return;
    }
    Expected<double> theta = config.positiveNumber(pointer, *value);
    if (!theta)
      failure = theta.takeError();
    else if (*theta <= 1)
      fail(pointer, "rope_theta must be above 1, got " + shortenedJson(*value));
    else
      rope.theta = *theta;
  }

  /// `rope_type`, or `type` in older files.
  std::string readType() {
    const json *newName = config.getNonNull(object + "/rope_type");
    const json *oldName = config.getNonNull(object + "/type");
    if (newName && oldName && *newName != *oldName)
      return fail(object + "/rope_type",
                  "rope_type " + shortenedJson(*newName) + " differs from type " + shortenedJson(*oldName),
                  "keep one of the two"),
             "";
    const json *name = newName ? newName : oldName;
    if (name && name->is_string())
      return name->get<std::string>();
    if (!name && isParameters)
      return "default";
    return fail(object, keyName(object) + " must name its rope_type"), "";
  }

  void readScaling() {
    type = readType();
    if (failure || type == "default")
      return;
    if (type == "linear")
      rope.scaling = RopeLinear{number("factor")};
    else if (type == "dynamic")
      readDynamic();
    else if (type == "yarn")
      readYarn();
    else if (type == "llama3")
      readLlama3();
    else
      fail(object, "rope type '" + shortened(type) + "' is not in this build",
           "supported: default, dynamic, linear, llama3, yarn");
  }

  void readDynamic() {
    rope.scaling = RopeDynamic{number("factor")};
    rope.maxContext = maxPosition;
    if (config.getNonNull(object + "/original_max_position_embeddings"))
      if (int64_t original = context(); original != maxPosition)
        fail(object + "/original_max_position_embeddings",
             "rope type 'dynamic' with original_max_position_embeddings " + std::to_string(original) +
                 " beside max_position_embeddings " + std::to_string(maxPosition) + " is not in this build");
  }

  void readLlama3() {
    RopeLlama3 llama3{number("factor"), number("low_freq_factor"), number("high_freq_factor"), context()};
    if (!failure && llama3.highFrequencyFactor <= llama3.lowFrequencyFactor)
      fail(object + "/high_freq_factor", "high_freq_factor must be above low_freq_factor");
    rope.scaling = llama3;
  }

  void readYarn() {
    RopeYarn yarn;
    yarn.factor = number("factor");
    yarn.betaFast = number("beta_fast", 32);
    yarn.betaSlow = number("beta_slow", 1);
    yarn.originalContext = context();
    if (const json *truncate = config.getNonNull(object + "/truncate")) {
      if (!truncate->is_boolean())
        return fail(object + "/truncate", "truncate must be true or false");
      yarn.truncate = truncate->get<bool>();
    }
    if (!failure && yarn.betaFast < yarn.betaSlow)
      fail(object + "/beta_fast", "beta_fast must be at least beta_slow");
    rope.scaling = yarn;
    readMagnitudes(yarn.factor);
  }

  /// Magnitudes of YaRN: on cos and sin, and (latent attention) on the softmax
  /// scale.
  void readMagnitudes(double factor) {
    const json *one = config.getNonNull(object + "/mscale");
    const json *all = config.getNonNull(object + "/mscale_all_dim");
    bool isOne = one && *one != 0, isAll = all && *all != 0;
    if (isOne != isAll)
      return fail(object + (isOne ? "/mscale" : "/mscale_all_dim"), "mscale and mscale_all_dim must be given together",
                  "implementations disagree about one without the other");
    double mscale = isOne ? number("mscale") : 1;
    double allDim = isAll ? number("mscale_all_dim") : 0;
    double implied = yarnMagnitude(factor, mscale) / (isAll ? yarnMagnitude(factor, allDim) : 1);
    rope.cosSinScale = number("attention_factor", implied);
    if (isAll && section.has("attention_scale")) {
      double magnitude = yarnMagnitude(factor, allDim);
      rope.attentionScale = magnitude * magnitude;
    }
  }

  ConfigFile &config;
  Section &section;
  int64_t maxPosition;
  std::string object;
  bool isParameters = false;
  std::string type;
  RopeSpec rope;
  std::optional<Error> failure;
};

} // namespace

Expected<RopeSpec> k2c::readRope(ConfigFile &config, Section section, int64_t maxPosition) {
  return RopeReader(config, section, maxPosition).read();
}
