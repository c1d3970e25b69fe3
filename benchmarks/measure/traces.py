"""Where a step's time goes: a trace of `run bench` beside the FLOP and bytes that the bundle's manifest counts.

A launch lasts from its first worker's begin to its last worker's end. Of the steps that a point times, the shortest is
taken apart, which other programs disturbed least; what no launch covers (barriers, host code) is the row "between
launches".
"""
import json
import os

TIMED_REPEATS = 3
BETWEEN = "between launches"


class Kernel:
    """All launches of a kernel in a step."""

    def __init__(self, name):
        self.name, self.launches, self.seconds, self.flops, self.bytes = name, 0, 0.0, 0.0, 0.0

    def flop_rate(self):
        return self.flops / self.seconds if self.seconds else 0

    def byte_rate(self):
        return self.bytes / self.seconds if self.seconds else 0

    def intensity(self):
        return self.flops / self.bytes if self.bytes else 0


class Step:
    """A step taken apart: kernels by falling time."""

    def __init__(self, seconds, kernels):
        self.seconds = seconds
        self.memory = 0  # bytes a second that the process read after its steps
        rest = Kernel(BETWEEN)
        rest.seconds = max(0.0, seconds - sum(kernel.seconds for kernel in kernels))
        self.kernels = sorted([*kernels, rest], key=lambda kernel: -kernel.seconds)


class Load:
    """What the rows of a step are, in the words of a cost rule."""

    def __init__(self, manifest, point, steps):
        self.sequences = point.batch
        new = point.prompt or 1
        self.rows = self.sequences * new
        before = 0 if point.prompt else max(1, point.context) + steps / 2
        self.context = before + (new + 1) / 2
        self.keys = self.sequences * (before + new)
        least = manifest["forms"]["prompt_expanded_at_least"]
        self.expanded = least == 0 or (least > 0 and new >= least)

    def rows_of(self, rule):
        kind = rule["rows"]
        if kind == "output":
            return self.sequences
        return 0 if kind in ("expanded", "absorbed") and (kind == "expanded") != self.expanded else self.rows

    def cost(self, rule):
        """FLOP and bytes of one launch (include/k2c/Kernels/Cost.h: CostRule)."""
        rows = self.rows_of(rule)
        if rows == 0:
            return 0, 0
        flops = rows * (rule["flops_per_row"] + self.context * rule["flops_per_row_key"])
        flops += self.keys * rule["flops_per_key"]
        size = rule["fixed_bytes"] + rows * rule["bytes_per_row"] + self.keys * rule["bytes_per_key"]
        if "experts" in rule:
            size += rule["expert_bytes"] * (1 - (1 - rule["top_k"] / rule["experts"]) ** rows)
        return flops, size


def steps_of(events, point):
    """The step events that a point times, by length."""
    rows = point.batch * (point.prompt or 1)
    found = [event for event in events if event["name"] == "step" and event["args"]["rows"] == rows
             and event["args"]["sequences"] == point.batch]
    return sorted(found, key=lambda event: event["dur"])


def launches_of(events, step):
    """(kernel name, begin, end) of each launch of a step: the i-th of a name on every worker is one launch."""
    found, seen = {}, {}
    for event in sorted((event for event in events if event["args"]["step"] == step), key=lambda event: event["ts"]):
        track = (event["tid"], event["name"])
        seen[track] = seen.get(track, -1) + 1
        launch = (event["name"], seen[track])
        begin, end = event["ts"], event["ts"] + event["dur"]
        if launch in found:
            begin, end = min(begin, found[launch][0]), max(end, found[launch][1])
        found[launch] = (begin, end)
    return [(name, *span) for (name, _), span in found.items()]


def take_apart(trace, manifest, point, steps):
    """The shortest Step, or None when the trace has none of this point."""
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    timed = steps_of(events, point)
    if not timed:
        return None
    shortest = timed[0]
    rules = {kernel["name"]: kernel["cost"] for kernel in manifest["kernels"]}
    load, kernels = Load(manifest, point, steps), {}
    workers = [event for event in events if event["name"] != "step"]
    for name, begin, end in launches_of(workers, shortest["args"]["step"]):
        kernel = kernels.setdefault(name, Kernel(name))
        flops, size = load.cost(rules[name])
        kernel.launches += 1
        kernel.seconds += (end - begin) / 1e6
        kernel.flops += flops
        kernel.bytes += size
    return Step(shortest["dur"] / 1e6, list(kernels.values()))


def measure(k2c, setup, model, compute, point):
    """Runs the point once more with a trace, unless the trace of this bundle is there."""
    bundle = k2c.bundle(model, compute, point)
    folder = os.path.join(setup.work, "traces")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{os.path.basename(bundle)}-{point.name}.json")
    if not os.path.exists(path):
        setup.say(f"tracing {model} {compute} {point.name}")
        said = k2c.run(model, compute, point, "--repeat", str(TIMED_REPEATS), "--trace", path + ".partial")
        with open(path + ".partial") as file:
            trace = json.load(file)
        trace["otherData"]["memory"] = said["bandwidth_probe_bytes_per_s"]
        with open(path + ".partial", "w") as file:
            json.dump(trace, file)
        os.replace(path + ".partial", path)
    with open(path) as file:
        trace = json.load(file)
    with open(os.path.join(bundle, "manifest.json")) as file:
        manifest = json.load(file)
    step = take_apart(trace, manifest, point, setup.steps)
    if step:
        step.memory = trace["otherData"]["memory"]
    return step
