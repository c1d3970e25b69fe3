// What variables say of a job, and what they leave open.
#include "transport/ucx/JobEnvironment.h"
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>

using namespace k2c;
using namespace k2c::runtime;

namespace {

using Variables = std::map<std::string, std::string>;

/// "rank of ranks at host:port, token", or the error, with these variables and no other.
std::string memberUnder(const Variables &variables) {
  for (const char *name :
       {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "K2RT_JOB_TOKEN", "TORCHELASTIC_RUN_ID", "SLURM_PROCID",
        "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST"})
    ::unsetenv(name);
  for (const auto &[name, value] : variables)
    ::setenv(name.c_str(), value.c_str(), 1);
  const Expected<JobMember> member = memberOfEnvironment();
  if (!member)
    return member.error().text();
  EXPECT_EQ(rankOfEnvironment(), member->rank);
  return std::to_string(member->rank) + " of " + std::to_string(member->ranks) + " at " + member->host + ":" +
         member->port + ", " + member->token;
}

Variables slurm(const std::string &hosts) {
  return {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", hosts}};
}

} // namespace

TEST(JobEnvironment, VariablesOfTorchrun) {
  Variables set = {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "host0"}};
  EXPECT_EQ(memberUnder(set), "1 of 4 at host0:29500, ");
  set.insert({{"MASTER_PORT", "1234"}, {"TORCHELASTIC_RUN_ID", "run"}, {"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "9"}});
  EXPECT_EQ(memberUnder(set), "1 of 4 at host0:1234, torchrun run");
  set["K2RT_JOB_TOKEN"] = "secret";
  EXPECT_EQ(memberUnder(set), "1 of 4 at host0:1234, secret");
}

TEST(JobEnvironment, VariablesOfSlurm) {
  EXPECT_EQ(memberUnder(slurm("a,b")), "5 of 8 at a:29500, slurm 7.");
  Variables set = slurm("n[03-05,7],m2");
  set["SLURM_STEP_ID"] = "0";
  EXPECT_EQ(memberUnder(set), "5 of 8 at n03:29500, slurm 7.0");
  set["SLURM_STEP_NODELIST"] = "n[04,07]";
  EXPECT_EQ(memberUnder(set), "5 of 8 at n04:29500, slurm 7.0");
  set["MASTER_ADDR"] = "other";
  EXPECT_EQ(memberUnder(set), "5 of 8 at other:29500, slurm 7.0");
}

TEST(JobEnvironment, WhatIsMissingIsNamed) {
  const std::string remedy = " is not set; start ranks with DIR/launch.sh --node I, or set RANK, WORLD_SIZE, "
                             "MASTER_ADDR and MASTER_PORT";
  EXPECT_EQ(memberUnder({}), "transport ucx: WORLD_SIZE" + remedy);
  EXPECT_EQ(rankOfEnvironment(), 0);
  EXPECT_EQ(memberUnder({{"WORLD_SIZE", "4"}}), "transport ucx: RANK" + remedy);
  EXPECT_EQ(memberUnder({{"RANK", "4"}, {"SLURM_PROCID", "1"}}), "transport ucx: WORLD_SIZE" + remedy);
  EXPECT_EQ(memberUnder({{"SLURM_PROCID", "1"}}), "transport ucx: SLURM_NTASKS" + remedy);
  for (const char *hosts : {"", "r[1-2]n[1-4]", "n[1-2"})
    EXPECT_EQ(memberUnder(slurm(hosts)), "transport ucx: MASTER_ADDR is not set; it names the host of rank 0");
}

TEST(JobEnvironment, NumbersHaveBounds) {
  Variables set = {{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "host0"}, {"MASTER_PORT", "0"}};
  EXPECT_EQ(memberUnder(set), "RANK: '4' is not a whole number from 0 to 3");
  set["RANK"] = "0x1";
  EXPECT_EQ(memberUnder(set), "RANK: '0x1' is not a whole number from 0 to 3");
  set["RANK"] = "3";
  EXPECT_EQ(memberUnder(set), "MASTER_PORT: '0' is not a whole number from 1 to 65535");
  set["WORLD_SIZE"] = "65537";
  EXPECT_EQ(memberUnder(set), "WORLD_SIZE: '65537' is not a whole number from 1 to 65536");
}
