//===- NodeCasesTest.cpp - ops give what onnx computes ----------------------------===//
#include "NodeCase.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

using Kind = CaseOutcome::Kind;

std::vector<std::filesystem::path> casesIn(const std::string &folder) {
  std::vector<std::filesystem::path> out;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(NodeCases, OfUnitOnnxAreRight) {
  const auto cases = casesIn(K2C_SOURCE_DIR "/unit/Onnx/cases");
  EXPECT_GE(cases.size(), 120u);
  for (const auto &path : cases) {
    const CaseOutcome outcome = runCase(path.string());
    EXPECT_EQ(outcome.kind, Kind::Right) << path.stem() << ": " << outcome.message;
  }
}

/// Those of the onnx package, which test/Onnx/node-cases.test writes.
TEST(NodeCases, OfOnnxAreRightOrRefused) {
  const char *const folder = std::getenv("K2C_ONNX_CASES");
  if (!folder)
    GTEST_SKIP() << "K2C_ONNX_CASES names no folder of cases";
  size_t right = 0, refused = 0;
  for (const auto &path : casesIn(folder)) {
    const CaseOutcome outcome = runCase(path.string());
    EXPECT_NE(outcome.kind, Kind::Wrong) << path.stem() << ": " << outcome.message;
    (outcome.kind == Kind::Right ? right : refused)++;
  }
  std::printf("%zu right, %zu refused\n", right, refused);
  EXPECT_GE(right, 880u);
}

} // namespace
