"""Plans that are refused are accepted once their remedy is applied: remedies.py PLANNER FOLDER < CASES.

A case is a line of JSON: {"ask": arguments of the planner, "workload": keys of a workload file, "topology": keys that
differ in a file made of a built-in one}. The remedy is applied from the refusal's JSON alone, and that of the fewest
devices as well.
"""

import json
import os
import subprocess
import sys

PLANNER, FOLDER = sys.argv[1:]


def plan(arguments, workload):
    if workload:
        path = os.path.join(FOLDER, "workload.yaml")
        with open(path, "w") as file:
            json.dump({"k2workload": 1, "name": "asked"} | workload, file)
        arguments = arguments + ["--workload", path]
    return subprocess.run(PLANNER.split() + arguments + ["--json"], capture_output=True, text=True)


def changed(arguments, flags, replaced):
    """The arguments with these flags in place of those of the same name and of those in `replaced`."""
    kept, rest = [], iter(arguments)
    for word in rest:
        if word in flags or word in replaced:
            if word != "--search":
                next(rest)
        else:
            kept.append(word)
    return kept + [word for entry in flags.items() for word in entry]


def main():
    refused = remedies = fewest = 0
    for line in sys.stdin:
        case = json.loads(line)
        arguments, workload = case["ask"].split(), case.get("workload", {})
        first = plan(arguments, workload)
        if first.returncode != 1 or not first.stdout:
            sys.exit(f"{line}is not refused with JSON: {first.returncode}: {first.stderr}")
        refused += 1
        answer = json.loads(first.stdout)["refused"]
        for key in ("remedy", "fewest"):
            if not answer[key] or answer[key]["tiers"]:
                continue
            numbers = {name: json.loads(value) if value.isdigit() else value
                       for name, value in answer[key]["workload"].items()}
            then = plan(changed(arguments, answer[key]["flags"], answer[key]["in_place_of"]), workload | numbers)
            if then.returncode != 0:
                sys.exit(f"{line}{key} {answer[key]['text']} is refused: {then.stderr}")
            made = json.loads(then.stdout)
            if made["devices"] != answer[key]["devices"]:
                sys.exit(f"{line}{key} has {made['devices']} devices, the refusal says {answer[key]['devices']}")
            print(case["ask"], "|", key, "|", answer[key]["text"])
            remedies += key == "remedy"
            fewest += key == "fewest"
    print(f"{refused} refused, {remedies} remedies and {fewest} of the fewest devices accepted")


main()
