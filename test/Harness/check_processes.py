"""check_processes.py CHECKPOINT RANKSxNODES CASE ..: a program whose ranks are processes over UCX on this host.

CASE: bits (logits of one rank, byte by byte, when launch.sh starts all ranks, and when it starts a node at a time, over
TCP), mapped (of the weights, no rank maps another page than those of its own slots, as /proc has it while they run),
and how an endless command ends: killed (3; a rank, then rank 0), stopped (124 behind the deadline), interrupted
(130). Nothing may be left. folder prints where the bundle is, for a test that goes on with it.
"""
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time

from bundles import Failure, compiled, output
from check_invariance import draw
from check_ranks import LIMITS, culprit, expect, topology
from loaded import have_loaded, pages, pages_of_process
from start_ranks import job

DEADLINE = 5  # seconds; a busy host takes more than one for what it does in 0.1
PATIENCE = 40  # seconds for an end that takes 1 to 3 on an idle machine
ENDLESS = ("bench", "--prefill", "16", "--decode", "16", "--repeat", "1000000", "--threads", "1")


def processes(token):
    """Those of the job, by rank."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ") as file:
                variables = dict(line.split("=", 1) for line in file.read().split("\0") if "=" in line)
        except (OSError, UnicodeDecodeError):
            continue
        if variables.get("K2RT_JOB_TOKEN") == token and "RANK" in variables:
            found[int(variables["RANK"])] = int(pid)
    return found


class Job:
    """launch.sh of a bundle over UCX with an endless command, once all ranks have met and loaded."""

    def __init__(self, bundle):
        self.token = secrets.token_hex(8)
        words = [os.path.join(bundle.folder, "launch.sh"), "--transport", "ucx", *ENDLESS, "--deadline", str(DEADLINE)]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, "K2RT_JOB_TOKEN": self.token},
                                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.limit = time.monotonic() + PATIENCE
        self.wait_for("ranks do not load", lambda: have_loaded(bundle, processes(self.token).values()))

    def wait_for(self, otherwise, condition):
        while not condition():
            if time.monotonic() > self.limit:
                raise Failure(otherwise)
            time.sleep(0.02)

    def signal_rank(self, rank, number):
        os.kill(processes(self.token)[rank], number)

    def end(self, what, code, text=""):
        """It ends with this code, says so, and leaves nothing."""
        begin = time.monotonic()
        try:
            _, err = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"{what}: does not end") from None
        self.wait_for(f"{what}: leaves ranks behind", lambda: not processes(self.token))
        if self.process.returncode != code or not re.search(text, err):
            raise Failure(f"{what}: exit {self.process.returncode}, expected {code} and '{text}': {err.strip()}")
        print(f"{what}: exit {code} after {time.monotonic() - begin:.1f} s")


def bits(several, one):
    ids = ",".join(map(str, draw(23, one.manifest["model"]["vocab"], 1)))
    command = ("logits", "--prompt-ids", ids, "--all", "--json", "--threads", "1")
    reference, launch = one.text(*command), os.path.join(several.folder, "launch.sh")
    expect("ranks of this host", reference, output([launch, "--transport", "ucx", *command]))
    over_tcp = {**job(several.manifest["topology"]["ranks"]), "UCX_TLS": "tcp,self"}
    nodes = [subprocess.Popen([launch, "--node", str(node), *command], env=over_tcp, stdout=subprocess.PIPE, text=True)
             for node in range(several.manifest["topology"]["nodes"])]
    texts = [node.communicate(timeout=PATIENCE)[0] for node in nodes]
    expect("ranks of nodes over TCP", [reference] + [""] * (len(nodes) - 1), texts)
    if any(node.returncode for node in nodes):
        raise Failure(f"nodes end with {[node.returncode for node in nodes]}")


def pages_of_index(bundle, rank):
    """Of weights/index.json, what is not experts, and of experts those that the placement gives to the rank."""
    with open(os.path.join(bundle.folder, "weights", "index.json")) as file:
        slots = json.load(file)["slots"]
    with open(os.path.join(bundle.folder, "placement.json")) as file:
        layers = json.load(file)["layers"]
    own = set()
    for slot in slots:
        of_slot = [slot]
        if "experts" in slot:
            of_slot = [slot["experts"][i] for i in layers[str(slot["layer"])]["both"][rank] if i is not None]
        for entry in of_slot:
            own |= pages(entry["file"], entry.get("offset", 0), entry["bytes"])
    return own


def mapped(several, _):
    running = Job(several)
    own = {}
    for rank, pid in processes(running.token).items():
        own[rank] = pages_of_index(several, rank)
        running.wait_for(f"rank {rank} does not map all of its weights",
                         lambda pid=pid, rank=rank: pages_of_process(several, pid) >= own[rank])
        if beside := pages_of_process(several, pid) - own[rank]:
            raise Failure(f"rank {rank} maps {sorted(beside)[:3]} beside its weights")
    running.process.send_signal(signal.SIGINT)
    running.end("interrupted", 130)
    everything = set().union(*own.values())
    print(f"mapped: {len(everything)} pages, of which ranks have {sorted(map(len, own.values()))}")
    if max(map(len, own.values())) >= len(everything):
        raise Failure("a rank has the experts of all")


def killed(several, _):
    for rank in (1, 0):
        running = Job(several)
        running.signal_rank(rank, signal.SIGKILL)
        running.end(f"rank {rank} killed", 3, f"launch.sh: error: rank {rank} returned 137: it was killed")


def stopped(several, _):
    running = Job(several)
    running.signal_rank(1, signal.SIGSTOP)
    running.end("rank 1 stopped", 124, culprit(1))


def interrupted(several, _):
    running = Job(several)
    running.process.send_signal(signal.SIGINT)
    running.end("interrupted", 130)


def folder(several, _):
    print(several.folder)


CASES = (bits, mapped, killed, stopped, interrupted, folder)


def main(checkpoint, shape, *cases):
    ranks, nodes = map(int, shape.split("x"))
    several = compiled(checkpoint, "--topology", topology(ranks, nodes), *LIMITS)
    one = compiled(checkpoint, *LIMITS)
    for case in cases:
        dict((known.__name__, known) for known in CASES)[case](several, one)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Failure as wrong:
        sys.exit(f"check_processes.py: {wrong}")
