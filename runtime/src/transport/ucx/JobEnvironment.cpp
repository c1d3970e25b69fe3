#include "transport/ucx/JobEnvironment.h"
#include "base/Utf8.h"
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace k2c::runtime {

static constexpr int64_t maxRanks = 65536;
static constexpr const char *defaultPort = "29500";

static const char *valueOf(const char *name) {
  const char *value = std::getenv(name);
  return value && *value ? value : nullptr;
}

static Expected<int32_t> numberOf(const char *name, int64_t least, int64_t most) {
  const char *text = valueOf(name);
  int64_t number = 0;
  if (!text)
    return Error{K2RT_UNSUPPORTED, "transport ucx", std::string(name) + " is not set",
                 "start ranks with DIR/launch.sh --node I, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"};
  const char *const end = text + std::strlen(text);
  const auto [next, problem] = std::from_chars(text, end, number);
  if (problem != std::errc() || next != end || number < least || number > most)
    return Error{name,
                 "'" + shortened(text) + "' is not a whole number from " + std::to_string(least) + " to " +
                     std::to_string(most),
                 ""};
  return static_cast<int32_t>(number);
}

/// The first host of a list as Slurm writes it: "a,b", "n[3-5,7]"; "" where it is not as simple.
static std::string firstHost(const std::string &list) {
  const std::string host = list.substr(0, list.find_first_of(",["));
  if (host.size() == list.size() || list[host.size()] == ',')
    return host;
  const size_t first = host.size() + 1, end = list.find(']', first);
  const bool isLast = end != std::string::npos && (end + 1 == list.size() || list[end + 1] == ',');
  return isLast ? host + list.substr(first, list.find_first_of("-,]", first) - first) : "";
}

static std::string hostOfSlurm() {
  const char *step = valueOf("SLURM_STEP_NODELIST"), *job = valueOf("SLURM_JOB_NODELIST");
  return step || job ? firstHost(step ? step : job) : "";
}

static std::string defaultToken(bool isOfSlurm) {
  const char *run = valueOf("TORCHELASTIC_RUN_ID"), *job = valueOf("SLURM_JOB_ID"), *step = valueOf("SLURM_STEP_ID");
  if (isOfSlurm)
    return std::string("slurm ") + (job ? job : "") + "." + (step ? step : "");
  return run ? std::string("torchrun ") + run : "";
}

static bool isOfSlurm() { return !valueOf("RANK") && !valueOf("WORLD_SIZE") && valueOf("SLURM_PROCID"); }

Expected<JobMember> memberOfEnvironment() {
  const bool bySlurm = isOfSlurm();
  Expected<int32_t> ranks = numberOf(bySlurm ? "SLURM_NTASKS" : "WORLD_SIZE", 1, maxRanks);
  if (!ranks)
    return ranks.takeError();
  Expected<int32_t> rank = numberOf(bySlurm ? "SLURM_PROCID" : "RANK", 0, *ranks - 1);
  if (!rank)
    return rank.takeError();
  const char *host = valueOf("MASTER_ADDR"), *port = valueOf("MASTER_PORT"), *token = valueOf("K2RT_JOB_TOKEN");
  JobMember member;
  member.rank = *rank;
  member.ranks = *ranks;
  member.host = host ? host : bySlurm ? hostOfSlurm() : "";
  member.port = port ? port : defaultPort;
  member.token = token ? token : defaultToken(bySlurm);
  if (member.host.empty())
    return Error{K2RT_UNSUPPORTED, "transport ucx", "MASTER_ADDR is not set", "it names the host of rank 0"};
  if (port)
    if (Expected<int32_t> number = numberOf("MASTER_PORT", 1, 65535); !number)
      return number.takeError();
  return member;
}

int32_t rankOfEnvironment() {
  const char *rank = valueOf(isOfSlurm() ? "SLURM_PROCID" : "RANK");
  return rank ? std::atoi(rank) : 0;
}

} // namespace k2c::runtime
