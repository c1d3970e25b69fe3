//===- Query.h - One published number by name and inputs ------------------===//
//
// `k2c plan --query FUNCTION --inputs JSON|@FILE`. Every published formula, and every formula of the planner, is a
// named function of JSON inputs, so that each can be asked, tested and compared with the papers alone. A subject
// (Count, Train, Serve, Schedule, Placement) lists its functions in its own file; lib/Formulas/Parts.h is the list of
// these files. Nothing that `k2c compile` runs includes a header of this folder.
//
// Inputs that leave a convention open take the papers' (as the golden numbers do); Compat::Exact takes the
// architecture's instead.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_FORMULAS_QUERY_H
#define K2C_FORMULAS_QUERY_H

#include "base/Json.h"
#include "k2c/Model/ModelSpec.h"
#include "k2c/Planner/Checked.h"
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace k2c {

/// Which convention holds where inputs do not say: the papers' with their quirks, or the architecture's.
enum class Compat : uint8_t { Paper, Exact };

/// The object of inputs while a function reads it. The first mistake is kept with its place and later reads return
/// harmless stand-ins, so a function reads everything and then asks `ok` once.
class QueryInputs {
public:
  /// Largest size, count or batch that a formula accepts: products of a few stay far from overflow in a double.
  static constexpr int64_t maxNumber = int64_t(1) << 40;

  /// `document` must outlive the inputs; `pointer` names the object in it.
  QueryInputs(const JsonDocument &document, Compat compat, std::string pointer = "");

  bool has(const std::string &key) const;
  /// A whole number from `min` to `max`; without `otherwise` the key must be there. 2.0 counts as 2.
  int64_t whole(const std::string &key, int64_t min = 1, int64_t max = maxNumber);
  int64_t whole(const std::string &key, std::optional<int64_t> otherwise, int64_t min, int64_t max = maxNumber);
  /// A finite number from `min` to `max`.
  double number(const std::string &key, double min, double max);
  double number(const std::string &key, std::optional<double> otherwise, double min, double max);
  bool flag(const std::string &key, bool otherwise);
  /// Index of the word among `words`, in any case; a remark in brackets does not count ("seed (as printed)" is "seed").
  size_t word(const std::string &key, const std::vector<std::string> &words,
              std::optional<size_t> otherwise = std::nullopt);
  /// Numbers of a list, each from `min` to `max`.
  std::vector<double> numbers(const std::string &key, double min, double max, size_t maxItems);
  /// A model: a published one by name (publishedModels), a path with a slash or ending in .json, or the object of a
  /// config.json itself. Null after a mistake.
  const ModelSpec *model(const std::string &key = "model");
  /// The object at `key`; its first mistake becomes ours when it goes out of use.
  QueryInputs object(const std::string &key);
  /// Raw value, or null when absent. Like all readers, it counts as reading the key; `has` does not.
  const nlohmann::json *raw(const std::string &key) const;

  Compat compat() const { return state->compat; }
  bool isPaper() const { return state->compat == Compat::Paper; }

  bool ok() const { return !state->failure; }
  const Error &error() const { return *state->failure; }
  /// The first key, of the inputs or of an object that was opened in them, that nothing has read; its place and what is
  /// read beside it. Keys in `ignored` do not count.
  std::optional<Error> unread(const std::set<std::string> &ignored) const;
  /// Records a mistake at `key`.
  void fail(const std::string &key, const std::string &message, const std::string &remedy = "");

private:
  struct State {
    Compat compat;
    std::optional<Error> failure;
    std::vector<std::unique_ptr<ModelSpec>> models;
    std::vector<std::string> opened;                      ///< pointers of objects
    std::map<std::string, std::vector<std::string>> read; ///< keys by the pointer of their object
  };
  QueryInputs(const JsonDocument &document, std::shared_ptr<State> state, std::string pointer);

  const JsonDocument *document;
  std::shared_ptr<State> state;
  std::string pointer;
  const nlohmann::json *values = nullptr;
};

/// What a function answers: its value in base units (parameters, bytes, FLOP, seconds, tokens/s), and parts that a
/// quantity selects. A function without a single value (a schedule, a placement) answers fields only.
struct QueryAnswer {
  nlohmann::ordered_json value;
  /// Part name (with its unit: "moe_bytes") -> number.
  nlohmann::ordered_json parts = nlohmann::ordered_json::object();
  /// Printed as they are; only without a value.
  nlohmann::ordered_json fields;

  QueryAnswer() = default;
  template <class T> explicit QueryAnswer(T number) : value(number) {}
  /// Poisoned by overflow: the value is null, which `answerQuery` reports.
  explicit QueryAnswer(Checked number);
  /// Adds a part; the first one is also the value when there is none yet.
  QueryAnswer &part(const std::string &name, Checked number);
  QueryAnswer &part(const std::string &name, double number);
};

/// One function of the table.
struct QueryFunction {
  std::string name;
  std::string unit;   ///< of the value
  std::string source; ///< paper and section
  std::string keys;   ///< of its inputs, by spaces
  QueryAnswer (*answer)(QueryInputs &);
};

/// All functions of all parts, by name.
const std::vector<QueryFunction> &queryFunctions();

/// Options of one question.
struct QueryOptions {
  /// The part of the answer that is asked for, by its exact name; empty: its value. What names no part is an error,
  /// even where there are none; as the key "quantity" of the inputs it is then a remark.
  std::string quantity;
  Compat compat = Compat::Paper;
  bool withParts = false; ///< answer {"value":x,"parts":{..}}
};

/// Answers {"value":x}, or the function's own fields. Errors, with the place in the inputs: an unknown function, key or
/// quantity; a missing or wrong input; a result that is not a finite number or exceeds 2^63.
Expected<nlohmann::ordered_json> answerQuery(const std::string &function, const JsonDocument &inputs,
                                             const QueryOptions &options = {});

} // namespace k2c

#endif // K2C_FORMULAS_QUERY_H
