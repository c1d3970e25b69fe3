// What JsonWriter writes is JSON, and reads back as what was said.
#include "run/JsonWriter.h"
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

/// The text that `write` makes of an empty document.
template <class Write> std::string written(Write write) {
  char *text = nullptr;
  size_t size = 0;
  FILE *file = ::open_memstream(&text, &size);
  JsonWriter writer(file);
  write(writer);
  std::fclose(file);
  std::string result(text, size);
  std::free(text);
  return result;
}

} // namespace

TEST(JsonWriter, EveryCharacterComesBack) {
  std::string all;
  for (int c = 0; c < 128; ++c)
    all += static_cast<char>(c);
  for (const std::string &text :
       {all, std::string("\\"), std::string("\\\\n"), std::string("\""), std::string("a\\\"b\\"), std::string("\x7f"),
        std::string("h\u00e9 \u4e2d\u6587 \U0001f600"), std::string()}) {
    EXPECT_EQ(json::parse(written([&](JsonWriter &to) { to.value(text); })), json(text));
    EXPECT_EQ(json::parse(written([&](JsonWriter &to) { to.beginObject().key(text).value(1).endObject(); })),
              json({{text, 1}}));
  }
}

TEST(JsonWriter, EscapesAreThoseOfJson) {
  EXPECT_EQ(written([](JsonWriter &to) { to.value("a\\b\"c\nd\te\x01\x7f/"); }), R"("a\\b\"c\nd\u0009e\u0001\u007f/")");
}

TEST(JsonWriter, CommasStandBetweenValuesOnly) {
  EXPECT_EQ(written([](JsonWriter &to) {
              to.beginList().value(1).beginList().endList().beginObject().key("a").value("b").key("c").beginList();
              to.value(2).value(3).endList().endObject().raw("null").endList().endLine();
            }),
            "[1,[],{\"a\":\"b\",\"c\":[2,3]},null]\n");
}

TEST(JsonWriter, NumbersComeBack) {
  const float floats[] = {
      0.1f, -0.0f, 1.0f / 3.0f, 16777216.0f, std::numeric_limits<float>::min(), std::numeric_limits<float>::max()};
  const json read = json::parse(written([&](JsonWriter &to) { to.list(floats, 6); }));
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(read[i].get<float>(), floats[i]);
  const double third = 1.0 / 3.0;
  EXPECT_EQ(json::parse(written([&](JsonWriter &to) { to.value(third); })), json(third));
  EXPECT_EQ(written([](JsonWriter &to) { to.value(std::numeric_limits<int64_t>::min()); }), "-9223372036854775808");
  EXPECT_EQ(written([](JsonWriter &to) { to.beginList().value(NAN).value(double(INFINITY)).endList(); }),
            "[null,null]");
}
