// What DIR/run draws and how well it predicts: flags, seeds and batch files of generate; perplexity.
#include "fake/FakeBundle.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

/// log of the sum of exp over a row.
double logSum(const std::vector<float> &row) {
  double sum = 0;
  for (float x : row)
    sum += std::exp(double(x));
  return std::log(sum);
}

} // namespace

// Each flag reaches the draw as itself, and so does the position: another in its place would draw other tokens.
TEST(Run, EachSamplingFlagDrawsAsItShould) {
  FakeBundle fake;
  struct Case {
    std::vector<std::string> flags;
    k2rt_ir_sampling parameters; // temperature, top_p, min_p, top_k, seed
  };
  const Case cases[] = {{{"--temperature", "5", "--seed", "3"}, {5, 1, 0, 0, 3, 0, 0}},
                        {{"--temperature", "0.5"}, {0.5f, 1, 0, 0, 0, 0, 0}},
                        {{"--temperature", "1", "--top-p", "0.4"}, {1, 0.4f, 0, 0, 0, 0, 0}},
                        {{"--temperature", "1", "--min-p", "0.28"}, {1, 1, 0.28f, 0, 0, 0, 0}},
                        {{"--temperature", "1", "--top-k", "9"}, {1, 1, 0, 9, 0, 0, 0}},
                        {{"--temperature", "2", "--top-k", "60", "--top-p", "0.9", "--min-p", "0.3", "--seed", "9"},
                         {2, 0.9f, 0.3f, 60, 9, 0, 0}}};
  std::set<std::vector<int32_t>> all;
  for (const Case &test : cases) {
    std::vector<std::string> words = {"generate", "--prompt-ids", "1,2", "-n", "30", "--ignore-eos", "--json"};
    words.insert(words.end(), test.flags.begin(), test.flags.end());
    const std::vector<int32_t> ids = runJson(fake, words)["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(ids, fakeDraws({1, 2}, 30, 1, test.parameters)) << test.flags[2 % test.flags.size()];
    EXPECT_TRUE(all.insert(ids).second) << "two cases draw the same";
  }
}

TEST(Run, SamplingIsReproducible) {
  FakeBundle fake;
  const std::vector<std::string> arguments = {
      "generate", "--prompt-ids", "1,2", "-n", "12", "--ignore-eos", "--temperature", "5", "--seed", "3", "--json"};
  std::vector<std::string> chunked = arguments;
  chunked.insert(chunked.end(), {"--chunk", "1", "--threads", "4", "--logprobs", "2"});
  const json once = runJson(fake, arguments), again = runJson(fake, chunked);
  const std::vector<int32_t> ids = once["ids"].get<std::vector<int32_t>>();
  EXPECT_EQ(ids, fakeDraws({1, 2}, 12, 1, {5, 1, 0, 0, 3, 0, 0}));
  EXPECT_EQ(again["ids"], once["ids"]);
  ASSERT_EQ(again["logprobs"].size(), 12u);
  std::vector<int32_t> history = {1, 2};
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::vector<float> row = fakeLogits(history, std::vector<int32_t>(history.size(), 1));
    const json &entry = again["logprobs"][i];
    EXPECT_EQ(entry["id"], ids[i]);
    EXPECT_NEAR(entry["logprob"], double(row[ids[i]]) - logSum(row), 1e-6) << "not of the drawn token";
    ASSERT_EQ(entry["top"].size(), 2u);
    EXPECT_EQ(entry["top"][0]["id"], std::max_element(row.begin(), row.end()) - row.begin());
    EXPECT_EQ(entry["top"][1]["id"], 96);
    history.push_back(ids[i]);
  }
}

TEST(Run, ABatchEntryMayHaveItsSeed) {
  FakeBundle fake;
  fake.writeFile("batch.json", R"([[1,2],{"ids":[1,2],"seed":3},[4],{"ids":[1,2]},{"seed":18446744073709551615,
                                  "ids":[1,2]},{"ids":[1,2],"seed":3},{"ids":[1,2],"seed":0}])");
  const json batch = runJson(fake, {"generate", "--batch-file", fake.path("batch.json"), "-n", "9", "--ignore-eos",
                                    "--json", "--temperature", "5", "--seed", "11"});
  ASSERT_EQ(batch.size(), 7u) << batch;
  const uint64_t seeds[] = {11, 3, 11, 11, UINT64_MAX, 3, 0};
  for (size_t i = 0; i < 7; ++i) {
    const std::vector<int32_t> prompt = i == 2 ? std::vector<int32_t>{4} : std::vector<int32_t>{1, 2};
    EXPECT_EQ(batch[i]["prompt_ids"], json(prompt));
    EXPECT_EQ(batch[i]["ids"], json(fakeDraws(prompt, 9, 1, {5, 1, 0, 0, seeds[i], 0, 0}))) << i;
  }
  EXPECT_EQ(batch[1]["ids"], batch[5]["ids"]) << "the same prompt and seed, elsewhere in the file";
}

TEST(Run, ABatchFileOfAnotherShapeIsRefused) {
  FakeBundle fake;
  const std::pair<const char *, const char *> cases[] = {
      {"{}", "batch.json: is not a list of at least one prompt"},
      {"[]", "batch.json: is not a list of at least one prompt"},
      {"[[1],7]", "[1]: is not a list of token ids"},
      {"[[1,\"2\"]]", "[0]: has an element that is no token id"},
      {"[[2147483648]]", "[0]: has an element that is no token id"},
      {R"([{"ids":7}])", "[0].ids: is not a list of token ids"},
      {R"([{"ids":[1,2.5]}])", "[0].ids: has an element that is no token id"},
      {R"([[1],{"seed":7}])", "[1]: has no ids"},
      {R"([{"ids":[1],"sed":7}])", "[0]: has the key \"sed\"; an entry has ids and seed"},
      {R"([{"ids":[1],"seed":-1}])", "[0].seed: is not a whole number from 0 to 18446744073709551615"},
      {R"([{"ids":[1],"seed":7.0}])", "[0].seed: is not a whole number from 0 to 18446744073709551615"},
      {R"([{"ids":[1],"seed":"7"}])", "[0].seed: is not a whole number from 0 to 18446744073709551615"},
      {R"([{"ids":[1],"seed":18446744073709551616}])", "[0].seed: is not a whole number from 0 to"},
      {R"([{"ids":[1],"seed":null}])", "[0].seed: is not a whole number from 0 to"},
      {R"([{"ids":[]}])", "[0]: the prompt has no tokens"}};
  for (const auto &[text, message] : cases) {
    fake.writeFile("batch.json", text);
    const Outcome outcome = runBundle(fake, {"generate", "--batch-file", fake.path("batch.json"), "-n", "1"});
    EXPECT_EQ(outcome.exitCode, 1) << text;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    const bool isShape = std::string(message).find("no tokens") == std::string::npos;
    const std::string remedy = R"(write [[1,2,3],{"ids":[4,5],"seed":7}])";
    EXPECT_EQ(outcome.err.find(remedy) != std::string::npos, isShape) << outcome.err;
  }
}

// -log p of each token under the logits after the one before it; ten tokens are a prompt in expanded form.
TEST(Run, PerplexityOfIds) {
  FakeBundle fake;
  fake.writeFile("ids.json", "[[1,2,3,4,5,6,7,8,9,10]]");
  const json result = runJson(fake, {"perplexity", fake.path("ids.json"), "--json"});
  double total = 0;
  for (int32_t next = 2; next <= 10; ++next) {
    std::vector<int32_t> history;
    for (int32_t id = 1; id < next; ++id)
      history.push_back(id);
    const std::vector<float> row = fakeLogits(history, std::vector<int32_t>(history.size(), K2RT_FORM_EXPANDED));
    total += logSum(row) - double(row[next]);
  }
  EXPECT_EQ(result["tokens"], 9) << result;
  EXPECT_NEAR(result["nll"], total / 9, 1e-6);
  EXPECT_NEAR(std::exp(result["nll"].get<double>()), result["ppl"].get<double>(), 1e-9);
  EXPECT_EQ(runJson(fake, {"perplexity", fake.path("ids.json"), "--json", "--chunk", "1"}), result);
}

TEST(Run, PerplexityOfListsIsTheirMean) {
  FakeBundle fake;
  const auto ask = [&](const char *text) {
    fake.writeFile("ids.json", text);
    return runJson(fake, {"perplexity", fake.path("ids.json"), "--json"});
  };
  const json first = ask("[[1,2,3,4]]"), second = ask("[[9,5]]"), both = ask("[[1,2,3,4],[9,5]]");
  EXPECT_EQ(both["tokens"], 4) << "no token is predicted from another list";
  EXPECT_NEAR(both["nll"], (3 * first["nll"].get<double>() + second["nll"].get<double>()) / 4, 1e-12);
  fake.writeFile("ids.json", "[[1,2],[3]]");
  const Outcome refused = runBundle(fake, {"perplexity", fake.path("ids.json")});
  EXPECT_EQ(refused.exitCode, 1);
  EXPECT_NE(refused.err.find("[1]: has 1 tokens, at least 2 are needed"), std::string::npos) << refused.err;
}
