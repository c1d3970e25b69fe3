//===- RefusalsGroupQueryTest.cpp - attentions of com.microsoft that are refused ----===//
#include "RefusalSteps.h"

using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

/// GroupQueryAttention of 2 heads of queries and 1 of keys, 8 columns wide, behind a cache; attributes stand above
/// those of a node that is folded.
StepNode grouped(const Changes<StepOperand> &changes, const GraphBuilder::Attributes &attributes, const char *text) {
  const StepOperand key = reals({2, 3, 8}), past = cache({2, 1, "past", 8});
  GraphBuilder::Attributes all{{"num_heads", 2}, {"kv_num_heads", 1}};
  all.insert(all.end(), attributes.begin(), attributes.end());
  return {"com.microsoft:GroupQueryAttention",
          changed<StepOperand>({reals({2, 3, 16}), key, key, past, past, total(-1), total(0)}, changes), all, text};
}

TEST(RefusalsGroupQuery, ofAttributes) {
  expectEachStep({
      grouped({}, {{"local_window_size", 4}, {"softcap", 30.0}}, ""),
      grouped({}, {{"softcap", -1.0}}, "softcap -1.000000 is negative"),
      grouped({}, {{"colour", 1}}, "attribute 'colour' is not understood"),
      grouped({}, {{"num_heads", 0}}, "0 heads of queries and 1 of keys are not understood"),
      grouped({}, {{"kv_num_heads", INT64_MAX}},
              "2 heads of queries and 9223372036854775807 of keys are not understood"),
      grouped({}, {{"smooth_softmax", 1}}, "smooth_softmax, qk_output and sliding_window_cache are not understood"),
      grouped({}, {{"qk_output", 1}}, "smooth_softmax, qk_output and sliding_window_cache are not understood"),
      grouped({}, {{"sliding_window_cache", 1}}, "qk_output and sliding_window_cache are not understood"),
      grouped({}, {{"sliding_window_cache", 0}}, ""),
      grouped({}, {{"causal", 0}}, "attention to tokens that follow (causal = 0) is not understood"),
      grouped({}, {{"local_window_size", 0}}, "local_window_size 0 is neither -1 nor positive"),
  });
}

TEST(RefusalsGroupQuery, ofInputs) {
  expectEachStep({
      grouped({{0, reals({2, 3, 32})}, {1, leftOut()}, {2, leftOut()}}, {}, ""),
      grouped({{9, positions()}}, {}, ""),
      grouped({{3, leftOut()}, {4, leftOut()}, {10, reals({2, 2, 3, 3})}}, {}, ""),
      grouped({{2, leftOut()}}, {}, "it has keys or values without the other"),
      grouped({{11, reals({2})}}, {}, "input 11 (head_sink) is not understood"),
      grouped({{17, reals({2})}}, {}, "input 17 is not understood"),
      grouped({{5, total(0)}}, {}, "its lengths are not those of a step without padding"),
      grouped({{6, leftOut()}}, {}, "its lengths are not those of a step without padding"),
      grouped({{9, integers({2, 3})}}, {}, "its positions are not those of a step without padding"),
      grouped({{10, reals({2, 2, 3, 7})}}, {},
              "a bias of shape [2, 2, 3, 7] does not fit scores of shape [2, 2, 3, (past + 3)]"),
  });
}

TEST(RefusalsGroupQuery, ofNormsAndRotations) {
  const StepOperand weight = reals({8}), table = reals({64, 4});
  expectEachStep({
      grouped({{14, weight}, {15, weight}, {7, table}, {8, table}}, {{"do_rotary", 1}}, ""),
      grouped({{14, weight}}, {}, "it has q_norm_weight or k_norm_weight without the other"),
      grouped({{14, weight}, {15, reals({7})}}, {}, "a weight of shape [7] does not fit heads of 8 columns"),
      grouped({{7, table}}, {{"do_rotary", 1}}, "it rotates without tables"),
      grouped({{7, table}, {8, reals({64, 5})}}, {{"do_rotary", 1}},
              "tables of shape [64, 4] and [64, 5] are not understood"),
  });
}

StepNode multiHead(std::vector<StepOperand> inputs, const char *text) {
  return {"com.microsoft:MultiHeadAttention", std::move(inputs), {{"num_heads", 2}}, text};
}

TEST(RefusalsGroupQuery, ofMultiHeadAttention) {
  const StepOperand x = reals({2, 3, 16});
  expectEachStep({
      multiHead({x, x, x, reals({48}), mask()}, ""),
      multiHead({x}, "queries, keys and values that are packed or caches are not understood"),
      multiHead({x, x, x, leftOut(), leftOut(), leftOut(), leftOut(), leftOut(), x},
                "shared buffers of caches (input 8) are not understood"),
      multiHead({x, x, x, leftOut(), integers({2, 3})}, "a mask of padding that is not 1 everywhere is not understood"),
      multiHead({x, x, x, reals({47})}, "a bias of shape [47] does not fit 48 columns"),
  });
}

} // namespace
