// `run info`: what the bundle is and what it will take, from the manifest alone: no weights, no program, any CPU.
//
// A program for a GPU has another certificate, that of its device, and the driver is asked for what is there.
// All numbers of memory and of limits are of one rank; JSON has an entry for each. "placement" is that of the experts
// of several ranks, "numa" that of the workers of one.
#include "base/FormatBytes.h"
#include "base/Utf8.h"
#include "device/OpenEngine.h"
#include "device/cpu/PlacementReport.h"
#include "engine/TraceFile.h"
#include "program/Bundle.h"
#include "run/Commands.h"
#include "run/JsonWriter.h"
#include "run/Processes.h"
#include "run/Run.h"
#include "run/StatisticsFile.h"
#include <cinttypes>

namespace k2c::runtime {

namespace {

/// What ranks have in common: how many they are, what divides the model among them, where its experts are.
void printRanks(JsonWriter &json, const Manifest &manifest, const std::string &folder) {
  const RankFacts &ranks = manifest.ranks;
  json.key("layout").value(ranks.layout).key("transports").beginList();
  if (ranks.areSeveral())
    for (const std::string &transport : transportsOf(folder))
      json.value(transport);
  json.endList().key("groups").beginList();
  const std::pair<const char *, int64_t> groups[] = {{"ep", ranks.divideExperts ? ranks.expertRanks() : 1},
                                                     {"dp", ranks.stageRanks() / ranks.tp},
                                                     {"tp", ranks.tp},
                                                     {"etp", ranks.etp},
                                                     {"pp", ranks.stageCount()},
                                                     {"replica", ranks.replicas}};
  for (const auto &[group, size] : groups)
    if (size > 1 || group == groups[0].first || group == groups[1].first)
      json.beginObject().key("name").value(group).key("size").value(size).endObject();
  json.endList().key("collectives").raw(ranks.collectivesJson);
  if (!ranks.divideExperts)
    return;
  json.key("placement").beginObject().key("hash").value(ranks.placement.hash);
  json.key("experts").value(ranks.placement.experts).key("slots").value(ranks.placement.slots).endObject();
}

/// What a rank takes to run steps with others, over a transport; the certificate is that of the most.
int64_t exchangeBytes(const Manifest &manifest, int64_t rank, const std::string &transport) {
  if (!manifest.ranks.areSeveral())
    return 0;
  const int64_t library = transport == "local" ? 0 : transport == "ucx" ? K2RT_UCX_BYTES : K2RT_MPI_BYTES;
  return k2rt_exchange_bytes(&manifest.memory.limits, rank == 0 ? manifest.ranks.count : 0, library);
}

/// One rank with its certificate: weights and cache are its own, and rank 0 alone schedules and reads text.
void printRank(JsonWriter &json, const Manifest &manifest, int64_t rank, int32_t threads, const RunOptions &options) {
  const MemoryCertificate &memory = manifest.memory;
  const int64_t exchange = exchangeBytes(manifest, rank, options.transport);
  const int64_t tokenizer = rank == 0 ? k2rt_tokenizer_reserve(&memory.limits) : 0;
  const int64_t reserve = memory.reserveBytes(threads) - k2rt_tokenizer_reserve(&memory.limits) + tokenizer;
  // Scratch and logits are working memory of steps, as the arena is: the owned numbers and the reserve add up.
  const int64_t arena = memory.arena + threads * memory.scratchPerWorker + memory.logits;
  int64_t weights = memory.weights;
  json.beginObject();
  if (manifest.ranks.areSeveral()) {
    const OneRankFacts &facts = manifest.ranks.each[rank];
    weights = facts.weights;
    json.key("rank").value(rank).key("node").value(facts.node).key("stage").value(facts.stage);
    json.key("layers").beginList().value(facts.firstLayer).value(facts.endLayer).endList();
    json.key("slots").value(facts.slots);
  }
  const int64_t cache = manifest.cacheBytes(rank);
  json.key("peak_bytes").value(weights + memory.code + cache + arena + exchange + reserve);
  json.key("threads").value(int64_t(threads)).key("owned").beginObject();
  json.key("weights").value(weights).key("cache").value(cache).key("arena").value(arena);
  json.key("collectives").value(exchange).key("code").value(memory.code).endObject();
  json.key("arena_parts").beginObject().key("arena").value(memory.arena);
  json.key("scratch_per_worker").value(memory.scratchPerWorker).key("logits").value(memory.logits).endObject();
  json.key("reserve_bytes").value(reserve).key("reserve_parts").beginObject();
  json.key("workers").value(k2rt_worker_bytes(&memory.limits, threads));
  json.key("tokenizer").value(tokenizer).endObject().endObject();
}

/// The GPU of a program: what it was compiled for, and what is here, where a driver can be asked.
void printDevice(JsonWriter &json, const DeviceFacts &device, const std::optional<GpuFacts> &gpu) {
  json.key("device").beginObject().key("arch").value(device.arch).key("driver");
  gpu ? json.value(versionText(gpu->driverVersion)) : json.raw("null");
  json.key("name");
  gpu ? json.value(gpu->name) : json.raw("null");
  json.key("code")
      .value(device.hasCubins ? "cubin" : "ptx")
      .key("ctas")
      .value(device.ctas)
      .key("threads")
      .value(device.threads);
  json.key("workers_per_cta").value(device.workersPerCta).key("memory_bytes").value(device.memory);
  json.key("reference_bytes").value(device.referenceBytes).endObject();
}

/// What the rank of a GPU takes of its memory; graphs are in the reserve, which is an estimate.
int64_t deviceBytes(const Manifest &manifest) {
  const MemoryCertificate &memory = manifest.memory;
  return memory.weights + memory.cache + memory.arena + manifest.workspaceBytes() + manifest.device->reserve;
}

/// And what its process takes of the host, which maps all weights to read them once.
int64_t hostBytes(const Manifest &manifest) {
  const MemoryCertificate &memory = manifest.memory;
  return memory.reserve + memory.code + k2rt_gpu_host_bytes(&memory.limits, memory.logits);
}

void printGpuRank(JsonWriter &json, const Manifest &manifest) {
  const MemoryCertificate &memory = manifest.memory;
  json.beginObject().key("device_bytes").value(deviceBytes(manifest)).key("host_bytes").value(hostBytes(manifest));
  json.key("owned").beginObject().key("weights").value(memory.weights).key("cache").value(memory.cache);
  json.key("arena").value(memory.arena).key("workspace").value(manifest.workspaceBytes());
  json.key("graphs").value(int64_t(0)).key("collectives").value(int64_t(0)).endObject();
  json.key("reserve_bytes").value(manifest.device->reserve).key("reserve_source");
  json.value("estimated: context, code and graphs of no device have been measured").endObject();
}

/// The workers of a program of one rank by node.
void printNodes(JsonWriter &json, const Manifest &manifest, int32_t threads, const Container &container) {
  json.key("numa").beginList();
  for (const NodeShare &share : shareOverNodes(manifest, container, threads)) {
    json.beginObject().key("node").value(share.node).key("memory_node").value(share.memory);
    json.key("first_worker").value(share.firstWorker).key("workers").value(share.workers);
    json.key("processors").value(share.processors).key("weights").value(share.weights).endObject();
  }
  json.endList();
}

using LoadsByLayer = std::map<int64_t, ExpertLoads>;

void printLoads(JsonWriter &json, const LoadsByLayer &loads) {
  json.key("expert_loads").beginObject();
  for (const auto &[layer, ofLayer] : loads) {
    const std::vector<int32_t> dead = ofLayer.dead();
    json.key(std::to_string(layer)).beginObject().key("mean_load").value(ofLayer.mean());
    json.key("dead").list(dead.data(), static_cast<int64_t>(dead.size())).key("hot").beginList();
    for (const int32_t expert : ofLayer.hot())
      json.beginObject().key("expert").value(expert).key("load").value(ofLayer.of(expert)).endObject();
    json.endList().endObject();
  }
  json.endObject();
}

void printLoads(const LoadsByLayer &loads) {
  std::printf("loads      tokens that chose an expert; hot: more than twice the mean\n");
  for (const auto &[layer, ofLayer] : loads) {
    std::string dead, hot;
    for (const int32_t expert : ofLayer.dead())
      dead += (dead.empty() ? "" : ", ") + std::to_string(expert);
    for (const int32_t expert : ofLayer.hot())
      hot += (hot.empty() ? "" : ", ") + std::to_string(expert) + " (" + std::to_string(ofLayer.of(expert)) + ")";
    std::printf("           layer %" PRId64 ": mean %.4g; dead %s; hot %s\n", layer, ofLayer.mean(),
                dead.empty() ? "none" : dead.c_str(), hot.empty() ? "none" : hot.c_str());
  }
}

void printWidened(JsonWriter &json, const std::vector<WidenedWeights> &widened) {
  json.key("widened").beginList();
  for (const WidenedWeights &of : widened)
    json.beginObject()
        .key("format")
        .value(of.format)
        .key("tensors")
        .value(of.tensors)
        .key("stored_bytes")
        .value(of.storedBytes)
        .key("widened_bytes")
        .value(of.widenedBytes)
        .endObject();
  json.endList();
}

void printJson(const Manifest &manifest, int32_t threads, const Container &container, const RunOptions &options,
               const LoadsByLayer &loads, const std::optional<GpuFacts> &gpu) {
  JsonWriter json(stdout);
  json.beginObject().key("model").raw(manifest.modelJson).key("numerics").raw(manifest.numericsJson);
  if (!manifest.widened.empty())
    printWidened(json, manifest.widened);
  json.key("topology").raw(manifest.topologyJson).key("target").raw(manifest.targetJson);
  json.key("limits").raw(manifest.limitsJson);
  if (manifest.device)
    printDevice(json, *manifest.device, gpu);
  json.key("ranks").beginList();
  for (int64_t rank = 0; rank < manifest.ranks.count; ++rank)
    manifest.device ? printGpuRank(json, manifest) : printRank(json, manifest, rank, threads, options);
  json.endList();
  printRanks(json, manifest, options.folder);
  if (!manifest.ranks.areSeveral() && !manifest.device)
    printNodes(json, manifest, threads, container);
  json.key("dispersion").raw(manifest.dispersionJson).key("kernels").raw(manifest.kernelsJson);
  json.key("bytes_per_token").value(manifest.bytesPerToken).key("predicted").raw(manifest.predictedJson);
  json.key("ignored_keys").raw(manifest.ignoredKeysJson);
  json.key("trust").raw(options.trust ? "true" : "false");
  json.key("eos").list(manifest.eos.data(), static_cast<int64_t>(manifest.eos.size()));
  if (!loads.empty())
    printLoads(json, loads);
  json.endObject().endLine();
}

/// How ranks may be started, and what it takes to start them without mpirun.
std::string transportsText(const std::string &folder) {
  std::string list;
  for (const std::string &transport : transportsOf(folder))
    list += (list.empty() ? "" : ", ") + transport;
  return list + (transportsOf(folder).back() == "ucx"
                     ? ""
                     : "; for ucx compile with a k2c that was built where its header is (Debian: libucx-dev)");
}

/// "leaf, spine as spine": tiers of the topology that are one to a program; "": there are none.
std::string foldedText(const RankFacts &ranks) {
  std::string text;
  for (size_t tier = 0; tier < ranks.tiers.size(); ++tier) {
    std::string names;
    for (const std::string &name : ranks.foldedTiers[tier])
      names += (names.empty() ? "" : ", ") + shortened(name);
    if (!names.empty())
      text += (text.empty() ? "" : "; ") + names + " as " + shortened(ranks.tiers[tier]);
  }
  return text;
}

std::string codeText(const DeviceFacts &device) {
  return device.hasCubins
             ? "cubins of ptxas " + printable(device.ptxas) + " for " + printable(device.arch) + ", and PTX"
             : "PTX, which the driver compiles at each start: the bundle was compiled without ptxas";
}

void printGpuMemory(const Manifest &manifest, const std::optional<GpuFacts> &gpu) {
  const MemoryCertificate &memory = manifest.memory;
  std::printf("device     %s%s\n", printable(manifest.device->arch).c_str(),
              gpu ? (", here " + printable(gpu->name) + ", " + versionText(gpu->driverVersion)).c_str()
                  : ", no driver here");
  std::printf("memory     %s of the device, %s of the host\n", formatBytes(deviceBytes(manifest)).c_str(),
              formatBytes(hostBytes(manifest)).c_str());
  const std::pair<const char *, int64_t> parts[] = {{"weights", memory.weights},
                                                    {"cache", memory.cache},
                                                    {"arena", memory.arena},
                                                    {"workspace", manifest.workspaceBytes()},
                                                    {"reserve, estimated", manifest.device->reserve}};
  for (const auto &[name, bytes] : parts)
    std::printf("           %-20s%s\n", name, formatBytes(bytes).c_str());
  if (const int64_t reference = manifest.device->referenceBytes; reference > 0)
    std::printf("weights    %s are the checkpoint's own bytes, %s are computed tables of the bundle\n",
                formatBytes(reference).c_str(), formatBytes(memory.weights - reference).c_str());
  std::printf("code       %s\n", codeText(*manifest.device).c_str());
}

void printMemory(const Manifest &manifest, int32_t threads, const Container &container) {
  const MemoryCertificate &memory = manifest.memory;
  std::printf("memory     peak %s with %" PRId32 " threads\n", formatBytes(memory.peakBytes(threads)).c_str(), threads);
  const std::pair<const char *, int64_t> parts[] = {{"weights", memory.weights},
                                                    {"cache", memory.cache},
                                                    {"arena", memory.arena},
                                                    {"scratch per thread", memory.scratchPerWorker},
                                                    {"logits", memory.logits},
                                                    {"code", memory.code},
                                                    {"reserve", memory.reserveBytes(threads)}};
  for (const auto &[name, bytes] : parts)
    std::printf("           %-20s%s\n", name, formatBytes(bytes).c_str());
  if (manifest.ranks.areSeveral())
    std::printf("           %-20s%s\n", "collectives", formatBytes(memory.collectives).c_str());
  const std::string note = topologyNote(manifest, container);
  std::fputs((placementText(manifest, container, threads) + (note.empty() ? "" : "           " + note + "\n")).c_str(),
             stdout);
}

void printText(const Manifest &manifest, int32_t threads, const Container &container, const RunOptions &options,
               const std::optional<GpuFacts> &gpu) {
  std::printf("model      %s: %" PRId64 " layers, hidden %" PRId64 ", vocabulary %" PRId64 "\n",
              printable(manifest.modelName).c_str(), manifest.layers, manifest.hidden, manifest.vocab);
  if (!manifest.moeLayers.empty())
    std::printf("experts    %" PRId64 ", %" PRId64 " per token, in %zu layers\n", manifest.experts, manifest.topK,
                manifest.moeLayers.size());
  const std::string why = manifest.computeReason.empty() ? "" : ": " + manifest.computeReason;
  std::printf("numerics   %s\ncompute    %s\ntopology   %s\n", printable(manifest.numericsId).c_str(),
              printable(manifest.compute + why).c_str(), printable(manifest.topology).c_str());
  for (const WidenedWeights &of : manifest.widened)
    std::printf("widened    %" PRId64 " tensors of %s, %s, to %s of f32\n", of.tensors, printable(of.format).c_str(),
                formatBytes(of.storedBytes).c_str(), formatBytes(of.widenedBytes).c_str());
  std::printf("limits     step tokens %" PRId64 ", sequences %" PRId64 ", context %" PRId64 "\n",
              manifest.limits.step_tokens, manifest.limits.max_sequences, manifest.limits.max_context);
  if (manifest.ranks.areSeveral())
    std::printf("ranks      %" PRId64 " on %" PRId64 " nodes, layout %s; all numbers are of one rank\ntransports %s\n",
                manifest.ranks.count, manifest.ranks.nodes, printable(manifest.ranks.layout).c_str(),
                transportsText(options.folder).c_str());
  if (const std::string folded = foldedText(manifest.ranks); !folded.empty())
    std::printf("tiers      %s: ranks exchange over two, within a node and between nodes\n", folded.c_str());
  if (manifest.device)
    printGpuMemory(manifest, gpu);
  else
    printMemory(manifest, threads, container);
  std::printf("kernels    %zu\nfiles      %s\n", manifest.kernels.size(),
              options.trust ? "hashed at each start but for the weights, which are trusted (--trust)"
                            : "hashed at each start, weights too");
}

/// The device that the flags name; none where it cannot be asked.
std::optional<GpuFacts> findGpu(const RunOptions &options, const DeviceFacts &device) {
  const CudaOptions onCuda = onCudaOf(devicesOf(options));
  Expected<std::unique_ptr<Driver>> driver = openDriver(options.folder, device, onCuda);
  if (!driver)
    return std::nullopt;
  Expected<GpuFacts> gpu = readGpu(**driver, onCuda.device);
  return gpu ? std::optional<GpuFacts>(*gpu) : std::nullopt;
}

Status printInfo(const RunOptions &options) {
  if (!options.countersFile.empty())
    return Error{"--counters", "info runs no step, so nothing is counted", "leave it out"};
  if (!options.placements.empty())
    return Error{"--placement", "info is of the bundle and its own placement", "leave it out"};
  Expected<ListedManifest> read = readListedManifest(options.folder);
  if (!read)
    return read.takeError();
  const Manifest &manifest = read->manifest;
  Expected<LoadsByLayer> loads = LoadsByLayer();
  if (!options.statisticsFile.empty())
    loads = readLoads(options.statisticsFile, manifest);
  if (!loads)
    return loads.takeError();
  const Container host = readContainer();
  CpuOptions onCpu;
  onCpu.threads = options.threads;
  onCpu.share.ranks = static_cast<int32_t>(manifest.ranks.count);
  if (Status known = checkDeviceOptions(manifest, devicesOf(options)); !known)
    return known;
  const std::optional<GpuFacts> gpu = manifest.device ? findGpu(options, *manifest.device) : std::nullopt;
  Expected<int32_t> chosen = threadsOf(manifest, onCpu, host);
  if (!chosen)
    return chosen.takeError();
  const int32_t threads = *chosen;
  const Container container = partOf(host, onCpu.share);
  if (!options.traceFile.empty()) {
    Expected<std::unique_ptr<TraceFile>> file = TraceFile::create(options.traceFile);
    if (!file)
      return file.takeError();
    (*file)->beginRank(0, manifest.ranks.count, threads);
    if (Status written = (*file)->finish(/*lost=*/0); !written)
      return written;
  }
  if (options.json) {
    printJson(manifest, threads, container, options, *loads, gpu);
    return {};
  }
  printText(manifest, threads, container, options, gpu);
  if (!loads->empty())
    printLoads(*loads);
  return {};
}

} // namespace

void addInfo(CLI::App &app, RunOptions &options, Command &command) {
  CLI::App *info = app.add_subcommand("info", "print what the bundle is and what memory it takes");
  addRunFlags(*info, options);
  info->get_option("--expert-stats")
      ->description("list, by layer, the experts that no token chose and those that many chose, by this file, which "
                    "another command wrote with the same flag");
  info->footer("No step runs: --chunk changes nothing here, and the file of --trace has no launches.\n"
               "Example: ./run info --expert-stats s.json, behind ./run perplexity TEXT --expert-stats s.json");
  info->callback([&options, &command] { command = [&options] { return printInfo(options); }; });
}

} // namespace k2c::runtime
