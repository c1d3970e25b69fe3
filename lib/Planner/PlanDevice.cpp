//===- PlanDevice.cpp - A program's step on one GPU ----------------------------===//
//
// Each kernel is counted on the rows that a step has for it, and takes what its slowest unit takes. Constants are the
// topology's, each with its source: k2c calibrate, a datasheet, an estimate, or what is assumed here.
//
//===----------------------------------------------------------------------===//
#include "k2c/Planner/PlanDevice.h"

#include "Decide.h"
#include <algorithm>

namespace k2c {

using namespace planner;

Load loadOf(const ProgramKernel &kernel, const Plan &plan, const Prediction &step) {
  const CountedRows rows = costRule(kernel.desc, kernel.tile.weights).rows;
  const bool isExpanded = runsExpanded(plan, {1, step.tokens, step.context});
  Load load;
  if (rows == (isExpanded ? CountedRows::Absorbed : CountedRows::Expanded))
    return load;
  load.rows = rows == CountedRows::Output ? 1 : step.tokens;
  load.context = double(step.context) + double(step.tokens + 1) / 2;
  load.keys = double(step.context + step.tokens);
  return load;
}

Seconds DeviceKernelTime::seconds() const {
  return Seconds(launch.value + std::max({issue.value, l2.value, memory.value}));
}

const char *DeviceKernelTime::bound() const {
  const std::pair<double, const char *> units[] = {
      {issue.value, "issue"}, {l2.value, "L2"}, {memory.value, "memory"}, {launch.value, "launches"}};
  return std::max_element(std::begin(units), std::end(units), [](auto &a, auto &b) { return a.first < b.first; })
      ->second;
}

Sourced<Bandwidth> l2Bandwidth(const Device &device) {
  if (device.l2Read)
    return *device.l2Read;
  // A multiprocessor of any generation multiplies and adds 64 or 128 times a cycle, and most 128.
  constexpr double flopsACycle = 2 * 128, bytesACycle = 64;
  return {Bandwidth(device.f32.value.value / flopsACycle * bytesACycle),
          "assumed: 64 bytes a cycle of each multiprocessor, of 128 multiply-adds a cycle"};
}

DeviceStepTime timeOnDevice(const std::vector<ProgramKernel> &program, const Plan &plan, const Prediction &step,
                            const Device &device) {
  DeviceStepTime time;
  const Bandwidth l2 = l2Bandwidth(device).value;
  for (const ProgramKernel &kernel : program) {
    const Load load = loadOf(kernel, plan, step);
    if (load.rows == 0 || std::holds_alternative<CaptureDesc>(kernel.desc.body))
      continue;
    const Cost cost = count(kernel.desc, load, kernel.tile.weights);
    const Bytes streamed = cost.weights + cost.cache, all = streamed + cost.read + cost.written;
    const double launches = double(kernel.launches);
    time.kernels.push_back({kernel.desc.name, kernel.launches, cost.flops * launches / device.f32.value,
                            all * kernel.launches / l2, streamed * kernel.launches / device.memoryRead.value,
                            Seconds(launches * device.kernels.launch.value.value)});
    time.launches += kernel.launches;
    time.seconds += time.kernels.back().seconds();
  }
  return time;
}

namespace {

/// Kinds of kernels, each as long as computing in f32 or reading takes.
Seconds boundOfKinds(const ModelSpec &spec, const Plan &plan, const Device &device, const StepShape &shape) {
  Seconds seconds;
  for (const Work &work : stepWork(spec, plan, shape))
    seconds += roofline(work, device, DType::F32);
  return seconds;
}

template <class Q> std::string stated(const Sourced<Q> &constant) {
  return format(constant.value) + ", " + constant.source;
}

/// What predictions of this device take from k2c calibrate.
std::string measuredText(const Device &device) {
  const std::pair<bool, const char *> constants[] = {{device.f32.isMeasured(), "f32"},
                                                     {device.memoryRead.isMeasured(), "memory"},
                                                     {l2Bandwidth(device).isMeasured(), "L2"},
                                                     {device.kernels.launch.isMeasured(), "launches"}};
  std::string measured, others;
  for (const auto &[isMeasured, name] : constants)
    (isMeasured ? measured : others) += (isMeasured ? measured : others).empty() ? name : std::string(", ") + name;
  if (measured.empty())
    return "nothing was measured on this device";
  return others.empty() ? "all of these were measured" : "measured were " + measured + ", and not " + others;
}

Remark stepRemark(const char *what, const Prediction &step, int64_t launches, const Device &device) {
  const Seconds launch = device.kernels.launch.value * double(launches);
  std::string text = boundText(what, step) + " (f32 at " + formatNumber(device.f32.value.value * 1e-12, 4) +
                     " TFLOP/s, " + device.f32.source + "; memory at " + stated(device.memoryRead);
  if (launches > 0)
    text += "; L2 at " + stated(l2Bandwidth(device)) + "; " + std::to_string(launches) + " launches" +
            (device.kernels.launch.source.empty() ? ", whose time the topology does not state"
                                                  : " at " + stated(device.kernels.launch));
  return {"attach-plan",
          text + "); " + measuredText(device),
          {{"seconds", step.seconds.value},
           {"flop", step.flops.value},
           {"bytes", double(step.bytes.value)},
           {"compute_s", (step.flops / device.f32.value).value},
           {"memory_s", (step.bytes / device.memoryRead.value).value},
           {"launches", double(launches)},
           {"launch_s", launch.value}}};
}

/// What bounds a kernel, for who asks why a step takes as long.
Remark kernelRemark(const DeviceKernelTime &kernel, const Prediction &step) {
  return {"device-time",
          "'" + kernel.name + "' in a step of " + std::to_string(step.tokens) +
              (step.tokens == 1 ? " token: " : " tokens: ") + std::to_string(kernel.launches) +
              (kernel.launches == 1 ? " launch" : " launches") + " in at least " + format(kernel.seconds()) +
              ", bound by " + kernel.bound(),
          {{"tokens", double(step.tokens)},
           {"seconds", kernel.seconds().value},
           {"issue_s", kernel.issue.value},
           {"l2_s", kernel.l2.value},
           {"memory_s", kernel.memory.value},
           {"launch_s", kernel.launch.value}}};
}

} // namespace

Expected<Plan> planDevice(const ModelSpec &spec, const Topology &topology, const Limits &limits,
                          const PlanOptions &options, const MeasuredSizes &measured,
                          const std::vector<ProgramKernel> &program) {
  Expected<Plan> decided = decide(spec, topology, limits, options, measured);
  if (!decided)
    return decided;
  Plan &plan = *decided;
  const Device &device = topology.device;
  std::vector<Remark> kernels;
  auto predict = [&](const char *what, const StepShape &shape) {
    Prediction step = predictStep(spec, plan, device, shape);
    const DeviceStepTime time = timeOnDevice(program, plan, step, device);
    step.seconds = program.empty() ? boundOfKinds(spec, plan, device, shape) : time.seconds;
    plan.remarks.push_back(stepRemark(what, step, time.launches, device));
    for (const DeviceKernelTime &kernel : time.kernels)
      kernels.push_back(kernelRemark(kernel, step));
    return step;
  };
  plan.prefill = predict("prefill", predictedPrefill(limits));
  plan.decode = predict("decode", predictedDecode);
  plan.remarks.insert(plan.remarks.end(), kernels.begin(), kernels.end());
  return decided;
}

} // namespace k2c
