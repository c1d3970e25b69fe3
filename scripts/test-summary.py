#!/usr/bin/env python3
"""Adds up the results that check.sh left in a folder: NAME.started says that a suite ran, NAME.gtest.json or
NAME.lit.json what came of it. A suite without a result (it crashed) is one failure. Exit code 1 when a test failed.

    test-summary.py FOLDER
"""
import json
import sys
from pathlib import Path

LIT_PASSED = {"PASS", "FLAKYPASS", "XFAIL"}
LIT_SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}


def lit_results(document):
    for test in document["tests"]:
        code = test["code"]
        yield test["name"], "passed" if code in LIT_PASSED else "skipped" if code in LIT_SKIPPED else "failed"


def gtest_results(document):
    for suite in document["testsuites"]:
        for test in suite["testsuite"]:
            skipped = test["status"] != "RUN" or test["result"] == "SKIPPED"
            result = "failed" if test.get("failures") else "skipped" if skipped else "passed"
            yield f'{suite["name"]}.{test["name"]}', result


def suite_results(folder, name):
    for suffix, read in (("lit", lit_results), ("gtest", gtest_results)):
        try:
            return list(read(json.loads((folder / f"{name}.{suffix}.json").read_text())))
        except (OSError, ValueError, KeyError):
            continue
    return [(f"{name} (ended without a result)", "failed")]


def main():
    folder = Path(sys.argv[1])
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for started in sorted(folder.glob("*.started")):
        for name, outcome in suite_results(folder, started.stem):
            count[outcome] += 1
            if outcome == "failed":
                print(f"FAILED: {name}")
    print(", ".join(f"{number} {outcome}" for outcome, number in count.items()))
    return count["failed"] > 0


if __name__ == "__main__":
    sys.exit(main())
