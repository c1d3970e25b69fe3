//===- QueryTest.cpp - Questions, their answers and their errors --------------===//
#include "k2c/Planner/Query.h"

#include <gtest/gtest.h>

using namespace k2c;

namespace {

Expected<nlohmann::ordered_json> ask(const std::string &function, const std::string &inputs,
                                     const std::string &quantity = "") {
  Expected<JsonDocument> document = parseJson(inputs, "inputs");
  EXPECT_TRUE(document);
  QueryOptions options;
  options.quantity = quantity;
  return answerQuery(function, *document, options);
}

std::string errorOf(const std::string &function, const std::string &inputs, const std::string &quantity = "") {
  Expected<nlohmann::ordered_json> answer = ask(function, inputs, quantity);
  return answer ? "no error" : answer.error().text();
}

} // namespace

TEST(Query, AnswersAValue) {
  EXPECT_EQ(ask("mtp_tokens_per_step", R"({"acceptance": 0.5, "depth": 2})")->dump(), R"({"value":1.75})");
}

TEST(Query, NamesAnUnknownFunction) {
  EXPECT_NE(errorOf("no_such", "{}").find("--query: there is no function 'no_such'; known: "), std::string::npos);
}

TEST(Query, NamesAMissingInput) {
  EXPECT_EQ(errorOf("mtp_tokens_per_step", R"({"depth": 2})"),
            "inputs:1:1: 'acceptance' is missing; give a number of at least 0.0");
}

TEST(Query, NamesAnInputOutOfRange) {
  EXPECT_EQ(errorOf("mtp_tokens_per_step", R"({"depth": 2, "acceptance": 1.5})"),
            "inputs:1:14: 'acceptance' must be 0.0 to 1.0, got 1.5");
}

TEST(Query, RefusesAKeyThatNoFunctionReads) {
  EXPECT_EQ(errorOf("mtp_tokens_per_step", R"({"depth": 2, "acceptance": 1, "dept": 3})"),
            "inputs:1:31: unknown input 'dept'; mtp_tokens_per_step reads: acceptance depth");
}

TEST(Query, RefusesInputsThatAreNoObject) {
  EXPECT_EQ(errorOf("mtp_tokens_per_step", "[1]"),
            "inputs:1:1: the inputs are not a JSON object; mtp_tokens_per_step reads: acceptance depth");
}
