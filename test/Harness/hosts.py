"""Hosts for tests: network namespaces of this machine, joined by a switch, each with a name and mounts of its own.

    with Hosts(4, mbit=200) as hosts:
        hosts.file          a line for each, as `launch.sh --hosts` takes it
        hosts.agent         `AGENT HOST COMMAND..` runs something there, as ssh would
        hosts.run(0, [..])  a process on the first host

What a host sees in place of a folder of all of them is `hosts.mount(1, folder, other)`, and how much memory it has is
`hosts.limit_memory(1, bytes)`, before something runs there (suites.py, "cgroups").
Needs root, iproute2 and the right to make namespaces (suites.py, "namespaces"). At the end nothing is left: no
namespace, no process.
"""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time

AGENT = """#!/bin/bash
# Runs a command on a host of this test.
while [[ "$1" == -* ]]; do shift; done
host=$1
shift
[ -e "{folder}/$host" ] || {{ echo "$host: no such host" >&2; exit 255; }}
exec ip netns exec "$host" unshare --uts --mount bash -c "hostname $host; . {folder}/$host; $*"
"""


# Where a group of processes is made that shares memory, the file that says how much, and how a host sees the groups,
# whose file systems a network namespace hides.
MEMORY_CONTROLLERS = (
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes",
     "mount -t tmpfs none /sys/fs/cgroup && mkdir {folder} && mount -t cgroup -o memory none {folder}"),
    ("/sys/fs/cgroup", "memory.max", "mount -t cgroup2 none {folder}"),
)


def memory_controller():
    """The one in which this process may make groups; None: it may not."""
    for controller in MEMORY_CONTROLLERS:
        group = os.path.join(controller[0], f"k2c-probe-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError:
            continue
        is_limited = os.access(os.path.join(group, controller[1]), os.W_OK)
        os.rmdir(group)
        if is_limited:
            return controller
    return None


def _do(*words):
    """The standard output of a command that must succeed."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(done.args)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


class Hosts:
    """`count` hosts; each link carries `mbit` a second in either direction, or what it can; behind a pause `burst_kib`
    at once."""

    def __init__(self, count, slots=1, mbit=None, burst_kib=256):
        self.names = [f"k2c{os.getpid()}n{i}" for i in range(count)]
        self.switch = f"k2c{os.getpid()}sw"
        self.slots, self.mbit, self.burst_kib = slots, mbit, burst_kib
        self.groups = []

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="k2c-hosts-")
        self.file = os.path.join(self.folder, "hosts")
        self.agent = os.path.join(self.folder, "agent")
        with open(self.file, "w") as file:
            file.writelines(f"{name} slots={self.slots}\n" for name in self.names)
        with open(self.agent, "w") as file:
            file.write(AGENT.format(folder=self.folder))
        os.chmod(self.agent, 0o755)
        try:
            self._connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _connect(self):
        addresses = "127.0.0.1 localhost\n" + "".join(f"10.77.0.{i + 1} {n}\n" for i, n in enumerate(self.names))
        _do("ip", "netns", "add", self.switch)
        _do("ip", "-n", self.switch, "link", "add", "bridge0", "type", "bridge")
        _do("ip", "-n", self.switch, "link", "set", "bridge0", "up")
        for i, name in enumerate(self.names):
            os.makedirs(f"/etc/netns/{name}", exist_ok=True)
            with open(f"/etc/netns/{name}/hosts", "w") as file:
                file.write(addresses)
            with open(os.path.join(self.folder, name), "w"):
                pass
            _do("ip", "netns", "add", name)
            _do("ip", "-n", name, "link", "set", "lo", "up")
            cable = ["type", "veth", "peer", "name", "eth0", "netns", name]
            _do("ip", "-n", self.switch, "link", "add", f"port{i}", *cable)
            _do("ip", "-n", self.switch, "link", "set", f"port{i}", "master", "bridge0", "up")
            _do("ip", "-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", "eth0")
            _do("ip", "-n", name, "link", "set", "eth0", "up")
            if self.mbit:
                shape = ["root", "tbf", "rate", f"{self.mbit}mbit", "burst", f"{self.burst_kib}kb", "latency", "50ms"]
                _do("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "eth0", *shape)
                _do("ip", "netns", "exec", self.switch, "tc", "qdisc", "add", "dev", f"port{i}", *shape)

    def __exit__(self, *_):
        limit = time.monotonic() + 5
        while (left := self.processes()) and time.monotonic() < limit:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):  # it ended by itself in between
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        for group in self.groups:
            os.rmdir(group)
        for name in [*self.names, self.switch]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
            shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def mount(self, host, folder, other):
        """From now on processes that begin on the host find `other` at `folder`."""
        with open(os.path.join(self.folder, self.names[host]), "a") as file:
            file.write(f"mount --bind '{other}' '{folder}'\n")

    def limit_memory(self, host, count):
        """From now on processes that begin on the host share so many bytes."""
        folder, limit, see_groups = memory_controller()
        group = os.path.join(folder, self.names[host])
        os.mkdir(group)
        self.groups.append(group)
        with open(os.path.join(group, limit), "w") as file:
            file.write(str(count))
        with open(os.path.join(self.folder, self.names[host]), "a") as file:
            file.write(f"{see_groups.format(folder=folder)} && echo $$ > {group}/cgroup.procs\n")

    def link(self, host, state):
        """Takes the host's cable out ("down") or puts it back ("up")."""
        _do("ip", "-n", self.switch, "link", "set", f"port{host}", state)

    def sent(self):
        """Bytes that all hosts have put on their links so far, as /proc/net/dev has them: with headers of Ethernet."""
        total = 0
        for name in self.names:
            show = ["ip", "netns", "exec", name, "cat", "/proc/net/dev"]
            text = _do(*show)
            total += next(int(line.split()[9]) for line in text.splitlines() if line.strip().startswith("eth0:"))
        return total

    def run(self, host, command, **options):
        """A process on the host, as of subprocess.Popen, in a session of its own."""
        return subprocess.Popen([self.agent, self.names[host], *command], start_new_session=True, **options)

    def processes(self, host=None, program=None):
        """Those that run on a host, or on any; only of the program with this name."""
        names = self.names if host is None else [self.names[host]]
        found = []
        for name in names:
            text = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout
            found += [int(pid) for pid in text.split()]
        return [pid for pid in found if program is None or _program(pid) == program]

    def wait_for_end(self, seconds):
        """Whether all processes on all hosts end within this time."""
        limit = time.monotonic() + seconds
        while self.processes():
            if time.monotonic() > limit:
                return False
            time.sleep(0.05)
        return True


def _program(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return None
