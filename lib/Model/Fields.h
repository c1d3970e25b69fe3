//===- Fields.h - the values a config gives to a family's fields ----------===//
#ifndef K2C_LIB_MODEL_FIELDS_H
#define K2C_LIB_MODEL_FIELDS_H

#include "ConfigFile.h"
#include "Family.h"

#include <variant>

namespace k2c {

using FieldValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>>;

/// "8", "1e-06", "true", "silu".
std::string toText(const FieldValue &value);

/// Field name -> value. In expressions flags count as 0 and 1, lists as their lengths.
class Fields {
public:
  void set(const std::string &name, FieldValue value) { values[name] = std::move(value); }

  bool has(const std::string &name) const { return values.count(name); }
  /// Value of an integer expression.
  Expected<int64_t> integer(const std::string &expression) const;
  /// The layers a list names; none for a field that is no list.
  std::vector<int64_t> indices(const std::string &name) const;
  /// Value of a text: a field, a literal, an expression, else a word.
  Expected<FieldValue> resolve(const std::string &text) const;
  /// `text` with every {field} replaced by its value.
  std::string fill(const std::string &text) const;

private:
  /// The list "from to END step STEP".
  Expected<FieldValue> members(const std::string &from, const std::string &to, const std::string &step) const;

  std::map<std::string, FieldValue> values;
};

/// Reads all keys of a family in order and checks its facts. `places` receives
/// where each field was read.
Expected<Fields> readFields(ConfigFile &config, const Family &family, std::map<std::string, ConfigPlace> &places);

/// The entries of one section; an entry that the file leaves out takes the
/// field of its name. The first failure is kept and values read after it are
/// meaningless, so a reader checks `status` once.
class Section {
public:
  /// `where` names it in errors.
  Section(const Entries &entries, const Fields &fields, std::string where)
      : entries(entries), fields(fields), where(std::move(where)) {}

  bool has(const std::string &entry) const { return entries.count(entry); }
  int64_t size(const std::string &entry);
  /// Of an entry that not every family has.
  int64_t sizeOr(const std::string &entry, int64_t otherwise);
  double number(const std::string &entry);
  bool flag(const std::string &entry);
  std::string word(const std::string &entry);
  /// The value of `words` that the entry names.
  template <class T> T oneOf(const std::string &entry, const std::map<std::string, T> &words) {
    auto at = words.find(word(entry));
    if (at == words.end())
      return fail(entry, "has an unknown value"), T{};
    return at->second;
  }

  const std::optional<Error> &error() const { return failure; }

private:
  FieldValue value(const std::string &entry);
  void fail(const std::string &entry, const std::string &why);

  const Entries &entries;
  const Fields &fields;
  std::string where;
  std::optional<Error> failure;
};

} // namespace k2c

#endif // K2C_LIB_MODEL_FIELDS_H
