// Ranks as processes that an MPI launcher started.
#ifndef K2RT_TRANSPORT_MPI_MPITRANSPORT_H
#define K2RT_TRANSPORT_MPI_MPITRANSPORT_H

#include "transport/Transport.h"
#include <memory>
#include <string>

namespace k2c::runtime {

/// Opens the MPI library that the launcher of this process belongs to: libk2rt-mpi-openmpi.so or libk2rt-mpi-mpich.so
/// in `folder`, and with it the library of the system. Once in a process, on the thread that uses the transport.
Expected<std::unique_ptr<Transport>> openMpi(const std::string &folder);

} // namespace k2c::runtime

#endif
