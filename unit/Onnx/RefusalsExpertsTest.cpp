//===- RefusalsExpertsTest.cpp - layers of experts that are refused ------------------===//
#include "RefusalSteps.h"

using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

/// MoE of 6 tokens of 8 columns, 2 of 4 experts that are 16 wide.
OneNode experts(const Changes<Operand> &changes, GraphBuilder::Attributes attributes, const char *text) {
  attributes.insert(attributes.begin(), {"k", 2});
  const std::vector<Operand> operands{reals({6, 8}), reals({6, 4}), reals({4, 16, 8}), leftOut(), reals({4, 8, 16})};
  return {"com.microsoft:MoE", changed(operands, changes), attributes, text};
}

TEST(RefusalsExperts, ofActivations) {
  const Operand fused = reals({4, 32, 8}), third = reals({4, 16, 8});
  expectEach({
      experts({}, {{"activation_type", "silu"}, {"normalize_routing_weights", 1}}, ""),
      experts({{2, fused}}, {{"activation_type", "swiglu"}, {"swiglu_fusion", 1}}, ""),
      experts({{6, third}}, {{"activation_type", "swiglu"}}, ""),
      experts({}, {{"use_sparse_mixer", 1}}, "use_sparse_mixer is not understood"),
      experts({}, {{"activation_alpha", 1.5}},
              "activation_alpha 1.500000 and activation_beta 0.000000 are not those of a gate times a row (1 and 0)"),
      experts({}, {{"swiglu_limit", 7.0}}, "rows that are clamped (swiglu_limit) are not understood"),
      experts({}, {{"activation_type", "gelu"}}, "activation 'gelu' is not understood"),
      experts({}, {{"swiglu_fusion", 3}}, "swiglu_fusion 3 is none of 0 to 2"),
      experts({{2, fused}, {6, third}}, {{"activation_type", "swiglu"}, {"swiglu_fusion", 1}},
              "a third layer beside one that is fused is not understood"),
      experts({}, {{"activation_type", "swiglu"}}, "swiglu without a third layer that is not fused is not understood"),
  });
}

TEST(RefusalsExperts, ofShapes) {
  expectEach({
      experts({{0, reals({2, 3, 8})}}, {}, ""),
      experts({{0, reals({8})}}, {}, "tokens of shape [8] are not understood"),
      experts({}, {{"k", 5}}, "chooses 5 by scores of shape [6, 4] for 6 tokens"),
      experts({{1, reals({5, 4})}}, {}, "chooses 2 by scores of shape [5, 4] for 6 tokens"),
      experts({{2, reals({4, 15, 8})}}, {}, "its first layer has 15 rows, not 16"),
      experts({{2, reals({3, 16, 8})}}, {},
              "weights of shape [3, 16, 8] and [4, 8, 16] do not fit 4 experts of rows of 8"),
      experts({{4, leftOut()}}, {}, "input 4, which it needs, is left out"),
  });
}

/// QMoE of the same, of 4 bits with one scale a row.
OneNode quantised(const Changes<Operand> &changes, GraphBuilder::Attributes attributes, const char *text) {
  attributes.insert(attributes.begin(), {"k", 2});
  const std::vector<Operand> operands{reals({6, 8}), reals({6, 4}),    bytes({4, 16, 4}), reals({4, 16}),
                                      leftOut(),     bytes({4, 8, 8}), reals({4, 8})};
  return {"com.microsoft:QMoE", changed(operands, changes), attributes, text};
}

TEST(RefusalsExperts, ofFewBits) {
  expectEach({
      quantised({}, {}, ""),
      quantised({{14, reals({6, 4})}}, {}, ""),
      quantised({}, {{"quant_type", "fp8"}}, "quant_type 'fp8' is not understood"),
      quantised({}, {{"weights_prepacked", 1}},
                "weights that are packed for one device (weights_prepacked) are not understood"),
      quantised({{15, reals({4})}}, {}, "input 15 is not understood"),
      quantised({{5, leftOut()}}, {}, "input 5, which it needs, is left out"),
      quantised({{6, leftOut()}}, {},
                "weights of shape [4, 8, 8] of 4 bits, with scales or without, are not understood"),
      quantised({}, {{"expert_weight_bits", 2}},
                "weights of shape [4, 16, 4] of 2 bits, with scales or without, are not understood"),
      quantised({{14, reals({6, 5})}}, {}, "router_weights of shape [6, 5] do not fit scores of shape [6, 4]"),
  });
}

} // namespace
