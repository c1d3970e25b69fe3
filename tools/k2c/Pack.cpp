//===- Pack.cpp - k2c pack, k2c verify ------------------------------------===//
#include "Commands.h"
#include "k2c/Pipelines/Compile.h"
#include "k2c/Support/Units.h"
#include "k2c/Weights/WeightIndex.h"
#include <iostream>

using namespace k2c;

void k2c::addPack(CLI::App &app, std::function<int()> &run) {
  auto bundle = std::make_shared<std::string>(), checkpoint = std::make_shared<std::string>();
  CLI::App *c = app.add_subcommand("pack", "Add the weights of a checkpoint to a shape-only bundle; resumable");
  c->footer("example:\n  k2c compile config.json -o out && k2c pack out --checkpoint FOLDER");
  c->add_option("DIR", *bundle, "the bundle")->required();
  c->add_option("--checkpoint", *checkpoint, "folder with the safetensors files")->required();
  c->callback([=, &run] {
    run = [=] {
      Status status = packBundle(*bundle, *checkpoint, progressBar());
      return status ? 0 : fail(status.error().text());
    };
  });
}

void k2c::addVerify(CLI::App &app, std::function<int()> &run) {
  auto bundle = std::make_shared<std::string>();
  CLI::App *c = app.add_subcommand("verify", "Check every hash of a bundle");
  c->footer("example:\n  k2c verify out");
  c->add_option("DIR", *bundle, "the bundle")->required();
  c->callback([=, &run] {
    run = [=] {
      Expected<VerifyReport> report = verifyBundle(*bundle);
      if (!report)
        return fail(report.error().text());
      for (const Error &problem : report->problems)
        fail(problem.text());
      if (!report->problems.empty())
        return 1;
      std::cout << report->files << " files, " << format(Bytes(report->bytes)) << ": every hash is right\n";
      return 0;
    };
  });
}
