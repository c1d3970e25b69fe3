// The fake model, once more in C++: what the runtime must reproduce through pages, chunks, batches and threads.
#include "fake/FakeBundle.h"
#include "base/Hash.h"
#include "k2rt/Sampler.h"
#include "k2rt/numerics.h"
#include "k2rt/reserve.h"
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace k2c::runtime {

namespace fs = std::filesystem;
using nlohmann::json;

static constexpr int64_t vocab = 97;
static constexpr int32_t weight = 12345;

FakeBundle::FakeBundle(const std::string &program) {
  std::string name = (fs::temp_directory_path() / "k2rt-fake-XXXXXX").string();
  folder = ::mkdtemp(name.data());
  fs::create_directories(folder + "/weights");
  fs::copy_file(std::string(K2RT_FAKE_FOLDER) + "/" + program + ".so", path("program.so"));
  fs::copy_file(K2RT_RUN_PROGRAM, path("run"));
  writeFile("weights/blob0.bin", std::string(reinterpret_cast<const char *>(&weight), 4) + std::string(4092, 'w'));
  const int64_t arena = program == "fake_large" ? int64_t(256) << 20 : 65536;
  manifest = json::parse(R"({"format":1,"k2c":"0.1.0",
    "model":{"name":"fake","family":"fake","layers":2,"hidden":8,"vocab":97,"heads":2,"experts":16,"top_k":2,
             "max_position":4096,"moe_layers":[1]},
    "numerics":{"compute":"f32","compute_reason":"asked for","mla":"phased","class":"f32","id":"fake"},
    "target":{"cpu":"x86-64","features_required":["sse2"]},"topology":{"name":"host","ranks":1},
    "limits":{"step_tokens":48,"max_sequences":4,"max_context":1000,"page":64,"pages":64},
    "cache":[{"plane":"ids","layers":2,"width":1,"bytes_per_element":4,"pages":64,"group":0},
             {"plane":"forms","layers":2,"width":1,"bytes_per_element":4,"pages":64,"group":0}],
    "memory":{"scratch_per_worker":4096,"weights":4096,"collectives":0,"code":12288},
    "forms":{"prompt_expanded_at_least":8},"eos":[89],"bos":null,
    "kernels":[{"name":"append","hash":"0","variants":["one","many"]},{"name":"capture","hash":"1","variants":["only"]},
               {"name":"logits","hash":"2","variants":["only"]},{"name":"check_mode","hash":"3","variants":["only"]}],
    "bytes_per_token":4096,"predicted":{"prefill_s":1.0,"decode_s":0.5,"peak_bytes":1},"ignored_keys":[],
    "weights_index":"weights/index.json"})");
  manifest["numerics"]["version"] = K2RT_NUMERICS_VERSION;
  manifest["cache"][1]["group"] = program == "fake_groups" ? 1 : 0;
  manifest["memory"]["arena"] = arena;
  manifest["memory"]["logits"] = 8 * vocab * 4;
  index = json::parse(
      R"({"format":1,"slots":[{"slot":0,"name":"w","layer":null,"file":"blob0.bin","bytes":4096,"xxh3":""}]})");
  if (program.rfind("fake_ranks", 0) == 0)
    addRanks(program.back() - '0');
  write();
}

/// Experts in one blob, each a page that begins with 1000 + expert.
void FakeBundle::addRanks(int64_t ranks) {
  constexpr int64_t experts = 16;
  const int64_t slots = (experts + ranks - 1) / ranks;
  std::string blob;
  json ranges = json::array(), lists = json::array(), each = json::array();
  for (int64_t expert = 0; expert < experts; ++expert) {
    const auto says = static_cast<int32_t>(1000 + expert);
    blob += std::string(reinterpret_cast<const char *>(&says), 4) + std::string(4092, 'e');
    ranges.push_back({{"file", "blob1.bin"}, {"offset", expert * 4096}, {"bytes", 4096}});
  }
  writeFile("weights/blob1.bin", blob);
  index["slots"].push_back({{"slot", 1}, {"name", "experts"}, {"layer", 1}, {"experts", ranges}});
  for (int64_t rank = 0; rank < ranks; ++rank) {
    json own = json::array();
    for (int64_t slot = rank * slots; slot < (rank + 1) * slots; ++slot)
      own.push_back(slot < experts ? json(slot) : json());
    lists.push_back(own);
    each.push_back({{"rank", rank}, {"node", 0}, {"stage", 0}, {"layers", {0, 2}}, {"slots", slots}});
    each.back()["weights"] = 4096 * (1 + slots);
  }
  placement = {{"format", 1}, {"model", "fake"}, {"experts", experts}, {"ranks", ranks}};
  placement["layers"]["1"]["both"] = lists;
  manifest["topology"] = {{"name", "cpu"}, {"ranks", ranks}, {"nodes", 1}, {"cores", 1}};
  manifest["layout"] = "ep=" + std::to_string(ranks) + ",dp=" + std::to_string(ranks);
  manifest["placement"] = {{"file", "placement.json"}, {"experts", experts}, {"slots", ranks * slots}, {"hash", "0"}};
  manifest["ranks"] = each;
  manifest["memory"]["weights"] = 4096 * (1 + slots);
  manifest["shares"] = {{{"slots", 1}}, {{"slots", 1}, {"experts", slots}, {"items", 1}, {"item_bytes", 4096}}};
  for (int site = 0; site < 2; ++site)
    manifest["collectives"].push_back({{"site", site},
                                       {"op", "all_to_all_rows"},
                                       {"group", "ep"},
                                       {"quota_rows", site == 0 ? 48 : 0},
                                       {"row_bytes", 16},
                                       {"max_bytes", 48 * 16}});
  for (const char *name : {"plan_routes", "answer", "turn", "check_back"})
    manifest["kernels"].push_back({{"name", name}});
}

void FakeBundle::repeat(int64_t ranks, const std::string &layout) {
  manifest["topology"] = {{"name", "cpu"}, {"ranks", ranks}, {"nodes", 1}, {"cores", 1}};
  manifest["layout"] = layout;
  manifest["collectives"] = json::array();
  for (int64_t rank = 0; rank < ranks; ++rank)
    manifest["ranks"].push_back({{"rank", rank},
                                 {"node", 0},
                                 {"stage", 0},
                                 {"layers", {0, 2}},
                                 {"slots", manifest["model"]["experts"]},
                                 {"weights", manifest["memory"]["weights"]}});
}

FakeBundle::~FakeBundle() {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

void FakeBundle::writeFile(const std::string &relative, const std::string &content) const {
  fs::create_directories(fs::path(path(relative)).parent_path());
  std::ofstream(path(relative), std::ios::binary | std::ios::trunc) << content;
  list();
}

static std::string readFile(const fs::path &path) {
  std::string bytes(fs::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

static std::string hashOfFile(const fs::path &path) {
  const std::string bytes = readFile(path);
  return hashText(hashOf(bytes.data(), bytes.size()));
}

void FakeBundle::list() const {
  json files = json::array();
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    if (!entry.is_regular_file() || entry.path().extension() == ".bin" || name == "files.json")
      continue;
    static const std::string hashOfRun = hashOfFile(K2RT_RUN_PROGRAM); // a large file that no test lists otherwise
    const std::string hash = name == "run" ? hashOfRun : hashOfFile(entry.path());
    files.push_back({{"file", name}, {"bytes", entry.file_size()}, {"xxh3", hash}});
  }
  std::ofstream(path("files.json")) << json{{"format", 1}, {"files", files}};
}

static constexpr size_t chunkBytes = size_t(2) << 20;

/// The hashes of the 2 MiB chunks of `bytes`.
static void addChunks(json &range, const std::string &bytes) {
  range["chunks"] = json::array();
  for (size_t at = 0; at < bytes.size(); at += chunkBytes)
    range["chunks"].push_back(hashText(hashOf(bytes.data() + at, std::min(chunkBytes, bytes.size() - at))));
}

void FakeBundle::write() {
  const json &l = manifest["limits"];
  int64_t experts = 0, groups = 0;
  for (const json &plane : manifest.value("cache", json::array()))
    groups = std::max(groups, plane.value("group", int64_t(0)) + 1);
  for (const json &run : manifest.value("shares", json::array()))
    experts += run.value("slots", int64_t(0)) * run.value("experts", int64_t(0));
  const k2rt_limits limits = {l.value("step_tokens", int64_t(1)),
                              l.value("max_sequences", int64_t(1)),
                              l.value("max_context", int64_t(1)),
                              groups,
                              vocab,
                              0,
                              experts};
  if (manifest["memory"].value("reserve_bytes", json(reserve)) == json(reserve))
    manifest["memory"]["reserve_bytes"] = reserve = k2rt_reserve_bytes(&limits);
  if (!manifest["memory"].contains("cache"))
    manifest["memory"]["cache"] = 2 * 2 * 64 * 64 * 4;
  for (json &slot : index["slots"]) {
    slot["chunk_bytes"] = chunkBytes;
    if (!slot.contains("experts"))
      addChunks(slot, readFile(path("weights/blob0.bin")));
    else
      for (json &range : slot["experts"])
        if (!range.is_null())
          addChunks(range,
                    readFile(path("weights/" + std::string(range["file"]))).substr(range["offset"], range["bytes"]));
  }
  if (!placement.is_null())
    writeFile("placement.json", placement.dump());
  writeFile("manifest.json", manifest.dump());
  writeFile("weights/index.json", index.dump());
}

/// Reads both pipes until they end, so that neither fills up; sends SIGINT when its time has come.
static void collect(pid_t child, int out, int err, int interruptAfterMs, Outcome &outcome) {
  pollfd pipes[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  std::string *texts[2] = {&outcome.out, &outcome.err};
  int open = 2;
  while (open > 0) {
    const int ready = ::poll(pipes, 2, interruptAfterMs >= 0 ? interruptAfterMs : -1);
    if (interruptAfterMs >= 0 && (ready == 0 || !outcome.out.empty())) {
      ::kill(child, SIGINT);
      interruptAfterMs = -1;
    }
    for (int i = 0; i < 2; ++i) {
      if (pipes[i].fd < 0 || !(pipes[i].revents & (POLLIN | POLLHUP)))
        continue;
      char buffer[4096];
      const ssize_t got = ::read(pipes[i].fd, buffer, sizeof buffer);
      if (got > 0) {
        texts[i]->append(buffer, static_cast<size_t>(got));
      } else {
        pipes[i].fd = -1;
        --open;
      }
    }
  }
}

Outcome runBundle(const FakeBundle &bundle, const std::vector<std::string> &arguments, int interruptAfterMs) {
  std::vector<std::string> words = {bundle.path("run")};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  int out[2], err[2];
  Outcome outcome;
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0)
    return outcome;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  ::posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  pid_t child = -1;
  const int refused = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  ::close(err[1]);
  if (refused == 0) {
    collect(child, out[0], err[0], interruptAfterMs, outcome);
    int status = 0;
    ::waitpid(child, &status, 0);
    outcome.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  ::close(out[0]);
  ::close(err[0]);
  return outcome;
}

json runJson(const FakeBundle &bundle, const std::vector<std::string> &arguments) {
  const Outcome outcome = runBundle(bundle, arguments);
  if (outcome.exitCode != 0)
    return json{{"failed", outcome.err}};
  return json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
}

int32_t fakeNextToken(const std::vector<int32_t> &ids, const std::vector<int32_t> &forms) {
  uint32_t hash = weight;
  for (size_t p = 0; p < ids.size(); ++p)
    hash = hash * 31u + static_cast<uint32_t>(ids[p] + 3 * forms[p]) + static_cast<uint32_t>(p);
  return static_cast<int32_t>(hash % 90);
}

std::vector<int32_t> fakeContinuation(std::vector<int32_t> ids, int64_t count, int32_t promptForm) {
  std::vector<int32_t> forms(ids.size(), promptForm), added;
  for (int64_t i = 0; i < count; ++i) {
    added.push_back(fakeNextToken(ids, forms));
    ids.push_back(added.back());
    forms.push_back(1);
  }
  return added;
}

std::vector<int32_t> fakeContinuation(const std::vector<int32_t> &prompt, int64_t count) {
  return fakeContinuation(prompt, count, prompt.size() >= 8 ? K2RT_FORM_EXPANDED : K2RT_FORM_ABSORBED);
}

std::vector<int32_t> fakePrompt(int64_t length, int32_t seed) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i)
    ids.push_back(static_cast<int32_t>((i * 7 + seed * 13 + i * i) % 90));
  return ids;
}

std::vector<float> fakeLogits(const std::vector<int32_t> &ids, const std::vector<int32_t> &forms) {
  std::vector<float> logits(vocab);
  for (int64_t v = 0; v < vocab; ++v)
    logits[v] = static_cast<float>(v) / 1024.0f;
  logits[fakeNextToken(ids, forms)] = 1.0f + 1.0f / 3.0f;
  return logits;
}

std::vector<int32_t> fakeDraws(std::vector<int32_t> ids, int64_t count, int32_t promptForm, k2rt_ir_sampling sampling) {
  std::vector<int32_t> forms(ids.size(), promptForm), added;
  for (int64_t i = 0; i < count; ++i) {
    sampling.position = static_cast<int64_t>(ids.size());
    added.push_back(Sampler(vocab).sample(fakeLogits(ids, forms).data(), sampling));
    ids.push_back(added.back());
    forms.push_back(1);
  }
  return added;
}

} // namespace k2c::runtime
