//===- Launch.cpp - launch.sh, slurm.sbatch, k8s.yaml -----------------------===//
#include "k2c/Target/Launch.h"
#include "EmbeddedLaunchFiles.h"
#include <filesystem>
#include <map>

namespace fs = std::filesystem;

namespace k2c {

namespace {

/// What MPI and the daemons of its launcher take beside a rank's certificate. Two ranks of a hello-world program have
/// 3 MiB of anonymous memory each under Open MPI 4.1, and 2 MiB with 4 MiB of shared memory under MPICH 4.0; buffers
/// come with every peer.
constexpr int64_t mpiMebibytes = 64;
constexpr int64_t mebibyte = int64_t(1) << 20;

constexpr const char *launchScript = "launch.sh";
/// The part of launch.sh that is about mpirun.
constexpr const char *mpiPart = "launch-mpi.sh";

bool isLetterOrDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// The name in a comment: without anything that could end the line.
std::string inComment(std::string name) {
  for (char &c : name)
    if (!isLetterOrDigit(c) && c != '.' && c != '_' && c != '-')
      c = '-';
  return name;
}

/// A name for the job: as Kubernetes wants it, lower case, letters, digits and hyphens, with room for what the operator
/// adds to it within 63 characters.
std::string jobName(const std::string &model) {
  std::string name = "k2c-";
  for (char c : model.substr(0, 32))
    name += !isLetterOrDigit(c) ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  while (name.back() == '-')
    name.pop_back();
  return name;
}

using Values = std::map<std::string, std::string>;

Values valuesOf(const LaunchFacts &facts) {
  const int64_t ranksOfNode = facts.ranks / facts.nodes;
  const int64_t rankMebibytes = (facts.peakBytes + mebibyte - 1) / mebibyte + mpiMebibytes;
  return {{"model", inComment(facts.model)},
          {"job_name", jobName(facts.model)},
          {"ranks", std::to_string(facts.ranks)},
          {"nodes", std::to_string(facts.nodes)},
          {"ranks_of_node", std::to_string(ranksOfNode)},
          {"cores", std::to_string(facts.cores)},
          {"cpus_of_node", std::to_string(facts.cores * ranksOfNode)},
          {"mpi_mib", std::to_string(mpiMebibytes)},
          {"memory_of_node", std::to_string(rankMebibytes * ranksOfNode)}};
}

/// The template with each {{name}} replaced by its value.
std::string filled(const std::string &text, const Values &values) {
  std::string result;
  size_t at = 0;
  for (size_t open = text.find("{{"); open != std::string::npos; open = text.find("{{", at)) {
    const size_t close = text.find("}}", open);
    result += text.substr(at, open - at) + values.at(text.substr(open + 2, close - open - 2));
    at = close + 2;
  }
  return result + text.substr(at);
}

} // namespace

std::vector<LaunchFile> launchFiles(const LaunchFacts &facts) {
  Values values = valuesOf(facts);
  std::vector<LaunchFile> files;
  for (const EmbeddedFile &file : embeddedLaunchFiles())
    if (file.name == std::string(mpiPart))
      values["start_over_mpi"] = file.text;
  for (const EmbeddedFile &file : embeddedLaunchFiles())
    if (file.name != std::string(mpiPart))
      files.push_back({file.name, filled(file.text, values), file.name == std::string(launchScript)});
  return files;
}

std::string libraryOfBuild(const std::string &file) {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path() / "lib";
  return fs::exists(folder / file, error) ? (folder / file).string() : "";
}

static LibraryTransport transportOf(const std::string &name, const std::string &file, const std::string &package) {
  return {name, file, package, libraryOfBuild(file)};
}

std::vector<LibraryTransport> mpiTransports() {
  std::vector<LibraryTransport> transports;
  for (const std::string name : {"openmpi", "mpich"})
    transports.push_back(transportOf(name, "libk2rt-mpi-" + name + ".so", "lib" + name + "-dev"));
  return transports;
}

LibraryTransport ucxTransport() { return transportOf("ucx", "libk2rt-ucx.so", "libucx-dev"); }

std::vector<std::string> missingTransports() {
  std::string packages;
  bool isOverMpi = false;
  for (const LibraryTransport &transport : mpiTransports()) {
    isOverMpi |= !transport.path.empty();
    packages += (packages.empty() ? "" : " or ") + transport.package;
  }
  const auto missing = [](const std::string &library, const std::string &package) {
    return "this build has no transport over " + library + "; install " + package + ", build k2c and compile again";
  };
  std::vector<std::string> lines;
  if (!isOverMpi)
    lines.push_back(missing("MPI", packages));
  if (const LibraryTransport ucx = ucxTransport(); ucx.path.empty())
    lines.push_back(missing("UCX", ucx.package));
  return lines;
}

} // namespace k2c
