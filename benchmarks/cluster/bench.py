"""What the sections share: checkpoints, bundles, probes of links, and results that a second run goes on with.

Results are lines of JSON in the work folder, one a point: section, round, key, settings, and what was measured. Points
of other settings or another build stay in the file and are not looked at; where a section begins to measure something
else, the file is to be removed.
"""
import json
import os
import subprocess
import sys
from statistics import median

import checkpoints
from bundles import Bundle, Failure, json_file, output
from check_invariance import draw
from check_ranks import TIER, TOPOLOGY
from measure.engines import digest

MBIT = 200  # of links that a section does not vary
PROBE_BYTES = 16 << 20
RECEIVE = ("import socket; s = socket.create_server(('10.77.0.2', 7000)); print('ready', flush=True)\n"
           "c, _ = s.accept(); n = 0\nwhile n < {bytes}: n += len(c.recv(1 << 20))\nc.sendall(b'x')")
SEND = ("import socket, time; c = socket.create_connection(('10.77.0.2', 7000)); t = time.monotonic()\n"
        "c.sendall(bytes({bytes})); c.recv(1); print(time.monotonic() - t)")


def probe(hosts):
    """Mbit/s from the first host to the second, by a socket of TCP."""
    receive, send = ([sys.executable, "-c", text.format(bytes=PROBE_BYTES)] for text in (RECEIVE, SEND))
    receiver = subprocess.Popen(["ip", "netns", "exec", hosts.names[1], *receive], stdout=subprocess.PIPE, text=True)
    receiver.stdout.readline()
    seconds = float(output(["ip", "netns", "exec", hosts.names[0], *send]))
    receiver.wait()
    return PROBE_BYTES * 8 / 1e6 / seconds


def both(values, digits=2, unit="", best=min):
    """The median, and the best behind it."""
    return f"{median(values):.{digits}f}{unit}, {best(values):.{digits}f}"


class Bench:
    def __init__(self, args):
        self.args = args
        self.results = os.path.join(args.work, "results.jsonl")
        tools = [os.path.join(args.tools, name) for name in ("k2c", "k2rt-run")]
        missing = next((path for path in tools if not os.access(path, os.X_OK)), None)
        if missing:
            raise Failure(f"{missing} is missing; build it: ninja -C build k2c k2rt-run")
        self.tool, self.version = tools[0], digest(*tools)
        # What decides a result, beside its section and key.
        self.settings = [self.version, args.prefill, args.small]
        self.blobs = os.path.join(args.work, "blobs")  # weights that bundles share
        os.makedirs(self.blobs, exist_ok=True)

    def checkpoint(self, kind, skewed=None):
        """The folder of one of benchmarks/checkpoints.py."""
        name = kind + (f"-skewed-{skewed}" if skewed else "") + "-small" * self.args.small
        folder = os.path.join(self.args.work, name)
        if not os.path.exists(os.path.join(folder, "config.json")):
            self.say(f"writing {name}")
            checkpoints.write(kind, folder, checkpoints.SMALL if self.args.small else None, skewed)
        return folder

    def bundle(self, checkpoint, nodes, per_node, *options, mbit=MBIT):
        """Compiled once. The topology states the link; one rank has none."""
        ranks, name = nodes * per_node, os.path.basename(checkpoint)
        words = [str(word) for word in options]
        folder = os.path.join(self.args.work, "-".join([name, f"{nodes}x{per_node}", str(mbit), *words, self.version]))
        if not os.path.exists(os.path.join(folder, "manifest.json")):
            machines = ["--topology", self.topology(nodes, per_node, mbit)] if ranks > 1 else []
            self.say(f"compiling {name} for {nodes} x {per_node} ranks: {' '.join(words)}")
            output([self.tool, "compile", checkpoint, "-o", folder, "--compute", "bf16", "--blob-store", self.blobs,
                    *machines, *words])
        return Bundle(folder)

    def topology(self, nodes, per_node, mbit):
        path = os.path.join(self.args.work, f"{nodes}x{per_node}-{mbit}.yaml")
        text = TOPOLOGY.format(ranks=nodes * per_node, nodes=nodes)
        if per_node > 1:
            text += TIER.format(name="node", count=per_node, link="shared-memory")
        network = TIER.format(name="network", count=nodes, link="ethernet")
        with open(path, "w") as file:
            file.write(text + network.replace("1 GB/s", f"{mbit / 8} MB/s" if mbit else "2 GB/s"))
        return path

    def prompts(self, bundle, count, tokens, seed=0):
        """A file of so many prompts of random ids, for --batch-file."""
        vocab = bundle.manifest["model"]["vocab"]
        return json_file([draw(tokens, vocab, 1000 * seed + i) for i in range(count)])

    def rounds(self, section, keys, measure):
        """Points of all rounds and keys that are not there yet; measure(round, key) gives one."""
        there = {(line["round"], line["key"]) for line in self.read(section)}
        for number in range(self.args.rounds):
            for key in keys:
                if (number, key) not in there:
                    self.say(f"round {number + 1} of {self.args.rounds}, {section}: {key}")
                    self.keep({"section": section, "round": number, "key": key, "settings": self.settings,
                               **measure(number, key)})

    def read(self, section):
        """The points of a section, of these settings. The last line of a run that was killed may be half written."""
        if not os.path.exists(self.results):
            return []
        with open(self.results) as file:
            lines = [json.loads(line) for line in file if line.endswith("\n")]
        return [line for line in lines if line["section"] == section and line["settings"] == self.settings]

    def keep(self, line):
        with open(self.results, "a") as file:
            file.write(json.dumps(line) + "\n")

    @staticmethod
    def say(text):
        print(f"bench-cluster: {text}", file=sys.stderr, flush=True)
