//===- Predict.cpp - k2c predict ------------------------------------------===//
#include "k2c/Pipelines/Predict.h"
#include "Commands.h"
#include "base/Json.h"
#include "base/JsonText.h"
#include <algorithm>
#include <cstdio>
#include <iostream>

using namespace k2c;

namespace {

void printTable(StepTime time, const StepShape &shape) {
  std::printf("a step of %lld x %lld tokens after %lld: %s, reads %s\n", static_cast<long long>(shape.sequences),
              static_cast<long long>(shape.tokens), static_cast<long long>(shape.context), format(time.seconds).c_str(),
              format(time.workingSet).c_str());
  std::stable_sort(time.kernels.begin(), time.kernels.end(),
                   [](const KernelTime &a, const KernelTime &b) { return b.seconds < a.seconds; });
  for (const KernelTime &kernel : time.kernels)
    std::printf("%12s  %4.1f %%  %5lld x %s\n", format(kernel.seconds).c_str(),
                100 * kernel.seconds.value / time.seconds.value, static_cast<long long>(kernel.launches),
                kernel.name.c_str());
}

void printJson(const StepTime &time) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const KernelTime &kernel : time.kernels)
    kernels.push_back({{"name", kernel.name}, {"launches", kernel.launches}, {"seconds", kernel.seconds.value}});
  nlohmann::ordered_json answer = {
      {"seconds", time.seconds.value}, {"bytes", time.workingSet.value}, {"kernels", kernels}};
  std::cout << jsonText(answer) << "\n";
}

int predict(const PredictOptions &options, bool asJson) {
  Expected<StepTime> time = predictStep(options);
  if (!time)
    return fail(time.error());
  asJson ? printJson(*time) : printTable(*time, options.shape);
  return 0;
}

} // namespace

void k2c::addPredict(CLI::App &app, std::function<int()> &run) {
  auto options = std::make_shared<PredictOptions>();
  auto asJson = std::make_shared<bool>(false);
  CLI::App *c = app.add_subcommand("predict", "Seconds of a step of a bundle on a calibrated machine, by kernel");
  c->footer("example:\n  k2c calibrate -o this.yaml && k2c predict out --topology this.yaml --batch 8 --context 512");
  c->add_option("DIR", options->bundle, "the bundle")->required();
  addCheckpoint(*c, options->checkpoint);
  c->add_option("--topology", options->topology, "a file that k2c calibrate wrote")->required();
  c->add_option("--batch", options->shape.sequences, "sequences of the step")
      ->transform(whole(1, 1 << 16))
      ->capture_default_str();
  c->add_option("--context", options->shape.context, "tokens each has cached")
      ->transform(whole(0, 1 << 24))
      ->capture_default_str();
  c->add_option("--tokens", options->shape.tokens, "new tokens of each: 1 decodes, more are a prompt's chunk")
      ->transform(whole(1, 1 << 20))
      ->capture_default_str();
  c->add_option("--experts-hit", options->expertsHit,
                "experts of a layer that the tokens go to (default: what a uniform router gives)");
  c->add_option("--threads", options->workers, "workers (default: the largest team that was measured)")
      ->transform(whole(1, 4096));
  c->add_flag("--json", *asJson, "one JSON object");
  c->callback([=, &run] { run = [=] { return predict(*options, *asJson); }; });
}
