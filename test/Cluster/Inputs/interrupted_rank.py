"""Interrupts the process of one rank in a long run, and prints how the job ends. The trace of rank 0 has a reader
that comes late; if it is rank 0 that is interrupted, the trace must be whole.

usage: interrupted_rank.py BUNDLE openmpi|mpich RANK
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

# Steps for as long as a job may take, on any host.
LONG = "bench --repeat 1000000 --prefill 4 --decode 4 --context 4".split()
LATE = 1.2  # seconds; had rank 0 not failed itself, others would give it 0.65
LIMIT = 10  # seconds in which all ranks are gone; a deadline is 30


def ranks_of(trace):
    """The processes of ranks that run with this trace, by number."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf8") as file:
                words = file.read().split("\0")
            with open(f"/proc/{pid}/environ", encoding="utf8") as file:
                variables = dict(word.split("=", 1) for word in file.read().split("\0") if "=" in word)
        except OSError:
            continue
        rank = variables.get("OMPI_COMM_WORLD_RANK", variables.get("PMI_RANK"))  # none in a process that just ended
        if trace in words and words[0].endswith("/run") and rank is not None:
            found[int(rank)] = int(pid)
    return found


def traced_kib(pid):
    """What the rank, if it runs, has traced of its steps."""
    try:
        with open(f"/proc/{pid}/smaps", encoding="utf8") as file:
            lines = iter(file.read().splitlines())
    except OSError:
        return 0
    if not any("k2rt-trace" in line for line in lines):
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))


def main(bundle, mpi, rank):
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace")
        os.mkfifo(trace)
        reader = os.open(trace, os.O_RDONLY | os.O_NONBLOCK)
        launch = [os.path.join(bundle, "launch.sh"), "--mpi", mpi, *LONG, "--threads", "1", "--trace", trace]
        job = subprocess.Popen(launch, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while job.poll() is None and traced_kib(ranks_of(trace).get(0)) < 64:  # as text more than a pipe holds
            time.sleep(0.05)
        if job.poll() is not None:
            sys.exit(print(f"exit code {job.returncode} before it traced: {job.communicate()[1].decode()}") or 1)
        os.kill(ranks_of(trace)[rank], signal.SIGINT)
        begin = time.monotonic()
        time.sleep(LATE if rank == 0 else 0)
        os.set_blocking(reader, True)
        with os.fdopen(reader, "rb") as file:
            text = file.read()
        _, said = job.communicate(timeout=60)
        while ranks_of(trace) and time.monotonic() - begin < LIMIT:  # killed, but not gone yet
            time.sleep(0.05)
        seconds = time.monotonic() - begin
    print(f"exit code {job.returncode} after {seconds:.1f} s, {len(text)} bytes")
    print(said.decode())
    assert seconds < LIMIT
    assert rank or json.loads(text)["traceEvents"], "the trace has no event"
    assert rank or len(text) > 1 << 16, "the trace is shorter than a pipe"


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
