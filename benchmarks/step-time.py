#!/usr/bin/env python3
"""How far predicted step times are from measured ones.

  k2c calibrate -o this.yaml
  benchmarks/step-time.py --topology this.yaml --bundles FOLDER CHECKPOINT...  [--json points.json] [--markdown FILE]

Compiles each checkpoint in f32 and bf16 (or reuses the bundles in FOLDER), runs `run bench` over batches, contexts and
prompts, and compares the fastest step of each with `k2c predict`. Prints the median and the 90th percentile of
|predicted / measured - 1|, and for the ten worst points the kernels that the difference comes from. With --points, the
measured times of an earlier run are compared again with another calibration.
"""
import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DECODE_STEPS = 16
MAX_CONTEXT = 2048


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def decode_points(context_limit):
    """(batch, context): prompts of at most 2048 tokens in all."""
    for context in (16, 64, 128, 256, 512, 1024):
        for batch in (1, 2, 4, 8, 16):
            if batch * context <= 2048 and context + DECODE_STEPS <= context_limit:
                yield batch, context


def prompt_points(context_limit):
    return [tokens for tokens in (8, 32, 128, 512, 1024) if tokens <= context_limit]


class Bench:
    """One bundle, measured and predicted."""

    def __init__(self, tool, checkpoint, compute, folder):
        self.tool, self.compute = tool, compute
        self.model = os.path.basename(os.path.normpath(checkpoint))
        self.bundle = os.path.join(folder, f"{self.model}-{compute}")
        if not os.path.exists(os.path.join(self.bundle, "manifest.json")):
            with open(os.path.join(checkpoint, "config.json")) as file:
                positions = json.load(file).get("max_position_embeddings", MAX_CONTEXT)
            run([tool, "compile", checkpoint, "-o", self.bundle, "--compute", compute, "--blob-store",
                 os.path.join(folder, "blobs"), "--max-context", str(min(positions, MAX_CONTEXT))])
        with open(os.path.join(self.bundle, "manifest.json")) as file:
            self.limits = json.load(file)["limits"]

    def bench(self, *flags):
        return json.loads(run([os.path.join(self.bundle, "run"), "bench", "--json", *map(str, flags)]))

    def measure(self):
        """Yields points: the fastest step of each."""
        limit = self.limits["max_context"]
        for batch, context in decode_points(limit):
            found = self.bench("--prefill", 0, "--decode", DECODE_STEPS, "--batch", batch, "--context", context,
                               "--repeat", 2)
            # A sequence that has read its prompt goes on while the others read theirs: contexts are a little longer.
            yield self.point("decode", batch, context + DECODE_STEPS // 2, 1, found["decode_step_s"]["min"], found)
        for tokens in prompt_points(limit):
            found = self.bench("--prefill", tokens, "--decode", 0, "--repeat", 5 if tokens < 512 else 3)
            yield self.point("prefill", 1, 0, tokens, tokens / found["prefill"]["max"], found)

    def point(self, phase, batch, context, tokens, seconds, found):
        return {"bundle": self.bundle, "model": self.model, "compute": self.compute, "phase": phase, "batch": batch,
                "context": context, "tokens": tokens, "measured_s": seconds,
                "bandwidth_bytes_per_s": found["bandwidth_probe_bytes_per_s"]}


def predict(tool, topology, point):
    return json.loads(run([tool, "predict", point["bundle"], "--topology", topology, "--json", "--batch",
                           str(point["batch"]), "--context", str(point["context"]), "--tokens",
                           str(point["tokens"])]))


def kernels_of_trace(path, rows):
    """Kernel -> seconds of a step of `rows` rows: every launch at its fastest over all such steps."""
    with open(path) as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    launches = collections.defaultdict(lambda: collections.defaultdict(list))  # step -> (kernel, n-th, worker)
    for event in events:
        if event["name"] != "step" and event["args"]["rows"] == rows:
            launches[event["args"]["step"]][event["name"], event["tid"]].append(event["dur"] * 1e-6)
    fastest = {}
    for step in launches.values():
        slowest = collections.defaultdict(float)
        for (kernel, _), times in step.items():
            for i, seconds in enumerate(times):
                slowest[kernel, i] = max(slowest[kernel, i], seconds)
        for key, seconds in slowest.items():
            fastest[key] = min(seconds, fastest.get(key, seconds))
    totals = collections.defaultdict(float)
    for (kernel, _), seconds in fastest.items():
        totals[kernel] += seconds
    return totals


def attribute(point, predicted):
    """The kernels that differ most: (name, predicted, measured) in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.json")
        flags = (["--prefill", point["tokens"], "--decode", 0] if point["phase"] == "prefill" else
                 ["--prefill", 0, "--decode", DECODE_STEPS, "--batch", point["batch"], "--context",
                  point["context"] - DECODE_STEPS // 2])
        run([os.path.join(point["bundle"], "run"), "bench", "--json", "--repeat", "2", "--trace", trace,
             *map(str, flags)])
        measured = kernels_of_trace(trace, point["batch"] * point["tokens"])
    rows = [(kernel["name"], kernel["seconds"], measured.get(kernel["name"], 0.0)) for kernel in predicted["kernels"]]
    return sorted(rows, key=lambda row: -abs(row[1] - row[2]))[:3]


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def error(point):
    return point["predicted_s"] / point["measured_s"] - 1


def summary(points):
    """Lines of a table: all points, then by model and phase."""
    groups = {"all": points}
    for point in points:
        groups.setdefault(f"{point['model']} {point['compute']} {point['phase']}", []).append(point)
    yield "| points | number | median error | 90th percentile | signed mean |"
    yield "|---|---|---|---|---|"
    for name, group in groups.items():
        errors = [abs(error(point)) for point in group]
        yield (f"| {name} | {len(group)} | {statistics.median(errors):.1%} | {percentile(errors, 0.9):.1%} | "
               f"{statistics.mean(map(error, group)):+.1%} |")


def worst(points, tool, topology, trace):
    yield "| point | measured | predicted | error | kernels that differ most (predicted, measured) |"
    yield "|---|---|---|---|---|"
    for point in sorted(points, key=lambda point: -abs(error(point)))[:10]:
        name = (f"{point['model']} {point['compute']} {point['phase']} {point['batch']} x {point['tokens']} after "
                f"{point['context']}")
        rows = attribute(point, predict(tool, topology, point)) if trace else []
        kernels = ", ".join(f"{kernel} {p * 1e6:.0f}, {m * 1e6:.0f} us" for kernel, p, m in rows)
        yield (f"| {name} | {point['measured_s'] * 1e3:.3f} ms | {point['predicted_s'] * 1e3:.3f} ms | "
               f"{error(point):+.1%} | {kernels} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="*", help="checkpoint folders")
    parser.add_argument("--topology", required=True, help="a file that k2c calibrate wrote")
    parser.add_argument("--bundles", help="folder of bundles, kept for the next run")
    parser.add_argument("--points", help="measured points of an earlier run, to be predicted again")
    parser.add_argument("--json", help="file for the points")
    parser.add_argument("--markdown", help="file for the tables")
    parser.add_argument("--no-trace", action="store_true", help="no kernels for the worst points")
    parser.add_argument("--k2c", default=os.path.join(ROOT, "build/bin/k2c"))
    flags = parser.parse_args()
    points = []
    if flags.points:
        with open(flags.points) as file:
            points = json.load(file)
    with tempfile.TemporaryDirectory() as temporary:
        for checkpoint in flags.checkpoints:
            for compute in ("f32", "bf16"):
                bench = Bench(flags.k2c, checkpoint, compute, os.path.abspath(flags.bundles or temporary))
                for point in bench.measure():
                    point["predicted_s"] = predict(flags.k2c, flags.topology, point)["seconds"]
                    points.append(point)
                    print(f"{point['model']} {compute} {point['phase']} {point['batch']} x {point['tokens']} after "
                          f"{point['context']}: {point['measured_s'] * 1e3:.3f} ms, {error(point):+.1%}",
                          file=sys.stderr)
                    if flags.json:
                        with open(flags.json, "w") as file:
                            json.dump(points, file, indent=1)
        for point in points if flags.points else []:
            point["predicted_s"] = predict(flags.k2c, flags.topology, point)["seconds"]
        text = "\n".join([*summary(points), "", *worst(points, flags.k2c, flags.topology, not flags.no_trace), ""])
    print(text)
    if flags.markdown:
        with open(flags.markdown, "w") as file:
            file.write(text)


main()
