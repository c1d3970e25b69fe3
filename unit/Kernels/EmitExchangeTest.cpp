//===- EmitExchangeTest.cpp - Emitted kernels of experts on several ranks -------------------------------===//
#include "EmitTest.h"
#include "ExchangeWorld.h"

namespace k2c::test {
namespace {

class EmitExchange : public EmitTest {};
K2C_EMIT_TARGETS(EmitExchange);

RunKernel onTeam(int64_t workers) {
  return [workers](const KernelDesc &desc, const k2rt_ir_step &step, const std::vector<void *> &args) {
    Expected<CompiledKernel> kernel = compileForTarget(desc);
    ASSERT_TRUE(kernel) << kernel.error().text();
    EXPECT_EQ(launch(*kernel, step, args, workers).status, 0) << desc.name;
  };
}

TEST_P(EmitExchange, HasTheBitsOfTheScalarReading) {
  const RunKernel scalar = [](const KernelDesc &desc, const k2rt_ir_step &step, const std::vector<void *> &args) {
    EXPECT_TRUE(evaluate(desc, args.data(), step, WeightLayout::Panels));
  };
  for (const ExchangeShape &shape : exchangeShapes()) {
    if (!shape.isShuffled)
      continue; // experts in order are another table for the same code
    const std::vector<Array> expected = ExchangeWorld(shape).unpermute(scalar);
    for (int64_t workers : {1, 3})
      EXPECT_TRUE(ExchangeWorld(shape).exchange(onTeam(workers)) == expected)
          << shape.experts << " experts on " << shape.ranks << " ranks";
  }
}

TEST_P(EmitExchange, RefusesAnExpertOutOfRange) {
  Expected<CompiledKernel> kernel = compileForTarget({"locate", LocateDesc{4, 2}});
  ASSERT_TRUE(kernel) << kernel.error().text();
  TestStep step(TestStep::plain(1));
  std::vector<int32_t> experts = {0, 4}, places = {0, 1, 2, 3, 4, 0, 1, 2, 3}, slots(2);
  EXPECT_EQ(launch(*kernel, step.step, {experts.data(), places.data(), slots.data()}, 1).status,
            K2RT_STATUS_OUT_OF_RANGE);
}

} // namespace
} // namespace k2c::test
