"""Reads a trace of `k2c plan --trace` as Perfetto does: events have what their kind needs, every track has a name and
its spans follow one another.

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
    wanted = plan["pipeline"]["tasks"] if "pipeline" in plan else len(plan["steps"])
    assert len(spans) == wanted, f"{len(spans)} spans, the plan has {wanted}"
    print(f"{len(spans)} spans on {len(names)} tracks")


main()
