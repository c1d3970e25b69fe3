"""What a trace of several ranks says of steps and of what crosses between nodes."""
import json
from collections import defaultdict

from bundles import Failure

def _events(path):
    with open(path) as file:
        trace = json.load(file)
    if trace["otherData"]["lost_records"]:
        raise Failure(f"{path}: {trace['otherData']['lost_records']} records were lost")
    return trace["traceEvents"]


def step_ends(path):
    """Of rank 0, step by step: when it ended, in seconds."""
    steps = [event for event in _events(path) if event["name"] == "step" and event["pid"] == 1]
    return {event["args"]["step"]: (event["ts"] + event["dur"]) / 1e6 for event in steps}


def exchanges(path, group, per_node):
    """Of each step, what the exchanges of a group took, the dispatches and combines of all layers together: seconds
    from their start to their end, the mean of ranks; seconds from the last rank's start to the last one's end; and
    bytes of the busiest node. A node's link carries both directions at once, and what it receives in a dispatch it
    sends back in the combine, so the busiest node of both is that which sends most in either."""
    begun, layers = {}, defaultdict(lambda: defaultdict(list))
    for event in _events(path):
        if event.get("cat") != "collective" or f" {group} @" not in event["name"]:
            continue
        key = event["pid"], event["id"]
        if event["ph"] == "b":
            begun[key] = event
        else:
            begin = begun.pop(key)
            sites = layers[begin["args"]["step"], begin["args"]["layer"]]
            sites[begin["name"]].append((begin["pid"] - 1, begin["ts"] / 1e6, event["ts"] / 1e6,
                                         begin["args"]["bytes"]))
    steps = defaultdict(lambda: {"mean_s": 0, "behind_s": 0, "busiest_bytes": 0})
    for (step, _), sites in layers.items():
        of_step, sent = steps[step], defaultdict(int)
        for name, ranks in sites.items():
            for rank, _, _, size in ranks:
                sent[name, rank // per_node] += size
            of_step["mean_s"] += sum(end - begin for _, begin, end, _ in ranks) / len(ranks)
            of_step["behind_s"] += max(end for _, _, end, _ in ranks) - max(begin for _, begin, _, _ in ranks)
        of_step["busiest_bytes"] += max(sent.values()) * len(sites)
    return [steps[step] for step in sorted(steps)]
