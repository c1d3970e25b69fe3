//===- ScheduleTest.cpp - Pipeline schedules ------------------------------===//
//
// Orders, traces and simulations of test/Planner/schedule_public.json as the query answers them, and what holds for
// every shape: programs that cannot deadlock, idle time of the closed forms, bounded stashes.
//
//===----------------------------------------------------------------------===//
#include "k2c/Planner/Schedule.h"
#include "CheckTransport.h"
#include "SampleSchedule.h"
#include "k2c/Formulas/Query.h"

#include <algorithm>
#include <map>
#include <random>

using namespace k2c;
using namespace k2c::test;
using nlohmann::json;

namespace {

Expected<nlohmann::ordered_json> ask(const json &inputs) {
  Expected<JsonDocument> document = parseJson(inputs.dump(), "inputs");
  EXPECT_TRUE(document);
  return answerQuery("schedule", *document);
}

json inputsOf(const json &item) {
  json inputs;
  for (const auto &[key, value] : item.items())
    if (value.is_number() || key == "schedule")
      inputs[key] = value;
  return inputs;
}

void expectSimulation(const json &item, const json &wanted) {
  json inputs = inputsOf(item);
  inputs["durations"] = wanted["durations"];
  Expected<nlohmann::ordered_json> answer = ask(inputs);
  ASSERT_TRUE(answer) << item["id"] << answer.error().text();
  const auto &got = (*answer)["simulation"];
  EXPECT_NEAR(got["makespan"].get<double>(), wanted["makespan"].get<double>(), 1e-9) << item["id"];
  EXPECT_EQ(got["peak_stashed_chunks"].dump(), wanted["peak_stashed_chunks"].dump()) << item["id"];
  ASSERT_EQ(got["bubble_per_rank"].size(), wanted["bubble_per_rank"].size());
  double worst = 0;
  for (size_t rank = 0; rank < got["bubble_per_rank"].size(); ++rank) {
    EXPECT_NEAR(got["bubble_per_rank"][rank].get<double>(), wanted["bubble_per_rank"][rank].get<double>(), 1e-9);
    worst = std::max(worst, got["bubble_per_rank"][rank].get<double>());
  }
  EXPECT_NEAR(got["bubble"].get<double>(), worst, 1e-9) << item["id"];
  // Where the file's formula is not the worst rank's idle time, none is said.
  const bool holds = wanted.contains("closed_form_bubble") && wanted["closed_form_equals_max"].get<bool>();
  ASSERT_EQ(got.contains("closed_form_bubble"), holds) << item["id"];
  EXPECT_EQ(got["bubble_source"], holds ? "closed form" : "simulation") << item["id"];
  if (holds) {
    EXPECT_NEAR(got["closed_form_bubble"].get<double>(), wanted["closed_form_bubble"].get<double>(), 1e-9);
  }
}

/// Every kind in shapes of many sizes; those that no schedule exists for are left out.
std::vector<PipelineShape> manyShapes() {
  std::vector<PipelineShape> shapes;
  for (PipelineKind kind : {PipelineKind::GPipe, PipelineKind::OneFOneB, PipelineKind::Interleaved,
                            PipelineKind::ZeroBubbleH1, PipelineKind::DualPipe, PipelineKind::DualPipeV})
    for (int64_t pp = 1; pp <= 9; ++pp)
      for (int64_t microbatches = 1; microbatches <= 24; ++microbatches) {
        PipelineShape shape;
        shape.kind = kind;
        shape.pp = pp;
        shape.microbatches = microbatches;
        shapes.push_back(shape);
        if (kind != PipelineKind::Interleaved)
          continue;
        for (shape.chunks = 2; shape.chunks <= 4; ++shape.chunks)
          for (shape.group = pp; shape.group <= pp + 2; ++shape.group)
            for (shape.extraWarmup = 0; shape.extraWarmup <= 1; ++shape.extraWarmup)
              shapes.push_back(shape);
      }
  shapes.erase(std::remove_if(shapes.begin(), shapes.end(),
                              [](const PipelineShape &shape) { return !makePipelineSchedule(shape); }),
               shapes.end());
  return shapes;
}

std::string name(const PipelineShape &shape) {
  return "kind " + std::to_string(int(shape.kind)) + " pp " + std::to_string(shape.pp) + " m " +
         std::to_string(shape.microbatches) + " v " + std::to_string(shape.chunks) + " group " +
         std::to_string(shape.group) + " extra " + std::to_string(shape.extraWarmup);
}

std::string errorOf(const json &inputs) {
  Expected<nlohmann::ordered_json> answer = ask(inputs);
  return answer ? "no error" : answer.error().text();
}

} // namespace

TEST(Schedule, EveryGoldenItem) {
  Expected<JsonDocument> document = readJsonFile(std::string(K2C_SOURCE_DIR) + "/test/Planner/schedule_public.json");
  ASSERT_TRUE(document) << document.error().text();
  for (const json &item : document->root()["cases"]) {
    Expected<nlohmann::ordered_json> answer = ask(inputsOf(item));
    ASSERT_TRUE(answer) << item["id"] << answer.error().text();
    for (const char *field : {"order", "order_paired", "trace"})
      if (item.contains(field)) {
        EXPECT_EQ((*answer)[field].dump(1), item[field].dump(1)) << item["id"] << " " << field;
      }
    for (const json &simulation : item["simulation"])
      expectSimulation(item, simulation);
  }
}

TEST(Schedule, PairsNeedAForwardMore) {
  PipelineShape shape;
  shape.kind = PipelineKind::Interleaved;
  shape.pp = shape.group = 4, shape.microbatches = 8, shape.chunks = 2, shape.paired = true;
  const Expected<PipelineSchedule> schedule = makePipelineSchedule(shape);
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.error().text(), "paired: needs a forward more than the warm-up has; set extraWarmup to 1");
}

TEST(Schedule, NoShapeDeadlocks) {
  std::vector<PipelineShape> shapes = manyShapes();
  ASSERT_GT(shapes.size(), 1000u);
  for (PipelineShape shape : shapes)
    for (bool paired : {false, true}) {
      shape.paired = paired;
      if (paired && shape.extraWarmup == 0)
        continue;
      Expected<PipelineSchedule> schedule = makePipelineSchedule(shape);
      ASSERT_TRUE(schedule) << name(shape) << ": " << schedule.error().text();
      EXPECT_TRUE(simulate(*schedule, {})) << name(shape);
      Status status = checkTransport(*schedule);
      EXPECT_TRUE(status) << name(shape) << ": " << (status ? "" : status.error().text());
    }
}

/// Durations of all proportions, one in four with a forward as long as the gradient of inputs; pairs that take as long
/// as both parts, less, or any time at all.
PipelineDurations randomDurations(std::mt19937 &random) {
  auto between = [&](double low, double high) { return low + (high - low) * double(random()) / 4294967295.0; };
  PipelineDurations d;
  d.forward = between(0.1, 3);
  d.inputGrad = random() % 4 ? between(0.1, 3) : d.forward;
  d.weightGrad = between(0.05, 3);
  const double both = d.forward + d.inputGrad + d.weightGrad;
  if (const int pair = int(random() % 3); pair > 0)
    d.overlapped = pair == 1 ? between(std::max(d.forward, d.inputGrad + d.weightGrad), both) : between(0.1, 6);
  return d;
}

TEST(Schedule, ClosedFormsAreTheWorstRanksIdleTimeOrAreNotSaid) {
  std::mt19937 random(7);
  std::map<PipelineKind, int> said, unsaid;
  for (const PipelineShape &shape : manyShapes()) {
    const PipelineDurations durations = randomDurations(random);
    std::optional<double> closed = closedFormIdle(shape, durations);
    ++(closed ? said : unsaid)[shape.kind];
    if (!closed)
      continue;
    Expected<PipelineTimeline> timeline = simulate(*makePipelineSchedule(shape), durations);
    ASSERT_TRUE(timeline) << name(shape);
    EXPECT_NEAR(*std::max_element(timeline->idle.begin(), timeline->idle.end()), *closed, 1e-9)
        << name(shape) << " F " << durations.forward << " Bi " << durations.inputGrad << " W " << durations.weightGrad;
  }
  for (PipelineKind kind : {PipelineKind::GPipe, PipelineKind::OneFOneB, PipelineKind::Interleaved,
                            PipelineKind::ZeroBubbleH1, PipelineKind::DualPipe, PipelineKind::DualPipeV})
    EXPECT_GT(said[kind], 5) << int(kind);
  for (PipelineKind kind : {PipelineKind::ZeroBubbleH1, PipelineKind::DualPipe, PipelineKind::DualPipeV})
    EXPECT_GT(unsaid[kind], 5) << int(kind);
}

/// Weight gradients longer than a forward: the README's formula says -10.4, the other -2.8.
TEST(Schedule, WithoutAClosedFormTheBubbleIsTheSimulations) {
  Expected<nlohmann::ordered_json> answer =
      ask({{"schedule", "dualpipe"}, {"pp", 10}, {"m", 28}, {"F", 0.36}, {"Bi", 1.42}, {"W", 2.83}});
  ASSERT_TRUE(answer) << answer.error().text();
  const auto &simulation = (*answer)["simulation"];
  EXPECT_NEAR(simulation["bubble"].get<double>(), 6.76, 1e-9);
  EXPECT_EQ(simulation["bubble_source"], "simulation");
  EXPECT_FALSE(simulation.contains("closed_form_bubble"));
}

TEST(Schedule, ABubbleThatNoFormulaKnowsIsRefused) {
  Expected<JsonDocument> inputs = parseJson(R"({"schedule": "dualpipe", "pp": 8, "F": 1, "B": 2.25, "W": 0.75})", "in");
  QueryOptions exact;
  exact.compat = Compat::Exact;
  Expected<nlohmann::ordered_json> answer = answerQuery("bubble", *inputs, exact);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().text(),
            "in:1:54: 'W' and the other durations are outside the conditions of the closed form; "
            "ask schedule, which simulates them");
  EXPECT_EQ((*answerQuery("bubble", *inputs))["value"], 3 * (3.25 + 2.25 - 3 * 0.75)) << "the paper's, in any case";
}

TEST(Schedule, StashesAreBounded) {
  for (const PipelineShape &shape : manyShapes()) {
    Expected<PipelineTimeline> timeline = simulate(*makePipelineSchedule(shape), {});
    ASSERT_TRUE(timeline);
    for (int64_t rank = 0; rank < shape.pp; ++rank) {
      int64_t peak = timeline->peakStash[size_t(rank)], stages = shape.pp;
      switch (shape.kind) {
      case PipelineKind::OneFOneB:
        EXPECT_EQ(peak, std::min(shape.microbatches, stages - rank)) << name(shape);
        break;
      case PipelineKind::ZeroBubbleH1:
        EXPECT_LE(peak, stages) << name(shape);
        break;
      case PipelineKind::DualPipe:
        EXPECT_EQ(peak, stages + 1) << name(shape);
        break;
      case PipelineKind::DualPipeV:
        EXPECT_EQ(peak, 2 * stages + 1) << name(shape);
        break;
      default:
        EXPECT_LE(peak, shape.microbatches * shape.chunks) << name(shape);
      }
    }
  }
}

TEST(Schedule, GPipeRunsAllForwardsFirst) {
  PipelineSchedule schedule = make(PipelineKind::GPipe, 2, 2);
  EXPECT_EQ(schedule.trace(0), "F0 sF0>1 | F1 sF1>1 | rB0<1 | B0 rB1<1 | B1");
}

TEST(Schedule, AnOrderThatWaitsForItselfIsADeadlock) {
  PipelineSchedule schedule = make(PipelineKind::OneFOneB, 2, 2);
  std::reverse(schedule.ranks[1].begin(), schedule.ranks[1].end());
  Expected<PipelineTimeline> timeline = simulate(schedule, {});
  ASSERT_FALSE(timeline);
  EXPECT_EQ(timeline.error().text(), "rank 0: B0 waits for ever for its input");
}

TEST(Schedule, AnExchangeWithoutItsOtherHalfIsFound) {
  PipelineSchedule schedule = make(PipelineKind::OneFOneB, 2, 2);
  auto isSend = [](const PipelineAction &action) { return action.kind == PipelineAction::Kind::Send; };
  std::vector<PipelineAction> &program = schedule.ranks[0];
  program.erase(std::find_if(program.begin(), program.end(), isSend));
  Status status = checkTransport(schedule);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "rank 0: F1 waits for ever in an exchange");
}

TEST(Schedule, AReceiveThatIsNotWaitedForIsFound) {
  PipelineSchedule schedule = make(PipelineKind::OneFOneB, 2, 2);
  std::vector<PipelineAction> &program = schedule.ranks[1];
  auto isWait = [](const PipelineAction &action) { return action.kind == PipelineAction::Kind::Wait; };
  program.erase(std::find_if(program.begin(), program.end(), isWait));
  Status status = checkTransport(schedule);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "rank 1: F0 runs before its input is there");
}

TEST(Schedule, ASendBeforeItsTaskIsFound) {
  PipelineSchedule schedule = make(PipelineKind::OneFOneB, 2, 2);
  std::vector<PipelineAction> &program = schedule.ranks[0];
  ASSERT_EQ(program[1].kind, PipelineAction::Kind::Send);
  std::swap(program[0], program[1]);
  Status status = checkTransport(schedule);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "rank 0: F0 is sent before it is computed");
}

TEST(Schedule, ASendToARankThatIsNoNeighbourIsFound) {
  PipelineSchedule schedule = make(PipelineKind::OneFOneB, 3, 3);
  schedule.ranks[0][1].peer = 2;
  Status status = checkTransport(schedule);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "rank 0: F0 has no business with rank 2");
}

TEST(Schedule, AnExchangeThatIsNeverWaitedForIsFound) {
  PipelineSchedule schedule = make(PipelineKind::OneFOneB, 2, 2);
  std::vector<PipelineAction> &sender = schedule.ranks[1], &receiver = schedule.ranks[0];
  ASSERT_EQ(sender.back().kind, PipelineAction::Kind::Wait);
  sender.pop_back();
  while (receiver.back().kind != PipelineAction::Kind::Receive) // it would wait for ever
    receiver.pop_back();
  receiver.pop_back();
  Status status = checkTransport(schedule);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "rank 1: B1 is never waited for");
}

TEST(Schedule, RefusesShapesThatNoScheduleFits) {
  EXPECT_EQ(errorOf({{"schedule", "1f1b"}, {"pp", 0}, {"microbatches", 4}}),
            "inputs:1:19: 'pp' must be 1 to 1099511627776, got 0");
  EXPECT_EQ(errorOf({{"schedule", "dualpipe"}, {"pp", 2}, {"microbatches", 7}}),
            "inputs:1:2: 'microbatches' 7 is odd; half of them enter at each end: choose an even number");
  EXPECT_EQ(errorOf({{"schedule", "dualpipev"}, {"pp", 4}, {"microbatches", 7}}),
            "inputs:1:2: 'microbatches' 7 is less than 2 pp = 8; give at least so many, or fewer stages");
  EXPECT_EQ(errorOf({{"schedule", "dualpipe"}, {"pp", 3}, {"microbatches", 8}}),
            "inputs:1:19: 'pp' 3 is odd; both ends of the model lie on each pair of ranks: choose an even number");
  EXPECT_EQ(errorOf({{"schedule", "interleaved"}, {"pp", 4}, {"microbatches", 9}, {"vpp", 2}}),
            "inputs:1:2: 'microbatches' 9 leave a last group of 1, less than pp 4; choose a multiple of group 4");
  EXPECT_EQ(errorOf({{"schedule", "1f1b"}, {"pp", 4}, {"microbatches", 8}, {"v", 2}}),
            "inputs:1:44: 'v' is for interleaved schedules; leave it out");
}

TEST(Schedule, BoundsTheSizeOfAnAnswer) {
  EXPECT_EQ(errorOf({{"schedule", "1f1b"}, {"pp", 1099511627776}, {"microbatches", 1}}),
            "inputs:1:19: 'pp' 1099511627776 exceeds 262144; a schedule holds at most 262144 passes of "
            "micro-batches through ranks and chunks");
  EXPECT_NE(errorOf({{"schedule", "interleaved"}, {"pp", 2}, {"m", 1099511627776}, {"v", 4}}).find("exceeds 32768"),
            std::string::npos);
}
