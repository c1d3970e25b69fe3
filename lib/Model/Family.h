//===- Family.h - a families file as data ---------------------------------===//
#ifndef K2C_LIB_MODEL_FAMILY_H
#define K2C_LIB_MODEL_FAMILY_H

#include "k2c/Model/ModelSpec.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace k2c {

enum class KeyKind { Size, Count, Number, Share, Flag, Word, Indices, Where };

/// What one key of config.json means.
struct KeyRule {
  std::string key; ///< "hidden_size", or "ffn_config.moe_top_k" for a nested one
  std::string field;
  KeyKind kind = KeyKind::Size;
  std::optional<std::string> defaultText; ///< an expression or a literal
  std::optional<std::string> nullText;    ///< "default", or what null stands for
  std::vector<std::string> oneOf;         ///< empty: any value
  std::string of;                         ///< Share, Where: the field of the whole, of the length
  std::string is;                         ///< Where: the value that is looked for
  int64_t max = INT32_MAX;
};

/// A fact between fields.
struct CheckRule {
  std::string that;
  std::string at; ///< the key it is reported at
  std::string say;
};

/// Layers [from, to): those whose index leaves `at` when divided by `every` are of `kind`, the others of kind
/// `otherwise`.
struct LayerRule {
  LayerKind kind;
  std::string from;
  std::string to;
  std::string every;
  std::string at;
  LayerKind otherwise;
  std::string except; ///< a list of layers that are of kind `otherwise` whatever their number
};

/// Words that mean the same in every file, so that no attention or rotary table can be called so: layers that weights
/// are over, and the table of a kind that rotates nothing.
inline constexpr std::string_view layerNames[] = {"all", "dense", "moe"}, noTable = "none";

inline bool namesLayers(const std::string &word) {
  return std::find(std::begin(layerNames), std::end(layerNames), word) != std::end(layerNames);
}

struct WeightRule {
  std::string id;
  std::string tensors;
  std::string over; ///< "", "all", a feed-forward part ("dense", "moe") or the name of an attention
  std::string experts;
  std::vector<std::string> shape;
  std::string when;
  std::string dtype;
  bool blocks = false;
  bool microScales = false;
  bool lookup = false;
  std::string from; ///< of the layers, "": the first
  std::string to;   ///< "": the last
  bool buffer = false;
  std::string place;
};

struct IgnoreRule {
  std::string tensors;
  std::string from;
  std::string to;
  std::string when;
  std::string onlyWith;
};

/// The entries of a section: expressions of fields.
using Entries = std::map<std::string, std::string>;

/// One families file.
struct Family {
  std::string name;
  std::string file;
  std::vector<std::string> modelTypes;
  std::vector<std::string> architectures;
  std::vector<KeyRule> keys;
  std::vector<CheckRule> checks;
  std::map<std::string, Entries> sections; ///< "model", "mlp", "moe"
  /// By name; an entry that one of `attentions` or `ropes` leaves out is that of the section `attention` or `rope`.
  std::map<std::string, Entries> attentions, ropes;
  std::vector<LayerRule> layers;
  std::vector<WeightRule> weights;
  std::vector<WeightRule> mtp; ///< of one module of multi-token prediction
  std::vector<IgnoreRule> ignore;
  TiktokenSpec tiktoken;
};

/// Keys that change nothing at inference.
struct HarmlessKeys {
  std::vector<std::string> any;
  /// Harmless with these values (as JSON text) only.
  std::map<std::string, std::vector<std::string>> only;
};

/// Parses the text of a families file.
Expected<Family> parseFamily(const std::string &text, const std::string &file);

/// Parses the text of harmless-keys.yaml.
Expected<HarmlessKeys> parseHarmlessKeys(const std::string &text, const std::string &file);

/// The families built into this program, sorted by name; parsed once.
const Expected<std::vector<Family>> &builtInFamilies();

/// The family of a model_type alone, parsed when first asked for, since a program reads one model; all families when
/// none lists it.
const Expected<std::vector<Family>> &builtInFamiliesOf(const std::string &modelType);
const Expected<HarmlessKeys> &builtInHarmlessKeys();

/// Names of the families that compile (models/families/compile.yaml).
const Expected<std::vector<std::string>> &compiledFamilies();

} // namespace k2c

#endif // K2C_LIB_MODEL_FAMILY_H
