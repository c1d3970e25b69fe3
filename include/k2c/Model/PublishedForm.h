//===- PublishedForm.h - a model as a published family has it -------------===//
#ifndef K2C_MODEL_PUBLISHEDFORM_H
#define K2C_MODEL_PUBLISHEDFORM_H

#include "k2c/Model/ModelSpec.h"
#include <nlohmann/json.hpp>

namespace k2c {

/// What two descriptions of one model have in common, as JSON: all that decides what is computed, and of each weight
/// family its role, shape and layers. Names of kinds, attentions, rotary tables and tensors are left out, and so are
/// numbers that change nothing: groups that leave no chosen expert out, what ranks them, what is added to a sum that
/// nothing is divided by.
nlohmann::json sameModelJson(const ModelSpec &spec);

/// A model in the words of a family of models/families.
struct PublishedForm {
  std::string config; ///< the text of its config.json
  ModelSpec spec;     ///< what that is read as, with the types of weights that the model has
};

/// Finds the family that compiles and describes just this model: the one of the model_type `preferred` if it does, else
/// the first in the order of models/families/compile.yaml. Error: none does; what the nearest has of which the model
/// has something else.
Expected<PublishedForm> publishedForm(const ModelSpec &spec, const std::string &preferred = "");

} // namespace k2c

#endif // K2C_MODEL_PUBLISHEDFORM_H
