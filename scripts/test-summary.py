#!/usr/bin/env python3
"""Adds up the results that check.sh or check-san.sh left in a folder: TIER.started says that a tier ran, TIER.lit.xml
what came of it, TIER.time how long it took (seconds: elapsed, user, system). A tier without a result (it crashed) is a
failure, and so is one of check.sh's tiers that is far over its budget or was not timed. Exit code 1 when something
failed.

    test-summary.py FOLDER

Budgets are minutes on two idle cores. What is held to them is half of the processor time, which another process on the
machine does not lengthen; a test that waits for nothing is ended by its own time limit. Machines differ: one tree took
5.7 minutes of tier check on one and 9.8 on another of the same kind. So a tier over its budget is said, and is a
failure when it is half again over it.
"""
import sys
import xml.etree.ElementTree
from pathlib import Path

CORES = 2
# Tier -> (the tiers whose minutes are added up, their budget).
BUDGETS = {"fast": (("fast",), 2), "check": (("check",), 9), "long": (("fast", "check", "long"), 20)}
SLOWER = 1.5  # how much slower a machine may be than the one that budgets are of
SLOWEST = 10


def results(folder, tier):
    """(name, outcome, seconds) of each test. lit's XML has unit tests that skipped themselves, its JSON has not."""
    try:
        found = [
            (f'{case.get("classname")}/{case.get("name")}', outcome(case), float(case.get("time")))
            for case in xml.etree.ElementTree.parse(folder / f"{tier}.lit.xml").iter("testcase")
        ]
    except (OSError, xml.etree.ElementTree.ParseError):
        found = []
    return found or [(f"{tier} (ended without a result)", "failed", 0.0)]


def outcome(case):
    return "failed" if case.find("failure") is not None else "skipped" if case.find("skipped") is not None else "passed"


def minutes(folder, tier):
    """(elapsed, on two idle cores) of a tier, or None when it was not timed."""
    try:
        elapsed, user, system = map(float, (folder / f"{tier}.time").read_text().split()[-3:])
    except (OSError, ValueError):
        return None
    return elapsed / 60, (user + system) / CORES / 60


def over_budget(times, factor):
    """A line for each budget that does not hold even `factor` times."""
    for last, (parts, budget) in BUDGETS.items():
        if last in times:
            took = sum(times[part][1] for part in parts if part in times)
            if took > factor * budget:
                yield f"{' + '.join(parts)} took {took:.1f} of {budget} minutes"


def main():
    folder = Path(sys.argv[1])
    started = sorted(path.stem for path in folder.glob("*.started"))
    tiers = [tier for tier in BUDGETS if tier in started] + [tier for tier in started if tier not in BUDGETS]
    tests = [test for tier in tiers for test in results(folder, tier)]
    times = {tier: took for tier in tiers if (took := minutes(folder, tier))}

    slowest = sorted(tests, key=lambda test: -test[2])[:SLOWEST]
    print(f"the {len(slowest)} slowest tests, seconds:")
    for name, _, seconds in slowest:
        print(f"  {seconds:6.1f}  {name}")
    for tier, (elapsed, idle) in times.items():
        print(f"{tier}: {idle:.1f} minutes on two idle cores, {elapsed:.1f} on the clock of this machine")

    for line in over_budget(times, 1):
        print(f"over budget: {line}")

    failures = [name for name, how, _ in tests if how == "failed"]
    failures += [f"{tier} was not timed" for tier in tiers if tier in BUDGETS and tier not in times]
    failures += over_budget(times, SLOWER)
    for failure in failures:
        print(f"FAILED: {failure}")
    passed, skipped = (sum(how == one for _, how, _ in tests) for one in ("passed", "skipped"))
    print(f"{passed} passed, {len(failures)} failed, {skipped} skipped")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
