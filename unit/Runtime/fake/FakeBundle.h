// Writes bundles around the hand-written program of fake_program.c, and runs DIR/run on them.
#ifndef K2RT_UNIT_FAKEBUNDLE_H
#define K2RT_UNIT_FAKEBUNDLE_H

#include "k2rt/program.h"
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace k2c::runtime {

/// A bundle folder of its own, removed at the end. Change `manifest` or `index`, then write() again.
class FakeBundle {
public:
  /// `program`: which fake program to carry: "fake", "fake_large" (256 MiB arena), "fake_wide" (2^20 hidden
  /// columns, which its manifest must be given), "fake_groups" (two cache groups), "fake_ranks2", "fake_ranks3" and
  /// "fake_ranks4" (so many ranks) or "fake_abi" (another ABI).
  explicit FakeBundle(const std::string &program = "fake");
  ~FakeBundle();
  FakeBundle(const FakeBundle &) = delete;
  FakeBundle &operator=(const FakeBundle &) = delete;

  nlohmann::json manifest, index;
  nlohmann::json placement; ///< of several ranks: expert e in slot e
  std::string folder;

  /// Makes the manifest of "fake" one of `ranks` ranks, each with all experts of its layers: of all layers, until a
  /// test writes others.
  void repeat(int64_t ranks, const std::string &layout);
  /// Recomputes memory lines that follow from the limits, and the hashes of the weights, then writes manifest.json,
  /// weights/index.json and the list.
  void write();
  /// Writes any file of the bundle, folders included, and the list.
  void writeFile(const std::string &relative, const std::string &content) const;
  /// Writes files.json of what the folder holds now.
  void list() const;
  std::string path(const std::string &relative) const { return folder + "/" + relative; }

private:
  void addRanks(int64_t ranks);

  int64_t reserve = 0; ///< what write() put last: a test's own number stays
};

/// What a command left.
struct Outcome {
  int exitCode = -1;
  std::string out, err;
};

/// Runs DIR/run with arguments. `interruptAfterMs` >= 0: sends SIGINT then.
Outcome runBundle(const FakeBundle &bundle, const std::vector<std::string> &arguments, int interruptAfterMs = -1);

/// The same, expecting success and JSON on stdout.
nlohmann::json runJson(const FakeBundle &bundle, const std::vector<std::string> &arguments);

/// The fake model's greedy continuation, computed independently: token ids and the forms of their positions.
int32_t fakeNextToken(const std::vector<int32_t> &ids, const std::vector<int32_t> &forms);
std::vector<int32_t> fakeContinuation(std::vector<int32_t> prompt, int64_t count, int32_t promptForm);
/// Of a prompt in the form that it is read in: from 8 tokens on expanded.
std::vector<int32_t> fakeContinuation(const std::vector<int32_t> &prompt, int64_t count);
/// Some ids of the fake model's vocabulary, others for each seed.
std::vector<int32_t> fakePrompt(int64_t length, int32_t seed);

/// The logits after `ids`, as the fake program writes them.
std::vector<float> fakeLogits(const std::vector<int32_t> &ids, const std::vector<int32_t> &forms);
/// What is drawn after `prompt` with these parameters; their position is filled in: that of each new token.
std::vector<int32_t> fakeDraws(std::vector<int32_t> prompt, int64_t count, int32_t promptForm,
                               k2rt_ir_sampling sampling);

} // namespace k2c::runtime

#endif
