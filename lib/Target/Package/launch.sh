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

# What a line of the file of hosts is refused for.
refuse_line() { fail 1 "$hosts_file:$line_number: $1"; }

# Fills `hosts` from the file, one host a node, in order.
read_hosts() {
  local line host slots words
  local -A line_of=()
  line_number=0
  [[ -r $hosts_file && ! -d $hosts_file ]] || fail 1 "$hosts_file: cannot be read; --hosts takes a file of host names"
  while IFS= read -r line || [ -n "$line" ]; do
    line_number=$((line_number + 1))
    read -r -a words <<<"${line%%#*}" || true
    [ ${#words[@]} -gt 0 ] || continue
    host=${words[0]} slots=$ranks_of_node
    [[ $host =~ ^[A-Za-z0-9_][A-Za-z0-9._-]*$ ]] ||
      refuse_line "'$host' is not the name of a host; write HOST [slots=N]"
    [ ${#words[@]} -le 2 ] || refuse_line "'${words[2]}' is unknown; write HOST [slots=N]"
    if [ ${#words[@]} = 2 ]; then
      [[ ${words[1]} =~ ^slots=(0|[1-9][0-9]{0,8})$ ]] || refuse_line "'${words[1]}' is unknown; write HOST [slots=N]"
      slots=${BASH_REMATCH[1]}
    fi
    [ -z "${line_of[$host]-}" ] ||
      refuse_line "$host is in line ${line_of[$host]} already; name each of $nodes nodes once"
    [ "$slots" -ge "$ranks_of_node" ] ||
      refuse_line "$host has slots=$slots, and a node has $ranks_of_node ranks; raise it, or compile for a topology\
 with fewer ranks of a node"
    line_of[$host]=$line_number
    hosts+=("$host")
    [ ${#hosts[@]} -le "$nodes" ] ||
      refuse_line "$host is host ${#hosts[@]}, and the program has $nodes nodes; leave it out, or compile for a\
 topology of more nodes"
  done <"$hosts_file"
  [ ${#hosts[@]} = "$nodes" ] ||
    fail 1 "$hosts_file:$line_number: names ${#hosts[@]} hosts, and the program has $nodes nodes; name a host for each,\
 or compile for a topology of fewer nodes"
}

# mpirun_of NAME: the path of that library's mpirun, by Debian's name for it or by what it says of itself.
mpirun_of() {
  command -v "mpirun.$1" && return
  case $1:$(mpirun --version 2>/dev/null </dev/null) in
    openmpi:*'Open MPI'* | mpich:*HYDRA*) command -v mpirun ;;
    *) return 1 ;;
  esac
}

# Sets `mpi` and `mpirun`: the first library whose mpirun this host has, and which the program has a transport for.
choose_mpi() {
  local name packages=''
  for name in ${mpi:-openmpi mpich}; do
    [ -f "$folder/lib/libk2rt-mpi-$name.so" ] || continue
    mpi=$name
    ! mpirun=$(mpirun_of "$name") || return 0
    [ "$name" = mpich ] || name=openmpi-bin
    packages+=${packages:+ or }$name
  done
  [ -n "$packages" ] ||
    fail 1 "$folder/lib: has no transport over ${mpi:-openmpi or mpich}; install libopenmpi-dev or libmpich-dev, build\
 k2c and compile again"
  fail 1 "mpirun: is not on this host; install $packages"
}

# deadline_of ARGS...: the whole seconds of --deadline; the last one counts, and without one they are many.
deadline_of() {
  local seconds=30 before='' word
  for word in "$@"; do
    [[ $before != --deadline ]] || seconds=$word
    [[ $word != --deadline=* ]] || seconds=${word#*=}
    before=$word
  done
  [[ $seconds =~ ^([0-9]{1,7})(\.[0-9]*)?$ ]] && echo $((10#${BASH_REMATCH[1]})) || echo 30
}

# Each of these fills `start`: mpirun with its options. `hosts` have `ranks_of_host` ranks each.
#
# Ranks choose their processors themselves. Where a host has more ranks than processors, one that waits must yield.
# What the network has lost for 6 s is given up, by default Open MPI would wait for minutes or for ever; and sooner
# where ranks give up sooner, as what their daemons then say to one another would keep the connection for as long.
start_openmpi() {
  local list='' host rank probes
  probes=$(($(deadline_of "$@") - 1))
  probes=$((probes < 1 ? 1 : probes > 5 ? 5 : probes))
  for host in "${hosts[@]}"; do
    for ((rank = 0; rank < ranks_of_host; ++rank)); do list+=,$host; done
  done
  # Only this mapper keeps the order of hosts; the others begin with the one where mpirun runs, wherever it is listed.
  start=("$mpirun" -n "$ranks" --map-by seq --host "${list:1}" --bind-to none --mca mpi_yield_when_idle 1
    --mca orte_keep_fqdn_hostnames 1 --mca oob_tcp_keepalive_time 1 --mca oob_tcp_keepalive_intvl 1
    --mca oob_tcp_keepalive_probes "$probes")
  [ "$(id -u)" != 0 ] || start+=(--allow-run-as-root)
  [ -z "$hosts_file" ] || start+=(--mca plm rsh --mca plm_rsh_agent "$agent")
  [ -z "$interface" ] || start+=(--mca btl_tcp_if_include "$interface" --mca oob_tcp_if_include "$interface")
}

start_mpich() {
  local list words launcher=rsh
  list=$(printf ",%s:$ranks_of_host" "${hosts[@]}")
  start=("$mpirun" -n "$ranks" -hosts "${list:1}" -bind-to none)
  if [ -n "$hosts_file" ]; then
    # Its MPI_Finalize waits for answers of ranks that have left, where UCX has sent something over TCP without a copy.
    [[ $nodes == 1 || -n ${UCX_TLS-} ]] ||
      fail 1 "--mpi mpich: over TCP ranks on several hosts may never end; use --mpi openmpi (openmpi-bin), or name\
 the network's transports in UCX_TLS"
    read -r -a words <<<"$agent"
    # To ssh the launcher gives an option of ssh, to rsh nothing but the host and the command.
    [ "${words[0]##*/}" != ssh ] || launcher=ssh
    start+=(-launcher "$launcher" -launcher-exec "$(command -v "${words[0]}")")
    export HYDRA_LAUNCHER_EXTRA_ARGS="${words[*]:1}"
  fi
  [ -z "$interface" ] || start+=(-iface "$interface" -genv UCX_NET_DEVICES "$interface")
}

end_of_errors=$'\4'"$$" # written behind the last word of mpirun

# Copies lines up to the end of errors, but for those in which an MPI repeats that a rank has ended the job: the rank
# has said why; and for what several ranks say alike, where the first could not end the others.
without_repeats() {
  local line paragraph='' ruler='^-{70,}$' is_last='' error='^run: error: (rank [0-9]+: )?(.*)$'
  local -A said=()
  trap '' INT TERM HUP
  while [ -z "$is_last" ] && { IFS= read -r line || [ -n "$line" ]; }; do
    if [[ $line == *"$end_of_errors" ]]; then
      line=${line%"$end_of_errors"} is_last=yes
      [ -n "$line" ] || break
    fi
    if [ -n "$paragraph" ]; then
      paragraph+=$'\n'$line
      [[ $line =~ $ruler || ${#paragraph} -gt 4000 ]] || continue
      line=$paragraph paragraph=''
    elif [[ $line =~ $ruler ]]; then
      paragraph=$line
      continue
    fi
    if [[ $line =~ $error ]]; then
      [ -z "${said[${BASH_REMATCH[2]}]-}" ] || continue
      said[${BASH_REMATCH[2]}]=yes
    fi
    case $line in
      ---*'MPI_ABORT was invoked'* | ---*'non-zero exit code'* | ---*'non-zero status'* | 'Abort('*') on node '*) ;;
      *) printf '%s\n' "$line" ;;
    esac
  done
  [ -z "$paragraph" ] || printf '%s\n' "$paragraph"
}

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
