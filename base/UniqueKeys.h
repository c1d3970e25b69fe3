// JSON whose objects have each key once: readers disagree about which of two counts.
#ifndef K2C_BASE_UNIQUEKEYS_H
#define K2C_BASE_UNIQUEKEYS_H

#include "base/Utf8.h"
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace k2c {

/// Watches the parser for a key that occurs twice in one object, of which it would keep the last.
class UniqueKeys {
public:
  /// Throws Twice.
  bool operator()(int, nlohmann::json::parse_event_t event, const nlohmann::json &parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_end || event == Event::array_end) {
      levels.pop_back();
    } else if (event == Event::key) {
      levels.back().key = parsed.get<std::string>();
      if (!levels.back().keys.insert(levels.back().key).second)
        throw Twice{levels.back().key, path()};
    } else {
      if (!levels.empty())
        ++levels.back().element;
      if (event != Event::value)
        levels.push_back({event == Event::array_start, 0, "", {}});
    }
    return true;
  }

  /// The second one, and its place.
  struct Twice {
    std::string key, path;
  };

private:
  static constexpr size_t maxOfKey = 43; // in a path, which may have several
  struct Level {
    bool isList;
    size_t element; ///< counts from 1
    std::string key;
    std::set<std::string> keys;
  };

  std::string path() const {
    std::string text;
    for (const Level &level : levels)
      text += level.isList ? "[" + std::to_string(level.element - 1) + "]"
                           : (text.empty() ? "" : ".") + shortened(level.key, maxOfKey);
    return text;
  }

  std::vector<Level> levels;
};

} // namespace k2c

#endif
