//===- Launch.h - What starts the ranks of a bundle -----------------------===//
//
// A bundle of several ranks has launch.sh (mpirun, or by hand), slurm.sbatch (Slurm) and k8s.yaml (an MPIJob of
// Kubernetes) beside its program, and in lib/ the transports over the libraries that this build knows: MPI and UCX.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_TARGET_LAUNCH_H
#define K2C_TARGET_LAUNCH_H

#include <cstdint>
#include <string>
#include <vector>

namespace k2c {

/// What the files that start a bundle's ranks say of it.
struct LaunchFacts {
  std::string model;
  int64_t ranks = 1, nodes = 1; ///< nodes divide ranks
  int64_t cores = 1;            ///< of a rank
  int64_t peakBytes = 0;        ///< of a rank, by the certificate
};

struct LaunchFile {
  std::string name, text;
  bool isProgram = false; ///< has the permission to be executed
};

/// That one of them which depends on the certificate, so that `k2c pack` writes it again.
inline constexpr const char *kubernetesFile = "k8s.yaml";

/// launch.sh, slurm.sbatch and k8s.yaml.
std::vector<LaunchFile> launchFiles(const LaunchFacts &facts);

/// A library over which ranks that are processes exchange messages, and the transport that opens it.
struct LibraryTransport {
  std::string name;    ///< "openmpi", "mpich" or "ucx"
  std::string file;    ///< name of the transport's shared object
  std::string package; ///< what Debian calls the headers that a build needs for it
  std::string path;    ///< the shared object of this build; "": it has none
};

/// The driver that runs kernels of a GPU on a processor, for tests.
inline constexpr const char *emulatedDriverFile = "libk2c-cuda.so";

/// Path of a shared object that this build has in ../lib of the tool; "": it has none.
std::string libraryOfBuild(const std::string &file);

/// Over MPI: those that k2c knows, in the order in which launch.sh prefers them. They are in ../lib of the tool.
std::vector<LibraryTransport> mpiTransports();
LibraryTransport ucxTransport();

/// What it takes to have the transports that this build does not have: one line for MPI, if it has none, and for UCX.
std::vector<std::string> missingTransports();

} // namespace k2c

#endif // K2C_TARGET_LAUNCH_H
