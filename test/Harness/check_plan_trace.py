"""Reads a trace of `k2c plan --trace` as Perfetto does: events have what their kind needs, every track has a name and
its spans follow one another. Serving, a phase lasts as long as the plan says, has every layer, and both halves of a
batch where it overlaps.

  check_plan_trace.py TRACE JSON
"""
import json
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    with open(sys.argv[2], encoding="utf-8") as file:
        plan = json.load(file)
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    spans = [event for event in events if event["ph"] == "X"]
    ends = {}
    for span in sorted(spans, key=lambda span: (span["tid"], span["ts"])):
        assert span["tid"] in names, f"track {span['tid']} has no name"
        begins = span["ts"] >= ends.get(span["tid"], 0) * (1 - 1e-9)
        assert span["dur"] >= 0 and begins, f"{span} overlaps the one before"
        ends[span["tid"]] = span["ts"] + span["dur"]
    if "pipeline" in plan:
        assert len(spans) == plan["pipeline"]["tasks"], f"{len(spans)} spans, the plan has {plan['pipeline']['tasks']}"
    for phase in [] if "pipeline" in plan else dict.fromkeys(part["phase"] for part in plan["steps"]):
        tracks = {tid for tid, name in names.items() if name.split(":")[0] == phase}
        own = [span for span in spans if span["tid"] in tracks]
        overlaps = phase in plan["overlapped"]
        parts = [part for part in plan["steps"] if part["phase"] == phase]
        wanted = sum(part["seconds"] - part["hidden_seconds"] for part in parts)
        if overlaps:
            wanted = plan["figures"][phase + "_step_s"]["value"]
        end = max(ends[tid] for tid in tracks) / 1e6
        assert abs(end - wanted) < 1e-6 * wanted, f"{phase} ends at {end} s, the plan says {wanted}"
        layers = {span["args"]["layer"] for span in own if "layer" in span["args"]}
        assert layers == set(range(len(layers))), f"{phase} has layers {sorted(layers)}"
        halves = {span["args"]["half"] for span in own if "half" in span["args"]}
        assert halves == ({"A", "B"} if overlaps else set()), f"{phase} has halves {halves}"
        print(f"{phase}: {len(layers)} layers, {len(halves)} halves")
    print(f"{len(spans)} spans on {len(names)} tracks")


main()
