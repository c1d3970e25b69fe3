//===- Launchers.cpp - Programs of this machine that start ranks -----------===//
#include "Launchers.h"
#include "Commands.h"
#include <cstdio>
#include <memory>

using namespace k2c;

/// What the first mpirun on PATH says of itself.
static std::string versionOfMpirun() {
  std::string text;
  const std::unique_ptr<FILE, int (*)(FILE *)> said(::popen("mpirun --version 2>/dev/null </dev/null", "r"), ::pclose);
  char buffer[256];
  while (said && std::fgets(buffer, sizeof buffer, said.get()))
    text += buffer;
  return text;
}

std::string k2c::mpirunOf(const std::string &mpi) {
  if (const std::string path = onPath("mpirun." + mpi); !path.empty())
    return path;
  const std::string path = onPath("mpirun");
  const char *const says = mpi == "openmpi" ? "Open MPI" : "HYDRA";
  return !path.empty() && versionOfMpirun().find(says) != std::string::npos ? path : "";
}
