"""Compiles and plans `model` under names that are no text; fails unless each works and is named printably.

usage: odd_names.py K2C K2C_PLAN
"""
import json
import os
import subprocess
import sys

k2c, planner = sys.argv[1:]


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"{command}: exit code {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode("utf-8")


for name, said in [(b"m\xff\xfe", "m\\xff\\xfe"), (b"two\nlines", "two\\x0alines"), ("Größe".encode(), "Größe")]:
    os.rename("model", name)
    summary = run(k2c, "compile", name, "-o", b"out-" + name, "--compute", "f32", "--emit", "program")
    if f" out-{said}, " not in summary or f": {said} for " not in summary or summary.count("\n") != 5:
        sys.exit(f"{name} is called otherwise than {said!r}: {summary}")
    for model in (json.loads(run(os.path.join(b"out-" + name, b"run"), "info", "--json"))["model"]["name"],
                  json.loads(run(planner, name, "--topology", "h100x8", "--json"))["model"]):
        if model != said:
            sys.exit(f"{name} is called {model!r}, not {said!r}")
    os.rename(name, "model")
