//===- Export.cpp - k2c export ----------------------------------------------===//
#include "k2c/Pipelines/Export.h"
#include "Commands.h"
#include <algorithm>

using namespace k2c;

namespace {

/// What `--format` takes, and what is written.
struct ExportFormat {
  const char *name, *meaning;
  Status (*write)(const ExportOptions &options);
};
constexpr ExportFormat formats[] = {
    {"onnx", "of a checkpoint, a graph of float32 with the inputs and outputs of onnxruntime-genai", exportOnnxFolder},
    {"hf", "of an ONNX file, the checkpoint of its family: config.json and safetensors", exportCheckpointFolder}};

constexpr const char *examples = "examples:\n  k2c export CHECKPOINT --format onnx -o FOLDER\n"
                                 "  k2c export models/bundled --format onnx -o onnx && k2c inspect onnx\n"
                                 "  k2c export model.onnx --format hf -o checkpoint\n"
                                 "  k2c export onnx --format hf -o checkpoint && k2c compile checkpoint -o out";

Status writeAs(const std::string &name, const ExportOptions &options) {
  const auto isNamed = [&](const ExportFormat &format) { return format.name == name; };
  return std::find_if(std::begin(formats), std::end(formats), isNamed)->write(options);
}

} // namespace

void k2c::addExport(CLI::App &app, std::function<int()> &run) {
  auto options = std::make_shared<ExportOptions>();
  auto format = std::make_shared<std::string>();
  options->version = K2C_VERSION;
  CLI::App *c = app.add_subcommand("export", "Write a model in another format, for other tools");
  c->footer(examples);
  c->add_option("SOURCE", options->source, "checkpoint folder, or org/name in $HF_HOME; .onnx file or its folder")
      ->required();
  std::vector<std::string> names;
  std::string meanings;
  for (const ExportFormat &one : formats) {
    names.push_back(one.name);
    meanings += std::string(meanings.empty() ? "" : "; ") + one.name + ": " + one.meaning;
  }
  c->add_option("--format", *format, meanings)->required()->check(CLI::IsMember(names));
  c->add_option("-o,--output", options->output, "folder, which an export of before may be")->required();
  c->add_option("--ignore-key", options->ignoreKeys, "accept this unknown key of a checkpoint's config.json");
  addWiden(*c, options->widen);
  c->add_flag("--force", options->force, "replace the folder even if it is none of k2c export");
  std::shared_ptr<Console> console = addConsole(*c);
  c->callback([=, &run] {
    run = [=] {
      setInterruptNote(options->output + " is as it was; the next export into it removes " + options->output +
                       ".export.partial");
      options->progress = console->bar();
      options->note = console->note();
      Status status = writeAs(*format, *options);
      eraseBar();
      return status ? 0 : fail(status.error());
    };
  });
}
