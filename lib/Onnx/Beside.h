//===- Beside.h - what files beside a .onnx file say of its model ----------------------===//
#ifndef K2C_LIB_ONNX_BESIDE_H
#define K2C_LIB_ONNX_BESIDE_H

#include "k2c/Model/ModelSpec.h"

namespace k2c::onnx {

/// The file name of the decoder that genai_config.json of the folder states; "": there is no such file, or it states
/// none.
Expected<std::string> statedDecoder(const std::string &folder);

/// The model that config.json of the folder describes, if it is of a family that compiles; unknown keys are passed
/// over.
std::optional<ModelSpec> modelBeside(const std::string &folder);

/// Takes ids that begin and end a text, and the length of the longest sequence: from genai_config.json of the folder,
/// or else from generation_config.json, or else from config.json. Error: a number there that is not the decoder's.
/// `stated`: modelBeside.
Status addWhatIsBeside(ModelSpec &spec, const std::string &folder, const std::optional<ModelSpec> &stated);

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_BESIDE_H
