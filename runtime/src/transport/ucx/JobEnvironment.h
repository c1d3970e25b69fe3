// What the variables of whatever started this process say of its job.
#ifndef K2RT_TRANSPORT_UCX_JOBENVIRONMENT_H
#define K2RT_TRANSPORT_UCX_JOBENVIRONMENT_H

#include "transport/ucx/Rendezvous.h"

namespace k2c::runtime {

/// RANK and WORLD_SIZE (launch.sh --node, torchrun), else SLURM_PROCID and SLURM_NTASKS (srun), with MASTER_ADDR,
/// MASTER_PORT and K2RT_JOB_TOKEN. Under Slurm the first host of the job is where rank 0 is; the token is by default
/// the number of the job.
Expected<JobMember> memberOfEnvironment();

/// The rank that these variables say, without their checks; 0 where they say none.
int32_t rankOfEnvironment();

} // namespace k2c::runtime

#endif
