//===- SampleSchedule.h - Pipeline schedules for the planner's tests --------===//
#ifndef K2C_UNIT_PLANNER_SAMPLESCHEDULE_H
#define K2C_UNIT_PLANNER_SAMPLESCHEDULE_H

#include "k2c/Planner/Schedule.h"
#include <gtest/gtest.h>

namespace k2c::test {

/// A schedule of a shape that is legal.
inline PipelineSchedule make(PipelineKind kind, int64_t pp, int64_t microbatches, int64_t chunks = 1) {
  PipelineShape shape;
  shape.kind = kind;
  shape.pp = pp;
  shape.microbatches = microbatches;
  shape.chunks = chunks;
  Expected<PipelineSchedule> schedule = makePipelineSchedule(shape);
  EXPECT_TRUE(schedule);
  return std::move(*schedule);
}

} // namespace k2c::test

#endif // K2C_UNIT_PLANNER_SAMPLESCHEDULE_H
