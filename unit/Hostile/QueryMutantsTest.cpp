//===- QueryMutantsTest.cpp - inputs of the planner that lie --------------===//
//
// Every item of test/Planner/golden_public.json that names a function, its inputs damaged or put to another model: the
// answer is a number that is not negative, or one message that names its place.
//
//===----------------------------------------------------------------------===//
#include "../Model/TestFiles.h"
#include "Mutator.h"
#include "k2c/Formulas/Query.h"

#include <ctime>
#include <set>

using namespace k2c;
using namespace k2c::test;
using nlohmann::json;

namespace {

constexpr double maxSeconds = 5; // of the processor; a question takes milliseconds, trials of a router the longest

struct Question {
  std::string function, quantity, inputs;
  bool operator<(const Question &other) const {
    return std::tie(function, inputs) < std::tie(other.function, other.inputs);
  }
};

/// One question for each function and inputs of the golden files, schedules and placements among them.
std::set<Question> questions() {
  std::set<std::string> functions;
  for (const QueryFunction &function : queryFunctions())
    functions.insert(function.name);
  auto read = [](const char *name) {
    return json::parse(readFile(std::string(K2C_SOURCE_DIR "/test/Planner/") + name));
  };
  std::set<Question> list;
  const json items = read("golden_public.json"), schedules = read("schedule_public.json"),
             placements = read("eplb_public.json");
  for (const json &item : items["items"])
    if (item["function"].is_string() && functions.count(item["function"]))
      list.insert({item["function"], item["quantity"], item["inputs"].dump()});
  for (const json &item : schedules["cases"]) {
    json inputs = {{"durations", item["simulation"][0]["durations"]}};
    for (const char *key : {"schedule", "pp", "microbatches", "v"})
      if (item.contains(key))
        inputs[key] = item[key];
    list.insert({"schedule", "", inputs.dump()});
  }
  for (const json &item : placements["cases"])
    list.insert({"eplb", "", item["inputs"].dump()});
  return list;
}

/// Asks and judges; true when there was an answer.
bool judge(const Question &question, const std::string &inputs) {
  const std::clock_t begin = std::clock();
  Expected<JsonDocument> document = parseJson(inputs, "inputs");
  QueryOptions options;
  Expected<nlohmann::ordered_json> answer =
      document ? answerQuery(question.function, *document, options) : document.takeError();
  const double took = double(std::clock() - begin) / CLOCKS_PER_SEC;
  const std::string asked = question.function + " " + inputs.substr(0, 400);
  EXPECT_LT(took, maxSeconds) << asked;
  if (!answer) {
    EXPECT_EQ(answer.error().text().find('\n'), std::string::npos) << asked;
    EXPECT_NE(answer.error().where, "") << asked;
    return false;
  }
  if (answer->contains("value")) {
    EXPECT_GE((*answer)["value"].get<double>(), 0) << asked;
  }
  return true;
}

TEST(QueryMutants, HaveAnAnswerOrAPlace) {
  int answered = 0, refused = 0;
  uint32_t seed = 0;
  for (const Question &question : questions())
    for (int round = 0; round < 12; ++round, ++seed)
      ++(judge(question, Mutator(seed).json(question.inputs)) ? answered : refused);
  std::cout << answered << " mutants answered, " << refused << " refused\n";
  EXPECT_GT(answered, 300);
  EXPECT_GT(refused, 1500);
}

TEST(QueryMutants, OfEveryModelHaveAnAnswerOrAPlace) {
  int answered = 0;
  for (const Question &question : questions()) {
    json inputs = json::parse(question.inputs);
    if (!inputs.contains("model") || question.function.rfind("mc_", 0) == 0)
      continue;
    for (const std::string &model : publishedModels()) {
      inputs["model"] = model;
      answered += judge(question, inputs.dump());
    }
  }
  EXPECT_GT(answered, 1000);
}

} // namespace
