"""Measures programs of several ranks over links of a known speed, and writes docs/cluster-results.md.

Hosts are network namespaces of this machine, joined by a switch whose ports carry so many Mbit/s
(test/Harness/hosts.py). Sides take turns, each in a run of its own, round by round; medians count. Before each round a
probe sends bytes from one host to another, so that the page says what the links gave. Results are lines of JSON in the
work folder; a second run goes on. See scripts/bench-cluster.sh --help.
"""
import argparse
import datetime
import json
import os
import subprocess
import sys
from statistics import median

import checkpoints

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "test", "Harness"))
from hosts import Hosts  # noqa: E402: the folder of tests is no package

EXAMPLES = """examples:
  scripts/bench-cluster.sh                              two ranks, links of 400 and 1,000 Mbit/s and as fast as they are
  scripts/bench-cluster.sh --rounds 5 --links 200,1000  other links
  scripts/bench-cluster.sh --page-only                  writes the page again from the results there are
"""
TOPOLOGY = """k2topo: 1
name: bench-{mbit}
description: two hosts of one rank, for scripts/bench-cluster.sh
device:
  kind: cpu
  cores: 1
  memory: {{value: 12 GiB, source: "of this machine"}}
  memory_read: {{value: 10 GB/s, source: "assumed"}}
  f32: {{value: 100 GFLOP/s, source: "assumed"}}
  bf16: {{value: 200 GFLOP/s, source: "assumed"}}
  l1: {{value: 32 KiB, source: "assumed"}}
  l2: {{value: 1 MiB, source: "assumed"}}
  l3: {{value: 16 MiB, source: "assumed"}}
tiers:
  - name: network
    count: 2
    link: ethernet
    bandwidth: {bandwidth} MB/s
    latency: 50 us
    source: "of scripts/bench-cluster.sh"
"""
SIDES = {"halves": ("--layout", "ep=2,dp=2,overlap=1"), "whole": ("--without", "overlap-communication")}
PROBE_BYTES = 16 << 20
RECEIVE = ("import socket; s = socket.create_server(('10.77.0.2', 7000)); print('ready', flush=True)\n"
           "c, _ = s.accept(); n = 0\nwhile n < {bytes}: n += len(c.recv(1 << 20))\nc.sendall(b'x')")
SEND = ("import socket, time; c = socket.create_connection(('10.77.0.2', 7000)); t = time.monotonic()\n"
        "c.sendall(bytes({bytes})); c.recv(1); print(time.monotonic() - t)")
PAGE = """# Ranks over links, measured

Written by scripts/bench-cluster.sh on {date}, on {processors} processors of {cpu}:
two hosts (network namespaces) of one rank with one worker, UCX over TCP, so that the communication threads and the
kernel's TCP share the processors with the workers. Medians of {rounds} rounds, the fastest behind them; ratios are
those of the runs of one round.

## Two halves of a step

`bench --prompts 2 --prefill {prefill}`, a prompt on each rank in one step, of `benchmarks/checkpoints.py dsv3` in bf16.
hidden: of what shaped links add to whole steps, at most all that an unshaped step takes, the share that halves hide.
The aim is 0.8.

| link, Mbit/s | the probe | whole steps | two halves | ratio | hidden |
|---|---|---|---|---|---|
"""


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench-cluster.sh", epilog=EXAMPLES, allow_abbrev=False,
                                     description="Measures ranks over links of a known speed and tells it on a page.",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--rounds", type=int, default=5, help="times each point is measured (default 5)")
    add("--links", default="400,1000,0", help="Mbit/s of a host's link in either direction; 0: what it can")
    add("--prefill", type=int, default=512, help="tokens of the prompt of each rank (default 512)")
    add("--checkpoint", help="a checkpoint of your own (default: dsv3 of benchmarks/checkpoints.py, random weights)")
    add("--work", default=os.path.join(ROOT, "build", "bench-cluster"), help="results, bundles, checkpoints")
    add("--page", default=os.path.join(ROOT, "docs", "cluster-results.md"), help="the page")
    add("--page-only", action="store_true", help="write the page from the results there are")
    add("--tools", default=os.path.join(ROOT, "build", "bin"), help="folder of k2c and k2rt-run")
    args = parser.parse_args()
    args.links = [int(link) for link in args.links.split(",")]
    return args


class Bench:
    def __init__(self, args):
        self.args = args
        self.results = os.path.join(args.work, "results.jsonl")
        os.makedirs(args.work, exist_ok=True)

    def checkpoint(self):
        if self.args.checkpoint:
            return self.args.checkpoint
        folder = os.path.join(self.args.work, "dsv3")
        if not os.path.exists(os.path.join(folder, "config.json")):
            subprocess.run([sys.executable, checkpoints.__file__, "dsv3", folder], check=True)
        return folder

    def bundle(self, mbit, side):
        """Compiled once; steps have room for the prompt, and the topology states the link."""
        folder = os.path.join(self.args.work, f"{mbit}-{side}-{self.args.prefill}")
        if os.path.exists(folder):
            return folder
        topology = os.path.join(self.args.work, f"{mbit}.yaml")
        with open(topology, "w") as file:
            file.write(TOPOLOGY.format(mbit=mbit, bandwidth=mbit / 8 if mbit else 2000))
        limits = {"--step-tokens": self.args.prefill, "--max-sequences": 4, "--max-context": 2 * self.args.prefill}
        command = [os.path.join(self.args.tools, "k2c"), "compile", self.checkpoint(), "--compute", "bf16",
                   "--topology", topology, "-o", folder, *(str(word) for limit in limits.items() for word in limit),
                   *SIDES[side]]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return folder

    def probe(self, hosts):
        """Mbit/s from the first host to the second."""
        words = [[sys.executable, "-c", text.format(bytes=PROBE_BYTES)] for text in (RECEIVE, SEND)]
        at = [["ip", "netns", "exec", name] for name in hosts.names]
        receiver = subprocess.Popen([*at[1], *words[0]], stdout=subprocess.PIPE, text=True)
        receiver.stdout.readline()
        sent = subprocess.run([*at[0], *words[1]], capture_output=True, text=True, check=True)
        receiver.wait()
        return PROBE_BYTES * 8 / 1e6 / float(sent.stdout)

    def run(self, hosts, folder):
        """What `bench` says of prompts of all ranks, over hosts."""
        env = {**os.environ, "UCX_TLS": "tcp,self", "MASTER_ADDR": hosts.names[0]}
        words = ["bench", "--prompts", "2", "--prefill", str(self.args.prefill), "--decode", "1", "--repeat", "3",
                 "--threads", "1", "--trust", "--json"]
        launch = [os.path.join(folder, "launch.sh"), "--interface", "eth0", "--node"]
        other = hosts.run(1, [*launch, "1", *words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        first = hosts.run(0, [*launch, "0", *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = first.communicate()
        other.wait()
        if first.returncode:
            sys.exit(f"{folder}: exit {first.returncode}: {err}")
        return json.loads(out)

    def measure(self):
        folders = {(mbit, side): self.bundle(mbit, side) for mbit in self.args.links for side in SIDES}
        for number in range(len(self.read()), self.args.rounds):
            self.keep([self.pair(number, mbit, folders) for mbit in self.args.links])

    def pair(self, number, mbit, folders):
        """Seconds of both sides over one link, the one first that was last in the round before."""
        with Hosts(2, mbit=mbit or None) as hosts:
            point = {"mbit": mbit, "prefill": self.args.prefill, "probe_mbit": self.probe(hosts)}
            for side in SIDES if number % 2 else reversed(SIDES):
                said = self.run(hosts, folders[mbit, side])
                point[side] = 2 * self.args.prefill / said["prefill"]["median"]
                print(f"round {number + 1}, {mbit} Mbit/s, {side}: {point[side]:.3f} s", file=sys.stderr)
        return point

    def read(self):
        """Rounds that were measured, each a list of points."""
        if not os.path.exists(self.results):
            return []
        with open(self.results) as file:
            return [json.loads(line) for line in file]

    def keep(self, result):
        with open(self.results, "a") as file:
            file.write(json.dumps(result) + "\n")

    def page(self):
        rounds = self.read()
        if not rounds:
            sys.exit(f"{self.results}: no round was measured")
        with open("/proc/cpuinfo") as file:
            cpu = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
        text = PAGE.format(date=datetime.date.today(), processors=os.cpu_count(), cpu=cpu, rounds=len(rounds),
                           prefill=rounds[-1][0]["prefill"])
        for mbit in [point["mbit"] for point in rounds[-1]]:
            points = [next(point for point in points if point["mbit"] == mbit) for points in rounds]
            free = [next((point["whole"] for point in points if point["mbit"] == 0), None) for points in rounds]
            text += f"| {mbit or 'unshaped'} | {median(p['probe_mbit'] for p in points):.0f} |"
            for side in ("whole", "halves"):
                text += f" {median(p[side] for p in points):.3f} s, {min(p[side] for p in points):.3f} |"
            text += f" {median(p['whole'] / p['halves'] for p in points):.2f} |"
            hidden = [(p["whole"] - p["halves"]) / max(1e-9, min(p["whole"] - f, f))
                      for p, f in zip(points, free) if f and mbit]
            text += f" {median(hidden):.2f} |\n" if hidden else " |\n"
        with open(self.args.page, "w") as file:
            file.write(text)


if __name__ == "__main__":
    bench = Bench(arguments())
    if not bench.args.page_only:
        bench.measure()
    bench.page()
