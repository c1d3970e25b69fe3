//===- Team.cpp - Workers that launch kernels as a program does -----------===//
#include "Team.h"

#include "Clock.h"
#include <algorithm>
#include <atomic>

namespace k2c::calibration {

namespace {

/// Seconds below which a launch is timed with others.
constexpr double shortLaunch = 10e-6;

/// Scratch begins on a page, as in a program.
void *aligned(char *memory) {
  return reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(memory) + 4095) / 4096 * 4096);
}

} // namespace

Status checkWorkers(int64_t workers) {
  Container container = readContainer();
  if (workers >= 1 && workers <= int64_t(container.processors.size()))
    return {};
  return Error{"--threads",
               "is " + std::to_string(workers) + ", this process may use " +
                   std::to_string(container.processors.size()) + " processors",
               "choose at most as many"};
}

Expected<Team> Team::start(int64_t workers, int64_t scratchBytes) {
  auto pool = runtime::WorkerPool::start(int32_t(workers), readContainer());
  if (!pool)
    return Error{"--threads " + std::to_string(workers), "the workers do not start", "allow the process more threads"};
  Team team;
  team.pool = std::move(*pool);
  team.launchBarrier = std::make_unique<runtime::Barrier>(int32_t(workers), team.pool->spins());
  team.scratchBytes = scratchBytes;
  for (int64_t i = 0; i < workers; ++i)
    team.scratch.push_back(std::make_unique<char[]>(size_t(scratchBytes) + 8192));
  return team;
}

k2rt_ir_worker Team::workerOf(int32_t index) const {
  k2rt_ir_worker worker = {};
  worker.scratch = aligned(scratch[size_t(index)].get());
  worker.scratch_bytes = scratchBytes;
  worker.index = index;
  worker.count = pool->count();
  return worker;
}

bool Team::run(k2rt_ir_worker &worker, const Launch &launch, const k2rt_ir_step &step) {
  worker.step = const_cast<k2rt_ir_step *>(launch.step ? launch.step : &step);
  worker.begin = launch.items * worker.index / worker.count;
  worker.end = launch.items * (worker.index + 1) / worker.count;
  bool fine = worker.begin >= worker.end || launch.function(&worker, launch.args.data()) == 0;
  launchBarrier->wait();
  return fine;
}

static Error failure() {
  return {"calibration", "a kernel failed on data of its own", "report it with the CPU's name"};
}

Expected<Seconds> Team::time(const std::vector<Launch> &launches, const k2rt_ir_step &step, Seconds budget) {
  std::vector<double> fastest(launches.size(), 1e30);
  int repeats = 1;
  std::atomic<bool> failed{false};
  auto pass = [&](int32_t index) {
    k2rt_ir_worker worker = workerOf(index);
    launchBarrier->wait();
    for (size_t i = 0; i < launches.size(); ++i) {
      double begin = index == 0 ? now() : 0;
      for (int repeat = 0; repeat < repeats; ++repeat)
        if (!run(worker, launches[i], step))
          failed = true;
      if (index == 0)
        fastest[i] = std::min(fastest[i], (now() - begin) / repeats);
    }
  };
  pool->run(pass);
  if (launches.size() == 1 && fastest[0] < shortLaunch) {
    repeats = 16;
    fastest[0] = 1e30;
  }
  double end = now() + budget.value;
  do
    pool->run(pass);
  while (now() < end);
  if (failed)
    return failure();
  double sum = 0;
  for (double seconds : fastest)
    sum += seconds;
  return Seconds(sum / double(launches.size()));
}

Expected<Seconds> Team::timeTogether(const std::vector<Launch> &launches, Seconds budget) {
  double fastest = 1e30;
  std::atomic<bool> failed{false};
  auto pass = [&](int32_t index) {
    k2rt_ir_worker worker = workerOf(index);
    launchBarrier->wait();
    double begin = now();
    for (const Launch &launch : launches)
      if (!run(worker, launch, *launch.step))
        failed = true;
    if (index == 0)
      fastest = std::min(fastest, now() - begin);
  };
  double end = now() + budget.value;
  do
    pool->run(pass);
  while (now() < end);
  if (failed)
    return failure();
  return Seconds(fastest / double(launches.size()));
}

} // namespace k2c::calibration
