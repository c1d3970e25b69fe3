// Opening: bundle, then engine. The handler learns of the engine last and forgets it first.
//
// So SIGINT never reaches an engine that is half made or half gone; one that arrives while the engine is made ends the
// process. Memory that only opening needs, the manifest's document and the tokenizer's JSON, is given back to the
// system at once, as a process should hold what the certificate states. Where workers do not get their own node's
// memory, or weights lie in small pages, a note on stderr says so; it is not an error, as only the speed differs.
//
// The flags that commands share are declared here with their checks: numbers are read strictly, "010" is ten and "8x"
// is refused. A tokenizer is opened against the bundle's list of hashes, and with it the library of regular
// expressions, which is of the bundle that this program belongs to, whichever bundle it reads.
#include "run/Run.h"
#include "base/Utf8.h"
#include "device/cpu/PlacementReport.h"
#include "run/CountersFile.h"
#include "run/Interrupt.h"
#include "run/StatisticsFile.h"
#include "text/Regex.h"
#include <charconv>
#include <filesystem>
#include <malloc.h>

namespace k2c::runtime {

static constexpr int64_t maxTokenizerBytes = int64_t(512) << 20;
static constexpr int64_t maxNamesBytes = int64_t(16) << 20;
static const char namesFile[] = "tokenizer_config.json";

/// Says on stderr by which placements no step will go, and what keeps workers from their own node's memory, or makes
/// memory slow. As a rule, nothing.
static void reportPlacement(const Run &run) {
  for (const auto &[place, rank] : run.engine().refusedPlacements())
    std::fprintf(stderr,
                 "run: note: %s: rank %d has not the weights of all experts that it would have; steps go on by the "
                 "placement before\n",
                 shortened(place).c_str(), rank);
  if (!run.opened.cpu)
    return;
  constexpr int64_t walkable = int64_t(4) << 30; // 0.2 s at worst
  const Weights &weights = run.bundle.weights;
  for (const std::string &note :
       {topologyNote(run.bundle.manifest, run.opened.cpu->container()),
        misplacementNote(run.opened.cpu->weightPageCounts(), run.bundle.folder),
        smallPagesNote(hugeWeightBytes(weights, walkable).value_or(0), weights.hugePageableBytes(), run.bundle.folder)})
    if (!note.empty())
      std::fprintf(stderr, "run: note: %s\n", note.c_str());
}

CpuOptions onCpuOf(const RunOptions &options) {
  CpuOptions onCpu;
  onCpu.threads = options.threads;
  onCpu.trust = options.trust;
  onCpu.traces = !options.traceFile.empty();
  return onCpu;
}

DeviceOptions devicesOf(const RunOptions &options) {
  DeviceOptions devices;
  devices.onCpu = onCpuOf(options);
  devices.driver = options.driver;
  devices.devices = options.devices;
  devices.emulatedSeed = options.emulatedSeed;
  devices.unreturned = options.unreturned;
  if (options.deadline)
    devices.deadline = deadlineOf(options);
  return devices;
}

Clock::duration deadlineOf(const RunOptions &options) {
  using Seconds = std::chrono::duration<double>;
  return std::chrono::duration_cast<Clock::duration>(options.deadline ? Seconds(*options.deadline) : defaultDeadline);
}

RankFiles filesOf(const RunOptions &options) {
  RankFiles files{options.folder, {}};
  for (const std::string &text : options.placements) {
    const size_t at = text.rfind('@');
    int64_t step = 0;
    const char *const end = text.data() + text.size(), *const digits = at == text.npos ? end : text.data() + at + 1;
    if (const auto [last, problem] = std::from_chars(digits, end, step);
        digits < end && problem == std::errc() && last == end && step >= 0)
      files.placements.push_back({text.substr(0, at), step});
    else
      files.placements.push_back({text, 0});
  }
  return files;
}

static Expected<Bundle> openBundle(const RunOptions &options) {
  const RankFiles files = filesOf(options);
  if (options.process)
    return options.process->open(files, onCpuOf(options));
  if (options.transport.empty() && files.placements.empty())
    return Bundle::open(files.folder);
  Expected<std::vector<PlacementText>> placements = readPlacementFiles(files.placements);
  if (!placements)
    return placements.takeError();
  return Bundle::open(files.folder, /*rank=*/0, std::move(*placements));
}

/// Whether both name one file, however they spell it.
static bool isOneFile(const std::string &path, const std::string &other) {
  std::error_code error;
  const auto resolved = [&](const std::string &name) { return std::filesystem::weakly_canonical(name, error); };
  return !path.empty() && !other.empty() && resolved(path) == resolved(other) && !error;
}

Status leavesBundle(const std::string &flag, const std::string &path, const std::string &folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    return {};
  const fs::path inside = fs::relative(path, folder, error); // of both without links
  if (error || inside.empty() || *inside.begin() == "..")
    return {};
  Expected<FileList> files = FileList::read(folder);
  if (!files)
    return files.takeError();
  if (*inside.begin() == "weights" || inside == "files.json" || files->checkListed(inside.string()))
    return Error{flag + " " + shortened(path), "is a file of the bundle, which would be damaged", "name another file"};
  return {};
}

Status Run::openFiles(const RunOptions &options) {
  const std::string &toStatistics = options.statisticsFile, &toCounters = options.countersFile;
  const std::pair<const char *, const std::string *> files[] = {
      {"--trace", &options.traceFile}, {"--expert-stats", &toStatistics}, {"--counters", &toCounters}};
  for (const auto &[flag, path] : files)
    for (const auto *other = files; other->second != path; ++other)
      if (isOneFile(*path, *other->second))
        return Error{std::string(flag) + " " + *path, std::string("is the file of ") + other->first + ", too",
                     "name another file"};
  for (const auto &[flag, path] : files)
    if (Status leaves = leavesBundle(flag, *path, bundle.folder); !leaves)
      return leaves;
  if (!toStatistics.empty() && bundle.manifest.moeLayers.empty())
    return Error{"--expert-stats", "the model has no experts to count", "leave it out"};
  if (!toCounters.empty() && !bundle.manifest.ranks.areSeveral())
    return Error{"--counters", "the bundle has 1 rank, which exchanges nothing", "leave it out"};
  for (auto [option, path, file] :
       {std::tuple{"--expert-stats", &toStatistics, &statistics}, std::tuple{"--counters", &toCounters, &counters}}) {
    if (path->empty())
      continue;
    Expected<OutputFile> created = OutputFile::create(option, *path);
    if (!created)
      return created.takeError();
    *file = std::move(*created);
  }
  return {};
}

/// On stderr: that no GPU runs kernels, or that the driver compiled them first.
static void reportCode(const Run &run, const RunOptions &options) {
  if (!run.opened.cuda)
    return;
  const std::string &why = run.opened.cuda->whyCompiled();
  if (options.driver == emulatedDriver)
    std::fputs("run: note: kernels run in the bundle's emulated driver, an interpreter, and not on a GPU\n", stderr);
  else if (!why.empty())
    std::fprintf(stderr, "run: note: the driver compiled the kernels from PTX: %s\n", printable(why).c_str());
}

Expected<std::unique_ptr<Run>> Run::open(const RunOptions &options, CaptureChoice captures) {
  Expected<Bundle> bundle = openBundle(options);
  if (!bundle)
    return bundle.takeError();
  std::unique_ptr<Run> run(new Run{nullptr, std::move(*bundle)});
  if (Status known = checkDeviceOptions(run->bundle.manifest, devicesOf(options)); !known)
    return known.takeError();
  if (Status opened = run->openFiles(options); !opened)
    return opened.takeError();
  ::malloc_trim(0); // the manifest's document is gone
  Expected<OpenedEngine> opened = run->createEngine(options, captures);
  if (!opened)
    return opened.takeError();
  run->opened = std::move(*opened);
  reportPlacement(*run);
  reportCode(*run, options);
  interruptStops(run->opened.engine.get());
  return run;
}

static Expected<OpenedEngine> onProcessors(Expected<CpuEngine> made) {
  if (!made)
    return made.takeError();
  return OpenedEngine{std::move(made->engine), made->device, nullptr};
}

Expected<OpenedEngine> Run::createEngine(const RunOptions &options, CaptureChoice captures) {
  const EngineOptions chosen{options.chunk, options.traceFile, !options.statisticsFile.empty(),
                             !options.countersFile.empty()};
  if (options.process)
    return onProcessors(options.process->createEngine(bundle, chosen));
  if (!bundle.manifest.ranks.areSeveral()) {
    DeviceOptions devices = devicesOf(options);
    devices.captures = captures;
    return openEngine(bundle, devices, chosen);
  }
  Expected<std::unique_ptr<LocalRanks>> started = LocalRanks::start(bundle, onCpuOf(options), deadlineOf(options));
  if (!started)
    return started.takeError();
  others = std::move(*started);
  Expected<OpenedEngine> created = onProcessors(others->createEngine(bundle, chosen));
  ::malloc_trim(0); // nor do other ranks keep their manifest's document
  return created;
}

Run::~Run() { interruptStops(static_cast<Engine *>(nullptr)); }

Status Run::drain(Scheduler &scheduler) { return finish(scheduler.drain()); }

/// While other ranks are there.
Status Run::writeCounted() {
  Expected<std::vector<RankCounters>> all = engine().counters();
  if (!all)
    return all.takeError();
  RunCounters sums{engine().stepsRun(), engine().stepsInHalves(), {}, engine().traffic(), engine().prompts()};
  for (const RankCounters &ofRank : *all)
    sums.exchanged.add(ofRank.exchanged);
  writeCounters(sums, bundle.manifest, counters.stream());
  return counters.finish();
}

Status Run::finish(Status done) {
  const auto keepFirst = [&done](Status next) {
    if (done)
      done = std::move(next);
  };
  if (done && counters)
    done = writeCounted();
  keepFirst(done ? engine().finish() : engine().finishTrace());
  if (statistics) {
    writeStatistics(*engine().statistics(), bundle.manifest, statistics.stream());
    keepFirst(statistics.finish());
  }
  return done;
}

CLI::Validator within(double least, double most) {
  return CLI::Validator(
      [least, most](std::string &text) {
        double value = 0;
        const bool isNumber = CLI::detail::lexical_cast(text, value);
        if (isNumber && value >= least && value <= most)
          return std::string();
        char wanted[64];
        std::snprintf(wanted, sizeof wanted, " is not a number from %g to %g", least, most);
        return "'" + shortened(text) + "'" + wanted;
      },
      "NUMBER");
}

CLI::Validator wholeFrom(uint64_t least, uint64_t most) {
  return CLI::Validator(
      [least, most](std::string &text) {
        uint64_t value = 0;
        const char *const end = text.data() + text.size();
        const auto [next, problem] = std::from_chars(text.data(), end, value);
        if (problem == std::errc() && next == end && value >= least && value <= most) {
          text = std::to_string(value); // "010" is ten
          return std::string();
        }
        return "'" + shortened(text) + "' is not a whole number from " + std::to_string(least) +
               (most == maxWhole ? " on" : " to " + std::to_string(most));
      },
      "");
}

CLI::Validator notEmpty() {
  return CLI::Validator([](std::string &text) { return std::string(text.empty() ? "is empty" : ""); }, "");
}

void addRankFlags(CLI::App &command, RunOptions &options) {
  command
      .add_option("--threads", options.threads,
                  "worker threads of a rank (default: its part of the processors this process may use)")
      ->transform(wholeFrom(1, maxThreads));
  command
      .add_option("--transport", options.transport,
                  "between ranks; local: they are threads of this process, mpi: processes that mpirun starts, ucx: "
                  "processes that DIR/launch.sh --node I starts, or whatever sets RANK, WORLD_SIZE and MASTER_ADDR")
      ->check(notEmpty());
  command
      .add_option("--deadline", options.deadline,
                  "seconds that a wait between ranks, or a step of a GPU, may take (default: " +
                      std::to_string(defaultDeadline.count()) + ")")
      ->check(within(0.001, 1e6));
}

void addDeviceFlags(CLI::App &command, RunOptions &options) {
  command
      .add_option("--driver", options.driver,
                  "of a bundle for GPUs: the driver's library (default: libcuda.so.1); emulated: an interpreter that "
                  "the bundle has, for tests")
      ->check(notEmpty());
  command.add_option("--device", options.devices, "the driver's number of the GPU (default: 0)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(wholeFrom(0, std::numeric_limits<int32_t>::max()));
  command.add_option("--emulate-seed", options.emulatedSeed, "of the order in which the emulated driver runs warps")
      ->transform(wholeFrom(0, std::numeric_limits<uint64_t>::max()));
}

void addRunFlags(CLI::App &command, RunOptions &options) {
  addRankFlags(command, options);
  addDeviceFlags(command, options);
  command
      .add_option("--chunk", options.chunk, "most prompt tokens of one sequence in one step (default: all that fit)")
      ->transform(wholeFrom(1));
  command.add_option("--trace", options.traceFile, "write what ran when to this file (Perfetto JSON), on all ranks")
      ->check(notEmpty());
  command
      .add_option("--expert-stats", options.statisticsFile,
                  "count the sets of experts that tokens choose, by layer, and write them to this file (JSON)")
      ->check(notEmpty());
  command
      .add_option("--counters", options.countersFile,
                  "of several ranks: write to this file what they sent to each other, and how long they waited (JSON)")
      ->check(notEmpty());
  command
      .add_option("--placement", options.placements,
                  "FILE[@STEP]: which rank has which experts, in place of the bundle's, from that step on; repeatable")
      ->check(notEmpty())
      ->allow_extra_args(false);
  command.add_flag("--trust", options.trust, "leave the hashes of weight files unchecked at start");
  command.add_flag("--json", options.json, "print JSON");
}

/// A tiktoken.model, whose pattern is in the manifest and whose names are in tokenizer_config.json.
static Expected<Tokenizer> parseRanks(const FileList &files, const std::string &path, const std::string &ranks) {
  Expected<Manifest> manifest = readManifest(files);
  if (!manifest)
    return manifest.takeError();
  const std::string &folder = files.folder();
  TiktokenRules rules;
  rules.patterns = std::move(manifest->tiktokenPatterns);
  rules.reserved = manifest->tiktokenReserved;
  rules.place = folder + "/manifest.json: tiktoken.pattern";
  rules.configName = folder + "/" + namesFile;
  if (bundleFileExists(folder, namesFile)) {
    Expected<std::string> config = files.text(namesFile, maxNamesBytes);
    if (!config)
      return config.takeError();
    rules.config = std::move(*config);
  }
  return Tokenizer::parseRanks(ranks, path, rules);
}

Status checkBundledLibrary(const std::string &file) {
  const std::string folder = executableFolder();
  if (folder.empty() || !bundleFileExists(folder, file))
    return {};
  Expected<FileList> files = FileList::read(folder);
  return files ? files->checkHash(file) : Status(files.takeError());
}

Expected<std::optional<Tokenizer>> openTokenizer(const std::string &folder) {
  const std::string file = tokenizerFile(folder);
  if (file.empty())
    return std::optional<Tokenizer>();
  Expected<FileList> files = readFileList(folder);
  if (!files)
    return files.takeError();
  if (Status right = checkBundledLibrary(bundledRegexLibrary); !right) // which patterns open
    return right.takeError();
  Expected<std::string> text = files->text(file, maxTokenizerBytes);
  if (!text)
    return text.takeError();
  const std::string path = folder + "/" + file;
  Expected<Tokenizer> tokenizer =
      file == "tiktoken.model" ? parseRanks(*files, path, *text) : Tokenizer::parse(*text, path);
  text = std::string();
  if (!tokenizer)
    return tokenizer.takeError();
  ::malloc_trim(0); // parsing took more than the tables keep
  return std::optional<Tokenizer>(std::move(*tokenizer));
}

} // namespace k2c::runtime
