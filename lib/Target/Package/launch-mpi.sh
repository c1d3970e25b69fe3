# What launch.sh does over MPI: it reads the file of hosts, chooses a library, and tells its mpirun where ranks run.
# This stands in launch.sh, in place of start_over_mpi.

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
  for host in "${hosts[@]}"; do
    line_number=${line_of[$host]}
    is_known "$host" ||
      refuse_line "host '$host' is not known to this machine; name one that 'getent ahosts $host' finds, or an agent\
 that knows it with --agent CMD"
  done
}

# is_known HOST: whether ssh would find an address for what it connects to. Another agent has names of its own, and so
# has a host that is reached through others.
is_known() {
  local words name=$1 key value
  read -r -a words <<<"$agent"
  [ "${words[0]##*/}" = ssh ] && command -v getent >/dev/null || return 0
  while read -r key value; do
    case $key in
      hostname) name=$value ;;
      proxycommand | proxyjump) return 0 ;;
    esac
  done < <("${words[@]}" -G "$1" 2>/dev/null </dev/null)
  getent ahosts "$name" >/dev/null
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
