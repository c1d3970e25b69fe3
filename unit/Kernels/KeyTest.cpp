//===- KeyTest.cpp - Two kernels have one key when they compute the same ----------------------===//
//
// Objects are cached and shared by key: a field that the key leaves out is another kernel's code. Each field of each
// description is changed alone; a description with a new field does not compile until `members` names it.
//
//===----------------------------------------------------------------------===//
#include "k2c/Kernels/KernelDesc.h"
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <tuple>

using namespace k2c;

namespace {

// clang-format off
auto members(Rows &r) { auto &[a, b, c, d] = r; return std::tie(a, b, c, d); }
auto members(Matrix &p) { auto &[a, b, c, d, e, f, g] = p; return std::tie(a, b, c, d, e, f, g); }
auto members(Contraction &c) { auto &[a, b] = c; return std::tie(a, b); }
auto members(AttentionShape &s) { auto &[a, b, c, d, e] = s; return std::tie(a, b, c, d, e); }
auto members(EmbedDesc &k) { auto &[a, b, c, d] = k; return std::tie(a, b, c, d); }
auto members(RmsNormDesc &k) { auto &[a, b, c, d, e] = k; return std::tie(a, b, c, d, e); }
auto members(LinearDesc &k) {
  auto &[a, b, c, d, e, f, g, h, i, j, l] = k; return std::tie(a, b, c, d, e, f, g, h, i, j, l);
}
auto members(HeadLinearDesc &k) { auto &[a, b, c, d, e, f, g] = k; return std::tie(a, b, c, d, e, f, g); }
auto members(RotaryDesc &k) { auto &[a, b, c, d, e, f, g, h] = k; return std::tie(a, b, c, d, e, f, g, h); }
auto members(AppendDesc &k) { auto &[a, b, c] = k; return std::tie(a, b, c); }
auto members(GqaAttentionDesc &k) { auto &[a, b, c, d, e, f] = k; return std::tie(a, b, c, d, e, f); }
auto members(AbsorbedAttentionDesc &k) { auto &[a, b, c, d, e, f, g, h] = k; return std::tie(a, b, c, d, e, f, g, h); }
auto members(ExpandedAttentionDesc &k) {
  auto &[a, b, c, d, e, f, g, h, i, j] = k; return std::tie(a, b, c, d, e, f, g, h, i, j);
}
auto members(NodeBound &n) { auto &[a, b, c, d] = n; return std::tie(a, b, c, d); }
auto members(RoutingDesc &k) {
  auto &[a, b, c, d, e, f, g, h, i, j, l] = k; return std::tie(a, b, c, d, e, f, g, h, i, j, l);
}
auto members(PermutationDesc &k) { auto &[a, b] = k; return std::tie(a, b); }
auto members(PermuteDesc &k) { auto &[a, b, c, d] = k; return std::tie(a, b, c, d); }
auto members(UnpermuteDesc &k) { auto &[a, b, c, d, e] = k; return std::tie(a, b, c, d, e); }
auto members(Elementwise &e) { auto &[a] = e; return std::tie(a); }
auto members(ElementStep &s) { auto &[a, b, c] = s; return std::tie(a, b, c[0], c[1]); }
auto members(RowwiseDesc &k) { auto &[a, b, c, d] = k; return std::tie(a, b, c, d); }
auto members(OutputRowsDesc &k) { auto &[a, b] = k; return std::tie(a, b); }
auto members(CaptureDesc &k) { auto &[a] = k; return std::tie(a); }
auto members(LocateDesc &k) { auto &[a, b, c, d] = k; return std::tie(a, b, c, d); }
auto members(RoutePlanDesc &k) { auto &[a, b, c, d] = k; return std::tie(a, b, c, d); }
auto members(PackDesc &k) { auto &[a, b] = k; return std::tie(a, b); }
auto members(UnpackDesc &k) { auto &[a, b, c] = k; return std::tie(a, b, c); }
auto members(ReturnPlanDesc &k) { auto &[a, b, c, d] = k; return std::tie(a, b, c, d); }
auto members(ReduceSubtreesDesc &k) { auto &[a, b, c, d, e, f] = k; return std::tie(a, b, c, d, e, f); }
auto members(MergeSubtreesDesc &k) { auto &[a, b, c, d, e, f] = k; return std::tie(a, b, c, d, e, f); }
auto members(CombineDesc &k) { auto &[a, b, c, d, e] = k; return std::tie(a, b, c, d, e); }
auto members(TokenIdsDesc &) { return std::tuple<>(); }
auto members(LookupDesc &k) { auto &[a, b, c] = k; return std::tie(a, b, c); }
auto members(SharePlanDesc &k) { auto &[a, b] = k; return std::tie(a, b); }
auto members(CloseGapsDesc &k) { auto &[a, b] = k; return std::tie(a, b); }
auto members(ShareReturnDesc &k) { auto &[a] = k; return std::tie(a); }
auto members(JoinColumnsDesc &k) { auto &[a, b, c] = k; return std::tie(a, b, c); }
auto members(PartPlanDesc &k) { auto &[a, b] = k; return std::tie(a, b); }
auto members(AddPartsDesc &k) { auto &[a, b, c, d] = k; return std::tie(a, b, c, d); }
auto members(BlockArgmaxDesc &k) { auto &[a, b] = k; return std::tie(a, b); }
auto members(GreedySampleDesc &k) { auto &[a, b] = k; return std::tie(a, b); }
// clang-format on

void change(bool &value) { value = !value; }
void change(int64_t &value) { ++value; }
void change(double &value) { value += 0x1p-40; }
template <class Enum> std::enable_if_t<std::is_enum_v<Enum>> change(Enum &value) {
  value = value == Enum(0) ? Enum(1) : Enum(0);
}

using VisitChange = std::function<void(std::function<void()>)>;
template <class T> void eachField(std::vector<T> &values, const VisitChange &visit);
void eachField(ElementTerm &term, const VisitChange &visit);

/// Calls `visit` with what changes each number, flag and name of an aggregate.
template <class T> void eachField(T &value, const VisitChange &visit) {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
    visit([&value] { change(value); });
  else
    std::apply([&](auto &...member) { (eachField(member, visit), ...); }, members(value));
}
void eachField(ElementTerm &term, const VisitChange &visit) {
  bool isConstant = term.kind == ElementTerm::Kind::Constant;
  visit([&] { change(term.kind); });
  visit([&, isConstant] { isConstant ? change(term.value) : change(term.index); });
}
template <class T> void eachField(std::vector<T> &values, const VisitChange &visit) {
  for (T &value : values)
    eachField(value, visit);
}

/// Each field changed alone gives a key of its own.
template <class Desc> void expectEachFieldInKey(const Desc &base) {
  int fields = 0;
  Desc counted = base;
  eachField(counted, [&](const auto &) { ++fields; });
  const std::string key = canonicalKey({"", base});
  for (int wanted = 0; wanted < fields; ++wanted) {
    Desc other = base;
    int at = 0;
    eachField(other, [&](const auto &changeIt) {
      if (at++ == wanted)
        changeIt();
    });
    EXPECT_NE(canonicalKey({"", other}), key) << "field " << wanted;
  }
}

Matrix scaled() {
  Matrix matrix;
  matrix.blockColumns = matrix.blockRows = 8;
  return matrix;
}

/// With all that is part of the key under a condition only.
template <class Desc> Desc whole() { return Desc(); }
template <> LinearDesc whole() {
  LinearDesc linear;
  linear.normEps = 1e-6;
  linear.epilogue.append(ElementOp::Add, DType::F32, ElementTerm::input(LinearDesc::Bias),
                         ElementTerm::input(LinearDesc::Residual));
  linear.w = scaled();
  return linear;
}
template <> HeadLinearDesc whole() {
  HeadLinearDesc heads;
  heads.w = scaled();
  return heads;
}
template <> AppendDesc whole() {
  AppendDesc append;
  append.x.resize(2);
  append.planes.resize(2);
  return append;
}
template <> RoutingDesc whole() {
  RoutingDesc routing;
  routing.bound.nodes = 2;
  return routing;
}
template <> RowwiseDesc whole() {
  RowwiseDesc rowwise;
  rowwise.inputs.resize(2);
  rowwise.list.append(ElementOp::Add, DType::F32, ElementTerm::input(0), ElementTerm::constant(2));
  return rowwise;
}
template <> ExpandedAttentionDesc whole() {
  ExpandedAttentionDesc expanded;
  expanded.uk = expanded.uv = scaled();
  return expanded;
}

/// Calls `visit` with a description of each kind.
template <class Visit, size_t... kind> void eachKindOf(const Visit &visit, std::index_sequence<kind...>) {
  (visit(whole<std::variant_alternative_t<kind, KernelBody>>()), ...);
}
template <class Visit> void eachKind(const Visit &visit) {
  eachKindOf(visit, std::make_index_sequence<std::variant_size_v<KernelBody>>());
}

TEST(CanonicalKey, SeesEachField) {
  eachKind([](const auto &desc) { expectEachFieldInKey(desc); });
}

// What two kinds have in common is no key.
TEST(CanonicalKey, BeginsWithTheKind) {
  std::set<std::string> kinds;
  eachKind(
      [&](const auto &desc) { kinds.insert(canonicalKey({"", desc}).substr(0, canonicalKey({"", desc}).find(' '))); });
  EXPECT_EQ(kinds.size(), std::variant_size_v<KernelBody>);
  EXPECT_EQ(kinds.count(""), 0u);
}

TEST(CanonicalKey, IgnoresTheName) {
  KernelDesc a{"q_a", RotaryDesc()}, b{"o_proj", RotaryDesc()};
  EXPECT_EQ(canonicalKey(a), canonicalKey(b));
  EXPECT_EQ(kernelHash(a), kernelHash(b));
  EXPECT_EQ(kernelHash(a).size(), 32u);
}

} // namespace
