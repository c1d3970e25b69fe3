//===- Source.h - What a user's SOURCE names ----------------------------------===//
#ifndef K2C_MODEL_SOURCE_H
#define K2C_MODEL_SOURCE_H

#include "k2c/Model/ModelSpec.h"
#include <string>

namespace k2c {

/// The folder or file that `source` names: a path (of a folder models--org--name: its snapshot), or org/name in the
/// Hugging Face cache ($HF_HUB_CACHE, else $HUGGINGFACE_HUB_CACHE, else hub in $HF_HOME, else ~/.cache/huggingface/hub;
/// ~ in them is the home folder). Nothing is downloaded.
/// Error: neither is there, or the format is not read.
Expected<std::string> resolveSource(const std::string &source);

/// The description of a model, read for planning: of what resolveSource finds, or a published configuration by its name
/// (loadPublishedModel). What has a '/', but is no name of the hub, or ends in .json, .gguf or .onnx is never the name
/// of a published one.
Expected<ModelSpec> loadModelToPlan(const std::string &source);

} // namespace k2c

#endif // K2C_MODEL_SOURCE_H
