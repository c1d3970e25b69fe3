"""Holds the remedy of a program that does not fit to its word: the limits it names are accepted, one more is refused.

usage: remedy.py [--step-tokens N] SOURCE TOPOLOGY SEQUENCES CONTEXT
"""
import re
import subprocess
import sys

flags, (source, topology, sequences, context) = sys.argv[1:-4], sys.argv[-4:]


def compile_with(sequences, context):
    """The scheduled form knows the arena. Returns the diagnostic; empty where it fits."""
    done = subprocess.run(["k2c", "compile", source, "-o", "-", "--emit", "scheduled", "--compute", "f32",
                           "--topology", topology, "--max-sequences", str(sequences), "--max-context", str(context),
                           *flags],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode == 0) == (done.stderr == ""), done
    return done.stderr


refused = compile_with(sequences, context)
found = re.search(r"lower --max-context to at most (\d+) or --max-sequences to at most (\d+)", refused)
assert found, refused
fewer, shorter = int(found[2]), int(found[1])
for accepted in [(fewer, context), (sequences, shorter)]:
    assert compile_with(*accepted) == "", accepted
for wanted in [(fewer + 1, context), (sequences, shorter + 1)]:
    assert " bytes available " in compile_with(*wanted), wanted
print(refused, end="")
