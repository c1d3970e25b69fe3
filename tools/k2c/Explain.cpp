//===- Explain.cpp - k2c explain: why a bundle is what it is --------------===//
#include "Commands.h"
#include "ExplainKernel.h"
#include "Sentences.h"
#include "base/JsonText.h"
#include "base/Utf8.h"
#include "k2c/Pipelines/Compile.h"
#include <algorithm>
#include <iostream>
#include <sstream>
#include <stdexcept>

using namespace k2c;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// So many sentences are read; the rest is for those who look for it.
constexpr size_t shownSentences = 10;

constexpr const char *measure = "bytes of memory that a decision lays out, or that its kernels move in a step of one "
                                "token";

void printAll(const std::string &text, const std::vector<RemarkLine> &remarks, bool asJson) {
  if (!asJson) {
    std::stringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      std::cout << printable(line) << "\n";
    return;
  }
  ordered_json list = ordered_json::array();
  for (const RemarkLine &remark : remarks)
    list.push_back(toJson(remark));
  std::cout << jsonText(ordered_json{{"remarks", list}}, 2) << "\n";
}

/// Of a program of a GPU: what its kernels take of a step of one token, the longest first.
std::vector<RemarkLine> kernelTimes(const std::vector<RemarkLine> &remarks) {
  std::vector<RemarkLine> times;
  for (const RemarkLine &each : remarks)
    if (each.pass == "device-time" && each.metrics.at("tokens") == 1)
      times.push_back(each);
  std::stable_sort(times.begin(), times.end(), [](const RemarkLine &a, const RemarkLine &b) {
    return a.metrics.at("seconds") > b.metrics.at("seconds");
  });
  return times;
}

void printKernelTimes(const std::vector<RemarkLine> &times) {
  if (times.empty())
    return;
  std::cout << "\nKernels of a step, each with what bounds it from below (issue of multiply-adds, L2, memory of the "
               "device, launches; shared memory is not counted):\n";
  for (const RemarkLine &each : times)
    std::cout << "  " << printable(each.text) << "\n";
}

void printSentences(std::vector<Sentence> sentences, const std::vector<RemarkLine> &times, bool asJson) {
  sentences.resize(std::min(sentences.size(), shownSentences));
  if (asJson) {
    ordered_json list = ordered_json::array();
    for (const Sentence &sentence : sentences)
      list.push_back({{"about", sentence.about}, {"bytes", sentence.bytes}, {"text", sentence.text}});
    ordered_json answer = {{"measure", measure}, {"sentences", list}};
    for (const RemarkLine &each : times)
      answer["kernels"].push_back(toJson(each));
    std::cout << jsonText(answer, 2) << "\n";
    return;
  }
  for (size_t i = 0; i < sentences.size(); ++i)
    std::cout << (i < 9 ? " " : "") << i + 1 << ". " << sentences[i].about << ": " << sentences[i].text << "\n";
  std::cout << "By falling " << measure << "; --all prints every remark.\n";
  printKernelTimes(times);
}

int explain(const std::string &bundle, bool isAll, bool asJson) {
  Expected<JsonDocument> manifest = readManifest(bundle);
  if (!manifest)
    return fail(manifest.error());
  Expected<std::string> text = readBundleRemarks(bundle);
  if (!text)
    return fail(text.error());
  Expected<std::vector<RemarkLine>> remarks = readRemarks(*text, bundle + "/remarks.txt");
  if (!remarks)
    return fail(remarks.error());
  if (isAll) {
    printAll(*text, *remarks, asJson);
    return 0;
  }
  try {
    printSentences(sentencesOf(manifest->root(), *remarks), kernelTimes(*remarks), asJson);
  } catch (const json::exception &error) {
    return fail(bundle + "/manifest.json: " + parserText(error) + "; compile the model again");
  } catch (const std::out_of_range &) {
    return fail(bundle + "/remarks.txt: a remark lacks the number that a sentence is about; compile the model again");
  }
  return 0;
}

} // namespace

void k2c::addExplain(CLI::App &app, std::function<int()> &run) {
  auto kernel = std::make_shared<ExplainKernelOptions>();
  auto asJson = std::make_shared<bool>(false);
  CLI::App *c = app.add_subcommand("explain", "Why a bundle is what it is: ten sentences, every decision, or a kernel");
  c->footer("examples:\n  k2c explain out\n  k2c explain out --all | grep absorb-mla\n"
            "  k2c explain out --kernel linear_head");
  c->add_option("DIR", kernel->bundle, "the bundle")->required();
  c->add_flag("--all", kernel->isWhole, "every remark of the compiler, in its order; of a kernel, all of its assembly");
  CLI::Option *name = c->add_option("--kernel", kernel->kernel,
                                    "one kernel: what it computes, tile, roofline, code, assembly of its main loop");
  c->add_option(
       "--topology", kernel->topology,
       "the machine of the roofline: a built-in topology or a file (default: of a GPU's bundle its own, else host)")
      ->needs(name);
  addCheckpoint(*c, kernel->checkpoint)->needs(name);
  c->add_flag("--json", *asJson, "print JSON");
  c->callback([=, &run] {
    run = [=] {
      return kernel->kernel.empty() ? explain(kernel->bundle, kernel->isWhole, *asJson) : printKernel(*kernel, *asJson);
    };
  });
}
