"""Writes FOLDER/bundle, of which launch.sh and slurm.sbatch see what they would of a compiled one, and FOLDER/bin: all
programs that they may find, with launchers that print their arguments.

usage: launch_bundle.py SOURCE FOLDER RANKS NODES
"""
import os
import re
import shutil
import sys

# FAKE_STDIN: copies stdin as rank 0 does. FAKE_WAIT: says that it runs and waits for a signal; forever: SIGTERM does
# not end it. FAKE_ERRORS: a file that goes to stderr. FAKE_LEFT: leaves a process behind that holds stderr for so many
# seconds. FAKE_EXIT: its exit code.
LAUNCHER = """#!/bin/bash
[ "${1-}" != --version ] || { echo "FAKE_VERSION"; exit; }
printf '%s' "${0##*/}"; printf ' [%s]' "$@"; echo
[ -z "${FAKE_STDIN-}" ] || cat
[ -z "${FAKE_ERRORS-}" ] || cat "$FAKE_ERRORS" >&2
[ -z "${FAKE_LEFT-}" ] || sleep "$FAKE_LEFT" >/dev/null &
if [ -n "${FAKE_WAIT-}" ]; then
  trap 'echo "ended by INT"; exit 1' INT
  [ "$FAKE_WAIT" = forever ] && trap 'echo "not ended by TERM"' TERM || trap 'echo "ended by TERM"; exit 143' TERM
  echo "runs as $$"
  while :; do sleep 0.05; done
fi
exit "${FAKE_EXIT:-0}"
"""
# A rank over UCX: what its variables say, and for each rank, by FAKE_EXITS, its exit code, or the signal that ends it,
# later than others with a +; none: it stays.
# FAKE_WAIT: as above, with one voice.
RUN = """#!/bin/bash
rank=${RANK-}
echo "${rank:+rank $rank of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT: }run$(printf ' [%s]' "$@")"
[ -z "$rank" ] && exit
[ -z "${FAKE_STDIN-}" ] || cat
if [ -n "${FAKE_WAIT-}" ]; then
  trap '[ "$rank" != 0 ] || echo "ended by INT"; exit 130' INT
  trap '[ "$rank" != 0 ] || echo "ended by TERM"; [ "$FAKE_WAIT" = forever ] || exit 143' TERM
  [ "$rank" != 0 ] || echo "runs as $$"
  while :; do sleep 0.05; done
fi
exits=(${FAKE_EXITS-})
[[ ${exits[rank]-} != *+ ]] || sleep 0.3
exits[rank]=${exits[rank]%+}
[[ ${exits[rank]-} != [A-Z]* ]] || kill -s "${exits[rank]}" $$
[ -z "${FAKE_EXITS-}" ] || [ -n "${exits[rank]}" ] || sleep 60
exit "${exits[rank]:-0}"
"""
# FAKE_COMMAND: what Slurm says of the job's file and arguments; unset: it knows no such job.
SCONTROL = """#!/bin/bash
[ "$*" = "show job 7" ] && [ -n "${FAKE_COMMAND-}" ] && echo "   Command=$FAKE_COMMAND"
"""
VERSIONS = {"mpirun.openmpi": "mpirun (Open MPI) 4.1.4", "mpirun.mpich": "HYDRA build details:", "srun": "slurm 22.05"}
TOOLS = ["bash", "cat", "dirname", "env", "hostname", "id", "readlink", "sed", "setsid", "sleep"]


def program(path, text):
    with open(path, "w", encoding="utf8") as file:
        file.write(text)
    os.chmod(path, 0o755)


# FAKE_SSH: how it connects to a host %h, by its own configuration.
SSH = """#!/bin/bash
[[ " $* " == *" -G "* && -n ${FAKE_SSH-} ]] && printf '%b' "${FAKE_SSH//%h/${!#}}" || exit 255
"""
# FAKE_GETENT: the names that the machine knows; by default all.
GETENT = """#!/bin/bash
[[ -z ${FAKE_GETENT-} || " $FAKE_GETENT " == *" $2 "* ]]
"""


def main(source, folder, ranks, nodes):
    package = os.path.join(source, "lib", "Target", "Package")
    with open(os.path.join(package, "launch-mpi.sh"), encoding="utf8") as file:
        mpi = file.read()
    values = {"model": "model", "job_name": "k2c-model", "ranks": ranks, "nodes": nodes, "cores": "3",
              "ranks_of_node": str(int(ranks) // int(nodes)), "start_over_mpi": mpi}
    bundle, programs = os.path.join(folder, "bundle"), os.path.join(folder, "bin")
    os.makedirs(os.path.join(bundle, "lib"))
    os.makedirs(programs)
    for name in ("launch.sh", "slurm.sbatch"):
        with open(os.path.join(package, name), encoding="utf8") as file:
            program(os.path.join(bundle, name), re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], file.read()))
    program(os.path.join(bundle, "run"), RUN)
    for name in ("manifest.json", "lib/libk2rt-mpi-openmpi.so", "lib/libk2rt-mpi-mpich.so", "lib/libk2rt-ucx.so"):
        open(os.path.join(bundle, name), "w", encoding="utf8").close()
    for tool in TOOLS:
        os.symlink(shutil.which(tool), os.path.join(programs, tool))
    for name, version in VERSIONS.items():
        program(os.path.join(programs, name), LAUNCHER.replace("FAKE_VERSION", version))
    program(os.path.join(programs, "ssh"), SSH)
    program(os.path.join(programs, "scontrol"), SCONTROL)
    program(os.path.join(programs, "getent"), GETENT)


main(*sys.argv[1:])
