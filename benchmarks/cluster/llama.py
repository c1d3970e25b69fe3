"""llama.cpp on two hosts: its benchmark programs on the first one, with layers in a server of its RPC backend on the
second.

There are two ways to place the layers, each with and without flash attention; which is the fastest depends on the
point. "processor": the first half of the layers in the benchmark program itself. "server": that half on the second
host, and the other in a second server beside the program; for llama.cpp these are two devices, which work on parts of a
prompt at the same time. The head is on the first host in both, so that no logits cross the link.
"""
import contextlib
import glob
import json
import os
import subprocess
import tempfile
import time
from statistics import median
from types import SimpleNamespace

from bundles import Failure
from measure import engines

PORT = 7001  # none that the kernel gives to connections
PATIENCE = 30  # seconds for the start of a server
WAYS = [(place, flash) for place in ("processor", "server") for flash in "01"]


class RemoteLlama(engines.LlamaCpp):
    """Tokens a second of llama.cpp over two hosts, a thread in each process."""

    def __init__(self, bench):
        args = bench.args
        programs = os.path.join(args.peers_folder, "llama", "bin")
        server = engines.need(programs, "ggml-rpc-server", "install it: scripts/bench-cluster.sh --peers")
        self.server = os.path.abspath(server)
        super().__init__(SimpleNamespace(
            peers=os.path.abspath(args.peers_folder), work=os.path.abspath(args.work), say=bench.say,
            checkpoint=lambda name: os.path.join(args.work, name), python=lambda: engines.peer_python(args)))
        sources = glob.glob(os.path.join(args.peers_folder, "llama_cpp_python-*", "vendor"))
        self.release = os.path.basename(os.path.dirname(sources[-1])) if sources else "unknown source"

    @contextlib.contextmanager
    def servers(self, hosts, numbers):
        """Addresses of servers on hosts of these numbers. They keep large weights in files, or each start of a program
        would send them again."""
        cache = os.path.join(self.setup.work, "rpc-cache")
        os.makedirs(cache, exist_ok=True)
        running, log = [], tempfile.TemporaryFile("w+")
        try:
            for number in numbers:
                words = [self.server, "--host", address(number), "--port", str(PORT), "--threads", "1", "--cache"]
                running.append(subprocess.Popen(on_host(hosts, number, words), stdout=log, stderr=log,
                                                env={**os.environ, "LLAMA_CACHE": cache}))
            for process in running:
                wait_for(process, log)
            yield [f"{address(number)}:{PORT}" for number in numbers]
        finally:
            for process in running:
                process.kill()
                process.wait()
            log.close()

    def flags(self, place, layers, endpoints):
        """Half of the layers on each host."""
        half = layers // 2
        if place == "processor":
            return ["--rpc", *endpoints, "-ngl", str(layers - half + 1), "-ot", "^output=CPU"]
        return ["--rpc", ",".join(endpoints), "-ngl", str(layers + 1), "-ts", f"{half}/{layers - half + 1}"]

    def command(self, point, steps, repeats):
        """The program for a point, and what gives its results."""
        if point.batch == 1 and not point.context:
            words = [self.bench, "-p", "0", "-n", str(steps), "-d", "0", "-r", str(repeats), "-o", "json"]
            return words, lambda words: json.loads(engines.output(words))[-1]["samples_ts"]
        new = 1 if point.prefill else steps
        sizes = ["-npp", str(point.context), "-ntg", str(new), "-npl", ",".join([str(point.batch)] * repeats)]
        words = [self.batched, *sizes, "-tb", "1", "-c", str(point.batch * (point.context + new + 1)), "-b", "2048",
                 "-ub", "512", "--output-format", "jsonl"]
        field = "speed_pp" if point.prefill else "speed_tg"
        return words, lambda words: [row[field] for row in self.batched_rows(words)]

    def rate(self, hosts, checkpoint, point, way, steps, repeats):
        place, flash = way
        with open(os.path.join(checkpoint, "config.json")) as file:
            layers = json.load(file)["num_hidden_layers"]
        words, values = self.command(point, steps, repeats)
        words += ["-m", self.weights(os.path.basename(checkpoint), "bf16"), "-t", "1", "-fa", flash]
        with self.servers(hosts, [1] if place == "processor" else [1, 0]) as endpoints:
            return median(values(on_host(hosts, 0, words + self.flags(place, layers, endpoints))))

    def best_way(self, hosts, checkpoint, point, steps):
        """The fastest of them, each tried once."""
        return max(WAYS, key=lambda way: self.rate(hosts, checkpoint, point, way, steps, 1))


def address(number):
    return f"10.77.0.{number + 1}"


def on_host(hosts, number, words):
    return ["ip", "netns", "exec", hosts.names[number], *words]


def wait_for(process, log):
    """Until the process, which writes to `log`, listens; /proc has the sockets of its own network namespace."""
    limit = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < limit:
        with contextlib.suppress(OSError), open(f"/proc/{process.pid}/net/tcp") as file:
            rows = [line.split() for line in file]
            if any(row[1].endswith(f":{PORT:04X}") and row[3] == "0A" for row in rows[1:]):
                return
        time.sleep(0.05)
    log.seek(0)
    raise Failure(f"{' '.join(process.args)}: does not listen (exit {process.poll()}): {log.read().strip()[-300:]}")
