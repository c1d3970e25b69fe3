// Ranks as processes that an MPI launcher started.
#ifndef K2RT_TRANSPORT_MPI_MPITRANSPORT_H
#define K2RT_TRANSPORT_MPI_MPITRANSPORT_H

#include "transport/Transport.h"
#include <memory>
#include <string>

namespace k2c::runtime {

/// The shared objects of this transport: one for each MPI library that a build has found.
inline constexpr const char *mpiLibraryFiles[] = {"libk2rt-mpi-openmpi.so", "libk2rt-mpi-mpich.so"};

/// Which of them belongs to the launcher of this process.
Expected<std::string> mpiLibraryOfLauncher();

/// Opens such a shared object, and with it the MPI library of the system. Once in a process, on the thread that uses
/// the transport. It ends its job by MPI_Abort, which may not return under MPICH where the launcher's host cannot be
/// reached.
Expected<std::unique_ptr<Transport>> openMpi(const std::string &file);

/// Whether a thread of this process is in the last call of its MPI library, which may hang.
bool isMpiFinishing();

/// The rank of this process as its launcher says; 0 where none has started it.
int32_t rankOfLauncher();

} // namespace k2c::runtime

#endif
