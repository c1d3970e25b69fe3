//===- QuantizationConfig.h - quantization_config of a config.json --------===//
#ifndef K2C_LIB_MODEL_QUANTIZATIONCONFIG_H
#define K2C_LIB_MODEL_QUANTIZATIONCONFIG_H

#include "ConfigFile.h"
#include "k2c/Model/ModelSpec.h"

namespace k2c {

/// OpenAI's MXFP4 experts: 4-bit values with a scale for each 32.
bool isMicroScaled(ConfigFile &config);

/// DeepSeek's FP8 blocks are understood; everything else is refused by name.
Expected<std::optional<BlockScales>> readQuantization(ConfigFile &config);

/// What quantization_config leaves alone; transformers and vLLM name the list differently.
Expected<std::vector<std::string>> readUnquantized(ConfigFile &config);

} // namespace k2c

#endif // K2C_LIB_MODEL_QUANTIZATIONCONFIG_H
