#!/usr/bin/env python3
"""How far predicted step times are from measured ones.

  k2c calibrate -o this.yaml
  benchmarks/step-time.py --topology this.yaml --bundles FOLDER CHECKPOINT...  [--json points.json] [--markdown FILE]

Compiles each checkpoint in f32 and bf16 (or reuses the bundles in FOLDER), runs `run bench` over batches, contexts and
prompts, in rounds over all of them, and compares the fastest step of each with `k2c predict`, which is told how many
experts a random prompt of that length goes to (`run routes`). Prints the median and the 90th percentile of
|predicted / measured - 1|, and for the ten worst points the kernels that the difference comes from.
With --points, the measured times of earlier runs are compared again with another calibration; of a point that several
files have, the fastest.
"""
import argparse
import collections
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DECODE_STEPS = 8
SHORT_STEP = 2e-3  # seconds; whole steps as short as that are found undisturbed
MAX_CONTEXT = 2048


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def decode_points(context_limit):
    """(batch, context)."""
    for context, batches in ((32, (1, 4, 16)), (256, (1, 8)), (1024, (1,))):
        for batch in batches:
            if context + DECODE_STEPS <= context_limit:
                yield batch, context


def prompt_points(context_limit):
    return [tokens for tokens in (32, 128, 512) if tokens <= context_limit]


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
            manifest = json.load(file)
            self.limits, self.sizes = manifest["limits"], manifest["model"]

    def bench(self, *flags):
        return json.loads(run([os.path.join(self.bundle, "run"), "bench", "--json", *map(str, flags)]))

    def fastest(self, point, rows, repeat, *flags):
        """Adds to a point the fastest launches and the fastest whole step of this round.

        On a machine that others use, a step of many milliseconds is never left alone, but each of its launches is, some
        time: a measured step is the sum of the launches, each at its fastest, from one launch's begin to the next; or
        the fastest whole step where that is less."""
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            found = self.bench("--repeat", repeat, "--trace", trace, *flags)
            parts, whole = steps_of_trace(trace, rows)
        if whole < SHORT_STEP:
            found = self.bench("--repeat", 4 * repeat, *flags)
            whole = min(whole, found["decode_step_s"]["min"] if "decode_step_s" in found else
                        rows / found["prefill"]["max"])
        known = point["launches"]
        for launch, seconds in parts.items():
            known[launch] = min(known.get(launch, seconds), seconds)
        point["fastest_step_s"] = min(point["fastest_step_s"], whole)
        point["measured_s"] = min(sum(known.values()), point["fastest_step_s"])
        point["bandwidth_bytes_per_s"] = max(point["bandwidth_bytes_per_s"], found["bandwidth_probe_bytes_per_s"])

    def points(self):
        """What will be measured."""
        limit = self.limits["max_context"]
        for batch, context in decode_points(limit):
            # A sequence that has read its prompt goes on while the others read theirs: contexts are a little longer.
            yield self.point("decode", batch, context + DECODE_STEPS // 2, 1)
        for tokens in prompt_points(limit):
            point = self.point("prefill", 1, 0, tokens)
            point["experts_hit"] = experts_hit(self.bundle, tokens, self.sizes["vocab"])
            yield point

    def measure(self, point):
        """One round of a point."""
        if point["phase"] == "decode":
            self.fastest(point, point["batch"], 2, "--prefill", 0, "--decode", DECODE_STEPS, "--batch", point["batch"],
                         "--context", point["context"] - DECODE_STEPS // 2)
        else:
            self.fastest(point, point["tokens"], 3, "--prefill", point["tokens"], "--decode", 0)

    def point(self, phase, batch, context, tokens):
        return {"bundle": self.bundle, "model": self.model, "compute": self.compute, "phase": phase, "batch": batch,
                "context": context, "tokens": tokens, "measured_s": float("inf"), "fastest_step_s": float("inf"),
                "bandwidth_bytes_per_s": 0, "launches": {}}


def experts_hit(bundle, tokens, vocab):
    """Experts of a layer that a prompt of random tokens goes to, a mean over layers; 0: the model has none. Those of a
    prompt agree more than a uniform router's would."""
    ids = ",".join(str(random.Random(token).randrange(vocab)) for token in range(tokens))
    layers = json.loads(run([os.path.join(bundle, "run"), "routes", "--json", "--prompt-ids", ids]))["layers"].values()
    hit = [len({expert for token in layer["experts"] for expert in token}) for layer in layers]
    return statistics.mean(hit) if hit else 0


def predict(tool, topology, point):
    hit = ["--experts-hit", str(point["experts_hit"])] if point.get("experts_hit") else []
    return json.loads(run([tool, "predict", point["bundle"], "--topology", topology, "--json", "--batch",
                           str(point["batch"]), "--context", str(point["context"]), "--tokens",
                           str(point["tokens"]), *hit]))


def steps_of_trace(path, rows):
    """(launch -> seconds, fastest step) over all steps of `rows` rows. A launch is (kernel, n-th of it); it lasts from
    its begin to that of the next one, so barriers and host code are part of it; the first of all begins the step."""
    with open(path) as file:
        events = [event for event in json.load(file)["traceEvents"]
                  if event["ph"] == "X" and event["args"]["rows"] == rows]
    begins, wholes = collections.defaultdict(dict), {}
    seen = collections.Counter()
    for event in events:
        step = event["args"]["step"]
        if event["name"] == "step":
            wholes[step] = (event["ts"], event["ts"] + event["dur"])
            continue
        number = seen[step, event["name"], event["tid"]]
        seen[step, event["name"], event["tid"]] += 1
        launch = (event["name"], number)
        begins[step][launch] = min(event["ts"], begins[step].get(launch, event["ts"]))
    parts = {}
    for step, (begin, end) in wholes.items():
        launches = sorted(begins[step].items(), key=lambda launch: launch[1])
        times = [begin, *(ts for _, ts in launches[1:]), end]
        for (launch, _), start, stop in zip(launches, times, times[1:]):
            parts[launch] = min(parts.get(launch, stop - start), stop - start)
    return ({launch: time * 1e-6 for launch, time in parts.items()},
            min(end - begin for begin, end in wholes.values()) * 1e-6)


def attribute(point, predicted):
    """The kernels that differ most: (name, predicted, measured) in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.json")
        flags = (["--prefill", point["tokens"], "--decode", 0] if point["phase"] == "prefill" else
                 ["--prefill", 0, "--decode", DECODE_STEPS, "--batch", point["batch"], "--context",
                  point["context"] - DECODE_STEPS // 2])
        run([os.path.join(point["bundle"], "run"), "bench", "--json", "--repeat", "2", "--trace", trace,
             *map(str, flags)])
        measured = collections.Counter()
        for (kernel, _), seconds in steps_of_trace(trace, point["batch"] * point["tokens"])[0].items():
            measured[kernel] += seconds
    rows = [(kernel["name"], kernel["seconds"], measured[kernel["name"]]) for kernel in predicted["kernels"]]
    return sorted(rows, key=lambda row: -abs(row[1] - row[2]))[:3]


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def fastest_of(paths):
    """The points of all files, each once."""
    fastest = {}
    for path in paths:
        with open(path) as file:
            for point in json.load(file):
                key = (point["bundle"], point["phase"], point["batch"], point["context"], point["tokens"])
                if key not in fastest or point["measured_s"] < fastest[key]["measured_s"]:
                    fastest[key] = point
    return list(fastest.values())


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
    parser.add_argument("--points", nargs="*", default=[], help="points of earlier runs, to be predicted again")
    parser.add_argument("--json", help="file for the points")
    parser.add_argument("--markdown", help="file for the tables")
    parser.add_argument("--compute", default="f32,bf16", help="element types of activations (default: f32,bf16)")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each point, apart in time (default: 3)")
    parser.add_argument("--no-trace", action="store_true", help="no kernels for the worst points")
    parser.add_argument("--k2c", default=os.path.join(ROOT, "build/bin/k2c"))
    flags = parser.parse_args()
    points = fastest_of(flags.points)
    with tempfile.TemporaryDirectory() as temporary:
        benches = [(bench, list(bench.points())) for bench in (
            Bench(flags.k2c, checkpoint, compute, os.path.abspath(flags.bundles or temporary))
            for checkpoint in flags.checkpoints for compute in flags.compute.split(","))]
        new = [point for _, of_bench in benches for point in of_bench]
        for number in range(flags.rounds):
            for bench, of_bench in benches:
                for point in of_bench:
                    bench.measure(point)
                print(f"round {number + 1}: {bench.model} {bench.compute}", file=sys.stderr)
        for point in new:
            del point["launches"]
        points += new
        if flags.json:
            with open(flags.json, "w") as file:
                json.dump(points, file, indent=1)
        for point in points:
            point["predicted_s"] = predict(flags.k2c, flags.topology, point)["seconds"]
        text = "\n".join([*summary(points), "", *worst(points, flags.k2c, flags.topology, not flags.no_trace), ""])
    print(text)
    if flags.markdown:
        with open(flags.markdown, "w") as file:
            file.write(text)


main()
