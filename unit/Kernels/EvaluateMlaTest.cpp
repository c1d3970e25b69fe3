//===- EvaluateMlaTest.cpp - Expanded against absorbed attention --------------===//
//
// N8: the two forms differ by rounding only. The bound here, stated and tested: with eps = 2^-24,
//   |expanded - absorbed| <= c * eps * (1 + S) * V,   c = 4
// S = largest sum of |q_i k_i| * scale over keys (what an error of a score is relative to), V = largest sum of
// |uv_j latent_j| (what a value is made of). Measured: 0.35 on these shapes.
//
//===----------------------------------------------------------------------===//

#include "AttentionTest.h"

using namespace k2c;
using namespace k2c::test;

namespace {

constexpr int64_t heads = 3, latent = 80, nope = 24, rope = 10, value = 17, keyDim = nope + rope;

struct MlaProblem {
  AttentionShape shape;
  Matrix uk{DType::BF16, heads, nope, latent};
  Matrix ukT{DType::BF16, heads, latent, nope};
  Matrix uv{DType::BF16, heads, value, latent};
  Array ukData, ukTData, uvData;

  MlaProblem()
      : ukData(pack(uk, [](int64_t h, int64_t n, int64_t k) { return weight(7, h, n, k); })),
        ukTData(pack(ukT, [](int64_t h, int64_t n, int64_t k) { return weight(7, h, k, n); })),
        uvData(pack(uv, [](int64_t h, int64_t n, int64_t k) { return weight(8, h, n, k); })) {
    shape.heads = heads;
    shape.scale = 0.25;
  }

  static float weight(int64_t kind, int64_t h, int64_t n, int64_t k) {
    return ofBf16(bf16Of(tokenValue(kind, h, n, k)));
  }

  Array expanded(TestStep &step, const std::vector<int64_t> &identities, int64_t tokens, FormFilter filter) {
    ExpandedAttentionDesc d{shape, latent, nope,  rope, value, rowsOf(heads * keyDim), rowsOf(heads * value),
                            uk,    uv,     filter};
    Array q = activation(step, identities, 3, heads * keyDim), o(DType::F32, step.rows() * heads * value);
    Array c = plane(step, identities, tokens, 1, latent, DType::F32),
          r = plane(step, identities, tokens, 2, rope, DType::F32);
    EXPECT_TRUE(
        evaluateWith(d, step.step, {q.data(), c.data(), r.data(), ukData.data(), uvData.data(), &step.step, o.data()}));
    return o;
  }

  Array absorbed(TestStep &step, const std::vector<int64_t> &identities, int64_t tokens, FormFilter filter) {
    Rows qRows = rowsOf(heads * keyDim), latentRows = rowsOf(heads * latent);
    HeadLinearDesc absorb{qRows, latentRows, heads, keyDim, ukT, {nope, leafCount(nope)}, filter};
    HeadLinearDesc expand{latentRows, rowsOf(heads * value), heads, latent, uv, {latent, leafCount(latent)}, filter};
    AbsorbedAttentionDesc d{shape, latent, rope, latentRows, qRows, latentRows, keyDim, filter};
    Array q = activation(step, identities, 3, heads * keyDim);
    Array qLatent(DType::F32, step.rows() * heads * latent), oLatent = qLatent;
    Array o(DType::F32, step.rows() * heads * value);
    Array c = plane(step, identities, tokens, 1, latent, DType::F32),
          r = plane(step, identities, tokens, 2, rope, DType::F32);
    void *qRope = static_cast<float *>(q.data()) + nope;
    EXPECT_TRUE(evaluateWith(absorb, step.step, {q.data(), ukTData.data(), qLatent.data()}));
    EXPECT_TRUE(evaluateWith(d, step.step, {qLatent.data(), qRope, c.data(), r.data(), &step.step, oLatent.data()}));
    EXPECT_TRUE(evaluateWith(expand, step.step, {oLatent.data(), uvData.data(), o.data()}));
    return o;
  }

  /// (1 + S) * V of one query.
  double scaleOf(int64_t identity, int64_t position, int64_t h) const {
    double S = 0, V = 0;
    for (int64_t t = 0; t <= position; ++t) {
      double s = 0;
      for (int64_t i = 0; i < keyDim; ++i) {
        double k = 0;
        for (int64_t j = 0; i < nope && j < latent; ++j)
          k += std::abs(double(weight(7, h, i, j)) * tokenValue(1, identity, t, j));
        if (i >= nope)
          k = std::abs(tokenValue(2, identity, t, i - nope));
        s += std::abs(double(tokenValue(3, identity, position, h * keyDim + i))) * k;
      }
      S = std::max(S, s * shape.scale);
      for (int64_t i = 0; i < value; ++i) {
        double v = 0;
        for (int64_t j = 0; j < latent; ++j)
          v += std::abs(double(weight(8, h, i, j)) * tokenValue(1, identity, t, j));
        V = std::max(V, v);
      }
    }
    return (1 + S) * V;
  }
};

TEST(Mla, ExpandedAndAbsorbedAgreeWithinTheStatedBound) {
  constexpr double c = 4, eps = 0x1p-24;
  MlaProblem problem;
  const std::vector<int64_t> identities{4, 9};
  TestStep step({Sequence{0, 5}, Sequence{120, 3}});
  Array e = problem.expanded(step, identities, 130, FormFilter::All);
  Array a = problem.absorbed(step, identities, 130, FormFilter::All);
  double worst = 0;
  for (int64_t r = 0; r < step.rows(); ++r)
    for (int64_t h = 0; h < heads; ++h) {
      double scale = problem.scaleOf(identities[step.rowSeq[r]], step.positions[r], h);
      for (int64_t i = 0; i < value; ++i) {
        int64_t at = (r * heads + h) * value + i;
        worst = std::max(worst, std::abs(double(e[at]) - a[at]) / (eps * scale));
      }
    }
  EXPECT_LE(worst, c);
  EXPECT_TRUE(e != a); // two forms, two sets of bits: why N4 fixes the form of a segment
  RecordProperty("worst", std::to_string(worst));
}

TEST(Mla, EachFormDefinesItsRowsOnly) {
  MlaProblem problem;
  TestStep step({Sequence{3, 2, K2RT_FORM_EXPANDED}, Sequence{6, 1, K2RT_FORM_ABSORBED}});
  Array all = problem.expanded(step, {4, 9}, 10, FormFilter::All);
  Array some = problem.expanded(step, {4, 9}, 10, FormFilter::Expanded);
  Array others = problem.absorbed(step, {4, 9}, 10, FormFilter::Absorbed);
  for (int64_t i = 0; i < all.size(); ++i) {
    bool first = i < 2 * heads * value;
    EXPECT_EQ(some[i], first ? all[i] : 0.0f);
    EXPECT_EQ(others[i] == 0.0f, first);
  }
}

TEST(Mla, BitsDoNotDependOnChunks) {
  MlaProblem problem;
  TestStep whole({Sequence{0, 70}}), tail({Sequence{66, 4}});
  for (bool isAbsorbed : {false, true}) {
    Array a = isAbsorbed ? problem.absorbed(whole, {4}, 70, FormFilter::All)
                         : problem.expanded(whole, {4}, 70, FormFilter::All);
    Array b = isAbsorbed ? problem.absorbed(tail, {4}, 70, FormFilter::All)
                         : problem.expanded(tail, {4}, 70, FormFilter::All);
    for (int64_t i = 0; i < b.size(); ++i)
      ASSERT_EQ(b[i], a[66 * heads * value + i]);
  }
}

} // namespace
