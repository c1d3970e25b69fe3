#!/bin/bash
# Starts the ranks of {{model}} as processes: {{ranks}} ranks, {{ranks_of_node}} on each of {{nodes}} nodes.
# `launch.sh --help` has the options; docs/Cluster.md of k2c says what each MPI is told, and why.
set -euo pipefail

ranks={{ranks}}
nodes={{nodes}}
ranks_of_node={{ranks_of_node}}
folder=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

usage() {
  cat <<TEXT
Starts the $ranks ranks of this program: $ranks_of_node on each of $nodes nodes.

  launch.sh [OPTIONS] COMMAND ARGS...      COMMAND ARGS... as of $folder/run

  --hosts FILE       a line HOST [slots=N] for each node, in the order of nodes; # begins a comment. The folder of this
                     program has the same path on all hosts. Without it all ranks run on this host.
  --agent CMD        starts a process on another host, as CMD HOST COMMAND... (default: ssh)
  --interface IF     the network interface that carries the traffic
  --transport NAME   how ranks exchange messages: mpi, processes of mpirun (default), or ucx, which needs no mpirun
  --mpi NAME         openmpi or mpich (default: the first of them that this program and this host have)
  --node I           starts the ranks of node I on this host, over UCX. Something starts those of the other nodes, each
                     with MASTER_ADDR, the host of node 0, and MASTER_PORT, a free port there (default: 29500);
                     K2RT_JOB_TOKEN, the same word for all, keeps others out
  --help, --version

stdin goes to rank 0, stdout comes from rank 0. Exit codes: 0 success, 1 a mistake, 2 wrong usage, 3 a rank, a host or a
link is gone, 124 a deadline has passed, 130 interrupted.

examples:
  launch.sh generate --prompt-ids 1,2,3 -n 32
  launch.sh --hosts hosts --interface eth0 generate --prompt-ids 1,2,3 -n 32
  launch.sh --hosts hosts --mpi openmpi --agent "ssh -p 2222" bench --json
  MASTER_ADDR=host0 launch.sh --node 1 bench --json
  launch.sh --hosts hosts links -o measured.yaml
TEXT
}

# fail CODE MESSAGE
fail() {
  echo "launch.sh: error: ${2//[^[:print:]]/?}" >&2
  exit "$1"
}

hosts_file='' agent='' interface='' mpi='' transport='' node=''

# set_option NAME VALUE
set_option() {
  case $1 in
    --hosts) hosts_file=$2 ;;
    --agent) agent=$2 ;;
    --interface) interface=$2 ;;
    --mpi)
      [[ $2 == openmpi || $2 == mpich ]] || fail 2 "--mpi $2: is unknown; choose openmpi or mpich"
      mpi=$2 ;;
    --transport)
      case $2 in
        mpi | ucx) transport=$2 ;;
        local) fail 2 "--transport local: has one process; use $folder/run COMMAND --transport local" ;;
        *) fail 2 "--transport $2: is unknown; choose mpi or ucx" ;;
      esac ;;
    --node)
      [[ $2 =~ ^(0|[1-9][0-9]{0,8})$ && $2 -lt $nodes ]] ||
        fail 2 "--node $2: is none of the $nodes nodes of the program, which are 0 to $((nodes - 1))"
      node=$2 ;;
  esac
}

# check_interface: that this host has all of a list, as a network or as a device of InfiniBand with its port. What has a
# slash is a range of addresses.
check_interface() {
  local name names=() known
  IFS=, read -r -a names <<<"$interface"
  for name in "${names[@]}"; do
    [[ -d /sys/class/net && $name != */* ]] || continue
    [[ ! -e /sys/class/net/$name && ! -e /sys/class/infiniband/${name%%:*} ]] || continue
    known=$(cd /sys/class/net && printf '%s, ' *)
    fail 1 "--interface $name: is not on this host, which has ${known%, }; name one of them"
  done
}

# refuse_misplaced COMMAND ARGS...: a flag of this script among the arguments of the command.
refuse_misplaced() {
  local word command=$1
  for word in "${@:2}"; do
    case ${word%%=*} in
      --hosts | --agent | --interface | --transport | --mpi | --node)
        fail 2 "${word%%=*}: is behind the command $command; it is a flag of launch.sh and belongs before it:\
 launch.sh ${word%%=*} ... $command" ;;
    esac
  done
}

{{start_over_mpi}}
interrupted='' children=() session=()

# on_signal NAME: passes it to mpirun, which ends the ranks, or to the ranks. A terminal sends its interrupt to them
# itself, and a second one would make mpirun leave its ranks alone.
on_signal() {
  interrupted=yes
  [[ ${#children[@]} == 0 || ($1 == INT && -t 0) ]] || kill -s "$1" "${children[@]}" 2>/dev/null || true
}

# What starts elsewhere than at a terminal, which only its own process group reads, gets a session of its own, so that
# a signal to the group of this script does not reach it twice.
prepare_children() {
  [[ -t 0 ]] || ! command -v setsid >/dev/null || session=(setsid)
  [ -e /dev/stdin ] || exec </dev/null
  trap 'on_signal INT' INT
  trap 'on_signal TERM' TERM
  trap 'on_signal HUP' HUP
}

# Kills them with what they have started; one that has no session yet is no group.
kill_children() {
  kill -KILL -- "${children[@]/#/-}" "${children[@]}" 2>/dev/null || true
  wait "${children[@]}" 2>/dev/null || true
}

# Children end within seconds of a signal; but mpirun may wait for ever for a host that is gone, a rank in a library.
end_children() {
  for _ in {1..100}; do
    kill -0 "${children[@]}" 2>/dev/null || return 0
    sleep 0.1
  done
  kill_children
}

# run_ranks COMMAND...: sets `status` to what mpirun returns.
run_ranks() {
  local errors filter
  prepare_children
  exec {errors}> >(without_repeats >&2)
  filter=$!
  (trap - INT TERM HUP && exec "${session[@]}" "$@") <&0 2>&"$errors" {errors}>&- &
  children=($!)
  status=0
  wait "${children[0]}" || status=$?
  [ -z "$interrupted" ] || end_children
  # However slow the reader is, it gets all; an agent that has lost its host may hold the pipe open for long behind it.
  (echo "$end_of_errors" >&"$errors") 2>/dev/null || true
  exec {errors}>&-
  while kill -0 "$filter" 2>/dev/null; do wait "$filter" || true; done
}

# Sets `first_rank`, `ranks_here` and what the ranks read of where they meet.
prepare_job() {
  export WORLD_SIZE=$ranks MASTER_ADDR MASTER_PORT
  if [ -z "$node" ]; then
    first_rank=0 ranks_here=$ranks MASTER_ADDR=127.0.0.1
    export K2RT_JOB_TOKEN=${K2RT_JOB_TOKEN-$$.$RANDOM.$RANDOM}
    while [ -z "${MASTER_PORT-}" ] || (: <>"/dev/tcp/$MASTER_ADDR/$MASTER_PORT") 2>/dev/null; do
      MASTER_PORT=$((29500 + RANDOM % 3000))
    done
    echo "launch.sh: all $ranks ranks run on this host; --node I starts those of one node" >&2
    return
  fi
  [ "${LWS_GROUP_SIZE:-$nodes}" = "$nodes" ] ||
    fail 1 "LWS_GROUP_SIZE: is $LWS_GROUP_SIZE, and the program has $nodes nodes; give the group as many pods"
  MASTER_ADDR=${MASTER_ADDR:-${LWS_LEADER_ADDRESS-}} MASTER_PORT=${MASTER_PORT:-29500}
  [ -n "$MASTER_ADDR" ] || [ "$nodes" -gt 1 ] || MASTER_ADDR=127.0.0.1
  [ -n "$MASTER_ADDR" ] || fail 1 "MASTER_ADDR: is not set; it names the host of node 0"
  first_rank=$((node * ranks_of_node)) ranks_here=$ranks_of_node
}

# Whether a rank ended with an exit code of its own; others are of the system.
is_own() { [[ $1 =~ ^(0|1|2|3|124|130)$ ]]; }

# Moves ranks that have ended from `rank_of`, by process, to `status_of`.
note_ends() {
  local process rank status
  for process in "${!rank_of[@]}"; do
    ! kill -0 "$process" 2>/dev/null || continue
    status=0 rank=${rank_of[$process]}
    wait "$process" || status=$?
    status_of[rank]=$status
    [ "$status" = 0 ] || failed=yes
    unset "rank_of[$process]"
  done
}

# Whether a rank has said why the job ends. Rank 0 does for all; another one when it has waited for that, but never of
# wrong usage.
has_spoken() {
  local rank
  for rank in "${!status_of[@]}"; do
    [[ $rank != 0 && ${status_of[$rank]} =~ ^(0|2)$ ]] || ! is_own "${status_of[$rank]}" || return 0
  done
  return 1
}

# run_node COMMAND...: sets `status` to the code of rank 0, or where that is elsewhere to that of the first rank that
# failed. Ranks tell each other of failures and end; after a few seconds those that do not are ended.
run_node() {
  local -A rank_of=()
  local -a status_of=()
  local rank tries nothing errors failed='' lost=''
  prepare_children
  exec {nothing}</dev/null {errors}>&2 2>/dev/null # bash would say of its own which ranks were killed
  for ((rank = first_rank; rank < first_rank + ranks_here; ++rank)); do
    (trap - INT TERM HUP && RANK=$rank exec "${session[@]}" "$@") <&$((rank == 0 ? 0 : nothing)) 2>&"$errors" &
    children+=($!)
    rank_of[$!]=$rank
  done
  while [[ ${#rank_of[@]} -gt 0 && -z $failed && -z $interrupted ]]; do
    wait -n "${!rank_of[@]}" || true
    note_ends
  done
  [ -z "$interrupted" ] || end_children
  for ((tries = 0; tries < 200 && ${#rank_of[@]} > 0; ++tries)); do
    ! has_spoken || break
    sleep 0.02
    note_ends
  done
  [ ${#rank_of[@]} = 0 ] || kill_children
  exec 2>&"$errors" {errors}>&- {nothing}<&-
  status=''
  for rank in "${!status_of[@]}"; do
    if is_own "${status_of[$rank]}"; then
      [[ $rank != 0 && (${status_of[$rank]} == 0 || -n $status) ]] || status=${status_of[$rank]}
    else
      lost=${lost:-$rank}
    fi
  done
  [[ -z $lost || -n $interrupted ]] ||
    echo "launch.sh: error: rank $lost returned ${status_of[$lost]}: it was killed" >&2
  status=${status:-$((${#failed} ? 3 : 0))}
}

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage && exit ;;
    --version) exec "$folder/run" --version ;;
    --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    --hosts | --agent | --interface | --transport | --mpi | --node)
      [[ $# -ge 2 && $2 == *[![:space:]]* ]] || fail 2 "$1: needs a value; see launch.sh --help"
      set_option "$1" "$2"
      shift 2 ;;
    -*) fail 2 "$1: is unknown; see launch.sh --help" ;;
    *) break ;;
  esac
done
[[ -z $agent || -n $hosts_file ]] || fail 2 "--agent: starts processes on other hosts; name them with --hosts FILE"
agent=${agent:-ssh}
[ $# -gt 0 ] || fail 2 "COMMAND: is missing, such as generate; see launch.sh --help"
[[ -z $node || $transport != mpi ]] || fail 2 "--node: belongs to --transport ucx; with mpi use --hosts FILE"
[ -z "$node" ] || transport=ucx
if [ "$transport" = ucx ]; then
  [ -z "$hosts_file" ] || fail 2 "--hosts: belongs to --transport mpi; with ucx start --node I on each host"
  [ -z "$mpi" ] || fail 2 "--mpi: belongs to --transport mpi; leave it out with ucx"
fi
[[ $1 != info && ${2-} != --help ]] || exec "$folder/run" "$@"
refuse_misplaced "$@"
[ -z "$interface" ] || check_interface

if [ "$transport" = ucx ]; then
  [ -f "$folder/lib/libk2rt-ucx.so" ] ||
    fail 1 "$folder/lib: has no transport over UCX; install libucx-dev, build k2c and compile again"
  prepare_job
  [ -z "$interface" ] || export UCX_NET_DEVICES=$interface
  run_node "$folder/run" "$@" --transport ucx
  [ -z "$interrupted" ] || exit 130
  exit "$status"
fi
choose_mpi
if [ -n "$hosts_file" ]; then
  hosts=() ranks_of_host=$ranks_of_node
  read_hosts
  command -v "${agent%% *}" >/dev/null ||
    fail 1 "${agent%% *}: is not on this host; install openssh-client, or name another agent with --agent CMD"
else
  hosts=(localhost) ranks_of_host=$ranks
  echo "launch.sh: all $ranks ranks run on this host; --hosts FILE names others" >&2
fi
"start_$mpi" "$@"
run_ranks "${start[@]}" "$folder/run" "$@" --transport mpi
[ -z "$interrupted" ] || exit 130
case $status in
  0 | 1 | 2 | 3 | 124 | 130) exit "$status" ;;
esac
echo "launch.sh: error: mpirun returned $status: a rank was killed, or its host is gone" >&2
exit 3
