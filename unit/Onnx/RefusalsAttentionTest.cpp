//===- RefusalsAttentionTest.cpp - attentions and rotations that are refused --------===//
#include "RefusalSteps.h"

using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

const StepOperand query = reals({2, 4, 3, 8}), key = reals({2, 2, 5, 8});

StepNode attention(std::vector<StepOperand> inputs, GraphBuilder::Attributes attributes, const char *text) {
  return {"Attention", std::move(inputs), std::move(attributes), text};
}

TEST(RefusalsAttention, ofHeadsThatDoNotFit) {
  expectEachStep({
      attention({query, key, key}, {}, ""),
      attention({reals({2, 3, 16}), reals({2, 5, 8}), reals({2, 5, 8})}, {{"q_num_heads", 2}, {"kv_num_heads", 1}}, ""),
      attention({reals({2, 3, 16}), reals({2, 5, 8}), reals({2, 5, 8})}, {{"q_num_heads", 3}, {"kv_num_heads", 1}},
                "an operand of shape [2, 3, 16] is not 3 heads"),
      attention({reals({2, "heads", 3, 8}), key, key}, {},
                "an operand of shape [2, ?1.1, 3, 8] has no heads that are known"),
      attention({reals({2, 2, 3, 8}), key, key}, {{"softcap", -1.0}}, "softcap -1.000000 is negative"),
      attention({reals({3, 2, 3, 8}), key, key}, {}, "an operand of shape [2, 2, 5, 8] is not of a batch of 3"),
      attention({reals({2, 3, 3, 8}), key, key}, {}, "3 heads of 8 columns and 2 of 8 do not fit each other"),
      attention({reals({2, 2, 3, "width"}), again(0), again(0)}, {}, "its heads have ?1.3 columns"),
  });
}

TEST(RefusalsAttention, ofCachesAndLengths) {
  const StepOperand past = cache({2, 2, "past", 8}), lengths = integers({2});
  expectEachStep({
      attention({query, key, key, leftOut(), past, past}, {}, ""),
      attention({query, key, key, leftOut(), leftOut(), leftOut(), lengths}, {}, ""),
      attention({query, key, key, leftOut(), past}, {}, "it has a cache of keys or of values without the other"),
      attention({query, key, key, leftOut(), cache({2, 3, "past", 8}), past}, {},
                "a cache of shape [batch, 3, past, 8] does not fit 2 heads of 8"),
      attention({query, key, key, leftOut(), reals({2, 2, 6, 8}), reals({2, 2, 7, 8})}, {},
                "caches of keys and of values have different lengths"),
      attention({query, key, key, leftOut(), past, past, lengths}, {},
                "it has both caches and lengths of keys that are no padding"),
      attention({query, key, key, leftOut(), leftOut(), leftOut(), integers({2, 1})}, {},
                "its lengths have shape [2, 1], not that of a batch"),
  });
}

TEST(RefusalsAttention, ofMasksAndScores) {
  expectEachStep({
      attention({query, key, key, reals({3, 5})}, {{"qk_matmul_output_mode", 3}}, ""),
      attention({query, key, key, reals({2, 4, 3, 6})}, {},
                "a mask of shape [2, 4, 3, 6] does not fit scores of shape [2, 4, 3, 5]"),
      attention({query, key, key}, {{"qk_matmul_output_mode", 4}}, "qk_matmul_output_mode 4 is none of 0 to 3"),
  });
}

StepNode rotation(std::vector<StepOperand> inputs, GraphBuilder::Attributes attributes, const char *text) {
  return {"com.microsoft:RotaryEmbedding", std::move(inputs), std::move(attributes), text};
}

TEST(RefusalsAttention, ofRotations) {
  const StepOperand x = reals({2, 3, 16}), at = integers({2, 3}), table = reals({32, 4});
  expectEachStep({
      rotation({x, at, table, table}, {{"num_heads", 2}}, ""),
      {"RotaryEmbedding", {x, reals({2, 3, 4}), reals({2, 3, 4})}, {{"num_heads", 2}}, ""},
      rotation({x, at, table, table}, {{"is_packed_batching", 1}}, "is_packed_batching and scale are not understood"),
      rotation({x, at, table, table}, {{"scale", 2.0}}, "is_packed_batching and scale are not understood"),
      rotation({x, at, table, reals({32, 3})}, {{"num_heads", 2}},
               "tables of shape [32, 4] and [32, 3] are not understood"),
      rotation({x, at, reals({32, 3}), reals({32, 3})}, {{"num_heads", 2}}, "turns 8 of 8 columns by tables of 3"),
      rotation({x, integers({2, 3, 1}), table, table}, {{"num_heads", 2}},
               "positions of shape [2, 3, 1] are not understood"),
  });
}

} // namespace
