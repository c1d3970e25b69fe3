//===- QuantizationConfig.cpp - quantization_config of a config.json ------===//
#include "QuantizationConfig.h"
#include "base/JsonText.h"

using namespace k2c;
using nlohmann::json;

bool k2c::isMicroScaled(ConfigFile &config) {
  const json *method = config.getNonNull("/quantization_config/quant_method");
  return method && *method == "mxfp4";
}

Expected<std::optional<BlockScales>> k2c::readQuantization(ConfigFile &config) {
  const char *root = "/quantization_config";
  const json *object = config.getNonNull(root);
  if (!object)
    return std::optional<BlockScales>();
  if (!object->is_object())
    return config.error(root, "quantization_config must be an object or null");
  auto member = [&](const char *key) {
    const json *value = config.getNonNull(std::string(root) + "/" + key);
    return value ? *value : json();
  };
  json method = member("quant_method"), format = member("fmt");
  if (method != "fp8")
    return config.error(root, "quantization method " + shortenedJson(method) + " is not in this build",
                        "supported: \"fp8\" in blocks");
  if (format != "e4m3" && format != "float8_e4m3fn")
    return config.error(root, "FP8 format " + shortenedJson(format) + " is not in this build",
                        "supported: \"e4m3\", \"float8_e4m3fn\"");
  if (json scheme = member("activation_scheme"); scheme != "dynamic")
    return config.error(root, "activation_scheme " + shortenedJson(scheme) + " is not in this build",
                        "supported: \"dynamic\"");
  json scale = member("scale_fmt");
  if (!scale.is_null() && scale != "ue8m0")
    return config.error(root, "scale_fmt " + shortenedJson(scale) + " is not in this build",
                        "supported: \"ue8m0\" or none");
  json sizes = member("weight_block_size");
  BlockScales blocks;
  if (sizes != json::array({blocks.rows, blocks.columns}))
    return config.error(root, "weight_block_size " + shortenedJson(sizes) + " is not in this build",
                        "supported: [128, 128]");
  return std::optional<BlockScales>(blocks);
}

Expected<std::vector<std::string>> k2c::readUnquantized(ConfigFile &config) {
  std::vector<std::string> modules;
  for (const char *key : {"/quantization_config/modules_to_not_convert", "/quantization_config/ignored_layers"})
    if (const json *list = config.getNonNull(key)) {
      auto isWord = [](const json &entry) {
        return entry.is_string() && !entry.get_ref<const std::string &>().empty();
      };
      if (!list->is_array() || !std::all_of(list->begin(), list->end(), isWord))
        return config.error(key, keyName(key) + " must be a list of names");
      modules.insert(modules.end(), list->begin(), list->end());
    }
  return modules;
}
