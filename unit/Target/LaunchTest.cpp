//===- LaunchTest.cpp - launch.sh, slurm.sbatch, k8s.yaml are filled in ----===//
#include "k2c/Target/Launch.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

LaunchFile fileNamed(const std::string &name, const LaunchFacts &facts) {
  for (const LaunchFile &file : launchFiles(facts))
    if (file.name == name)
      return file;
  return {};
}

bool hasLine(const LaunchFile &file, const std::string &line) {
  return ("\n" + file.text).find("\n" + line + "\n") != std::string::npos;
}

TEST(LaunchTest, NumbersOfRanksNodesAndCores) {
  const LaunchFacts facts{"model", 8, 4, 3, (int64_t(100) << 20) + 1};
  const LaunchFile script = fileNamed("launch.sh", facts), slurm = fileNamed("slurm.sbatch", facts);
  EXPECT_TRUE(script.isProgram);
  EXPECT_TRUE(hasLine(script, "ranks=8") && hasLine(script, "nodes=4") && hasLine(script, "ranks_of_node=2"));
  EXPECT_TRUE(hasLine(slurm, "#SBATCH --nodes=4") && hasLine(slurm, "#SBATCH --ntasks=8"));
  EXPECT_TRUE(hasLine(slurm, "#SBATCH --ntasks-per-node=2") && hasLine(slurm, "#SBATCH --cpus-per-task=3"));
  // Two ranks of 101 MiB and of 64 MiB for MPI, with three cores each.
  const LaunchFile job = fileNamed(kubernetesFile, facts);
  EXPECT_FALSE(job.isProgram);
  EXPECT_TRUE(hasLine(job, "                limits: {cpu: \"6\", memory: 330Mi}"));
  for (const LaunchFile &file : launchFiles(facts))
    EXPECT_EQ(file.text.find("{{"), std::string::npos) << file.name;
}

TEST(LaunchTest, ANameIsNeitherALineNorMoreThanKubernetesTakes) {
  const LaunchFacts facts{"A_b.c\n#SBATCH --uid=0 " + std::string(100, 'x') + "/", 2, 1, 1, 1};
  const LaunchFile slurm = fileNamed("slurm.sbatch", facts), job = fileNamed(kubernetesFile, facts);
  EXPECT_EQ(slurm.text.find("--uid=0"), std::string::npos);
  EXPECT_TRUE(hasLine(slurm, "#SBATCH --job-name=k2c-a-b-c--sbatch---uid-0-xxxxxxxxxx"));
  EXPECT_TRUE(hasLine(job, "  name: k2c-a-b-c--sbatch---uid-0-xxxxxxxxxx"));
  EXPECT_TRUE(hasLine(fileNamed(kubernetesFile, {"x-", 2, 1, 1, 1}), "  name: k2c-x"));
}

TEST(LaunchTest, TransportsAreKnownByName) {
  const std::vector<LibraryTransport> transports = mpiTransports();
  ASSERT_EQ(transports.size(), 2u);
  EXPECT_EQ(transports[0].file, "libk2rt-mpi-openmpi.so");
  EXPECT_EQ(transports[1].package, "libmpich-dev");
  EXPECT_EQ(ucxTransport().file, "libk2rt-ucx.so");
}

} // namespace
