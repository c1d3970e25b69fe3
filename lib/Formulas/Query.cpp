//===- Query.cpp - The table of queries and its answers -------------------===//

#include "k2c/Formulas/Query.h"

#include "Parts.h"
#include "base/Utf8.h"
#include "k2c/Support/Join.h"
#include <algorithm>
#include <cmath>

using namespace k2c;
using nlohmann::json;
using nlohmann::ordered_json;

QueryAnswer::QueryAnswer(Checked number) {
  if (number.isValid())
    value = number.value();
}

QueryAnswer &QueryAnswer::part(const std::string &name, Checked number) {
  parts[name] = number.isValid() ? ordered_json(number.value()) : ordered_json();
  if (value.is_null() && parts.size() == 1)
    value = parts[name];
  return *this;
}

QueryAnswer &QueryAnswer::part(const std::string &name, double number) {
  parts[name] = number;
  if (value.is_null() && parts.size() == 1)
    value = parts[name];
  return *this;
}

static std::vector<QueryFunction> makeTable() {
  std::vector<QueryFunction> table;
  for (auto part :
       {formulas::countQueries, formulas::trainQueries, formulas::expertQueries, formulas::serveQueries,
        formulas::scheduleQueries, formulas::placementQueries, formulas::affinityQueries, formulas::routedPeakQueries})
    for (QueryFunction &function : part())
      table.push_back(std::move(function));
  std::sort(table.begin(), table.end(), [](const QueryFunction &a, const QueryFunction &b) { return a.name < b.name; });
  return table;
}

const std::vector<QueryFunction> &k2c::queryFunctions() {
  static const std::vector<QueryFunction> table = makeTable();
  return table;
}

namespace {

std::vector<std::string> split(const std::string &keys) {
  std::vector<std::string> list;
  for (size_t at = 0; at < keys.size();) {
    size_t end = std::min(keys.find(' ', at), keys.size());
    if (end > at)
      list.push_back(keys.substr(at, end - at));
    at = end + 1;
  }
  return list;
}

/// Words of the golden files that say how a number was made and change nothing.
const std::set<std::string> remarks = {"quantity", "note"};

/// A key that the function does not know: a slip of the pen, or an input of another function, which would be dropped.
Status checkKeys(const QueryFunction &function, const JsonDocument &inputs) {
  const std::vector<std::string> known = split(function.keys);
  for (const auto &[key, value] : inputs.root().items())
    if (!remarks.count(key) && std::find(known.begin(), known.end(), key) == known.end())
      return Error{inputs.place("/" + escapeJsonPointer(key)), "unknown input '" + shortened(key) + "'",
                   function.name + " reads: " + function.keys};
  return Status::success();
}

const QueryFunction *find(const std::string &name) {
  for (const QueryFunction &function : queryFunctions())
    if (function.name == name)
      return &function;
  return nullptr;
}

/// The keys of an object, "a, b, c", for messages.
std::string namesOf(const ordered_json &fields) {
  return joined(fields.items(), [](const auto &field) { return field.key(); });
}

Error noQuantity(const std::string &function, const std::string &quantity, const std::string &remedy) {
  return {"--quantity", function + " has no quantity '" + shortened(quantity) + "'", remedy};
}

bool isNumber(const ordered_json &value) {
  return value.is_number_integer() || (value.is_number() && std::isfinite(value.get<double>())) || value.is_boolean();
}

} // namespace

Expected<ordered_json> k2c::answerQuery(const std::string &name, const JsonDocument &inputs,
                                        const QueryOptions &options) {
  const QueryFunction *function = find(name);
  if (!function)
    return Error{"--query", "there is no function '" + shortened(name) + "'",
                 "known: " + joined(queryFunctions(), [](const QueryFunction &each) { return each.name; })};
  if (!inputs.root().is_object())
    return Error{inputs.place(""), "the inputs are not a JSON object", name + " reads: " + function->keys};
  if (Status status = checkKeys(*function, inputs); !status)
    return status.takeError();
  QueryInputs reader(inputs, options.compat);
  const bool isAsked = !options.quantity.empty();
  std::string quantity = options.quantity;
  if (const json *said = reader.raw("quantity"); said && said->is_string() && !isAsked)
    quantity = said->get<std::string>();
  QueryAnswer answer = function->answer(reader);
  if (!reader.ok())
    return reader.error();
  if (std::optional<Error> error = reader.unread(remarks))
    return *error;
  if (!answer.fields.is_null() && isAsked)
    return noQuantity(name, quantity, "it answers " + namesOf(answer.fields) + " at once: leave --quantity out");
  if (!answer.fields.is_null())
    return answer.fields;
  ordered_json value = answer.value;
  // In the inputs, a quantity of one number is a remark.
  if (isAsked || (!quantity.empty() && answer.parts.size() > 1)) {
    auto part = answer.parts.find(quantity);
    if (part == answer.parts.end())
      return noQuantity(name, quantity,
                        answer.parts.empty() ? "it answers one number: leave --quantity out"
                                             : "its quantities: " + namesOf(answer.parts));
    value = *part;
  }
  if (!isNumber(value))
    return Error{inputs.place(""), name + " of these inputs is beyond the numbers k2c counts in (2^63)",
                 "give smaller inputs"};
  ordered_json result = {{"value", value}};
  if (options.withParts)
    result["parts"] = answer.parts;
  return result;
}
