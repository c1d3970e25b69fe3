//===- Launchers.h - Programs of this machine that start ranks -------------===//
#ifndef K2C_TOOLS_K2C_LAUNCHERS_H
#define K2C_TOOLS_K2C_LAUNCHERS_H

#include <string>

namespace k2c {

/// The path of the mpirun of "openmpi" or "mpich", by Debian's name for it or by what it says of itself, as launch.sh
/// chooses it; "": there is none.
std::string mpirunOf(const std::string &mpi);

} // namespace k2c

#endif // K2C_TOOLS_K2C_LAUNCHERS_H
