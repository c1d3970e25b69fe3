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
    return json.loads(done.stdout.decode("utf-8")) if done.stdout else None


for name, said in [(b"m\xff\xfe", "m\\xff\\xfe"), (b"two\nlines", "two\\x0alines"), ("Größe".encode(), "Größe")]:
    os.rename("model", name)
    run(k2c, "compile", name, "-o", b"out-" + name, "--emit", "program")
    for model in (run(os.path.join(b"out-" + name, b"run"), "info", "--json")["model"]["name"],
                  run(planner, name, "--topology", "h100x8", "--json")["model"]):
        if model != said:
            sys.exit(f"{name} is called {model!r}, not {said!r}")
    os.rename(name, "model")
