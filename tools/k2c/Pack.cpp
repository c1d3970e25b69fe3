//===- Pack.cpp - k2c pack, k2c verify ------------------------------------===//
#include "Commands.h"
#include "base/JsonText.h"
#include "k2c/Pipelines/Compile.h"
#include "k2c/Support/Units.h"
#include "k2c/Weights/BundleFiles.h"
#include <filesystem>
#include <iostream>

using namespace k2c;

void k2c::addPack(CLI::App &app, std::function<int()> &run) {
  auto options = std::make_shared<PackBundleOptions>();
  CLI::App *c = app.add_subcommand("pack", "Add the weights of a checkpoint to a shape-only bundle; resumable");
  c->footer("examples:\n  k2c compile config.json -o out && k2c pack out --checkpoint FOLDER\n"
            "  k2c pack out --checkpoint FOLDER --ranks 8-15       on the host of these ranks");
  c->add_option("DIR", options->bundle, "the bundle")->required();
  c->add_option("--checkpoint", options->checkpoint,
                "folder with the safetensors files, .onnx file or its folder, or org/name in $HF_HOME")
      ->required();
  c->add_option("--blob-store", options->blobStore, "folder of weights that bundles share by hard links");
  c->add_option("--ranks", options->ranks, "of the experts only those of these ranks, such as 8-15,20 (default: all)");
  std::shared_ptr<Console> console = addConsole(*c);
  c->callback([=, &run] {
    run = [=] {
      setInterruptNote("finished weights are kept for the same command");
      options->progress = console->bar();
      options->note = console->note();
      Status status = packBundle(*options);
      eraseBar();
      return status ? 0 : fail(status.error());
    };
  });
}

/// Every problem is a line, or an entry of the JSON; the exit code says whether there was one.
static int verify(const std::string &bundle, bool asJson, const Console &console) {
  if (Status status = checkIsBundle(bundle); !status)
    return fail(status.error());
  std::error_code error;
  const bool hasWeights = std::filesystem::exists(std::filesystem::path(bundle) / "weights/index.json", error);
  using Part = std::function<Expected<VerifyReport>()>;
  const Part files = [&] { return verifyBundleFiles(bundle); };
  const Part blobs = [&] {
    const auto bar = console.bar();
    return verifyBundle(bundle, [&](int64_t done, int64_t total) { return bar ? bar("hashes", done, total) : void(); });
  };
  VerifyReport all;
  for (const Part &part : hasWeights ? std::vector<Part>{files, blobs} : std::vector<Part>{files}) {
    Expected<VerifyReport> report = part();
    eraseBar();
    if (!report)
      return fail(report.error());
    all.files += report->files;
    all.bytes += report->bytes;
    all.problems.insert(all.problems.end(), report->problems.begin(), report->problems.end());
  }
  if (!hasWeights && all.problems.empty()) // no file is lost, nor an index
    return fail(bundle + ": has no weights: it was compiled from shapes only; run k2c pack " + bundle +
                " --checkpoint FOLDER");
  if (asJson) {
    nlohmann::ordered_json json = {
        {"files", all.files}, {"bytes", all.bytes}, {"problems", nlohmann::ordered_json::array()}};
    for (const Error &problem : all.problems)
      json["problems"].push_back({{"where", problem.where}, {"message", problem.message}, {"remedy", problem.remedy}});
    std::cout << jsonText(json, 2) << "\n";
    return all.problems.empty() ? 0 : 1;
  }
  for (const Error &problem : all.problems)
    fail(problem);
  if (!all.problems.empty())
    return 1;
  std::cout << all.files << " files, " << format(Bytes(all.bytes)) << ": every hash is right\n";
  return 0;
}

void k2c::addVerify(CLI::App &app, std::function<int()> &run) {
  auto bundle = std::make_shared<std::string>();
  CLI::App *c = app.add_subcommand("verify", "Check every hash of a bundle");
  c->footer("example:\n  k2c verify out");
  c->add_option("DIR", *bundle, "the bundle")->required();
  auto asJson = std::make_shared<bool>(false);
  c->add_flag("--json", *asJson, "print files, bytes and problems as JSON");
  std::shared_ptr<Console> console = addConsole(*c);
  c->callback([=, &run] { run = [=] { return verify(*bundle, *asJson, *console); }; });
}
