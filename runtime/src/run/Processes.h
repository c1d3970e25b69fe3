// Ranks as processes, one of which this is.
#ifndef K2RT_RUN_PROCESSES_H
#define K2RT_RUN_PROCESSES_H

#include "run/Commands.h"
#include <string>
#include <vector>

namespace k2c::runtime {

/// The transports by which the bundle in `folder` starts several ranks.
std::vector<std::string> transportsOf(const std::string &folder);

/// First of all: which rank this process is, by its launcher or, for these arguments, by what ranks over UCX have. The
/// variables of the latter may have other uses.
void identifyProcess(int argc, char **argv);

/// Joins the ranks that run as processes, over the transport of the options, mpi or ucx: rank 0 runs `command`, as do
/// the others where the options say so; else they take part in its steps.
Status runAsRank(const Command &command, RunOptions &options);

/// Whether this process is rank 0 of a job, or of none.
bool isFirstRank();

/// Of a failure of another rank than the first, before it is printed: waits for the first to print what has failed and
/// to end the job. Where it does not, the failure is this rank's to print, and has its number in front.
void leaveToFirstRank(Error &failure);

/// As the last act of the program, where it is a process of a job: after a failure ends all of them with this code; and
/// ends this one where its MPI library has not finished within the deadline.
void endJob(int exitCode, const RunOptions &options);

} // namespace k2c::runtime

#endif
