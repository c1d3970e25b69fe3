"""Tests run on every processor at once: programs and compiles in RUN lines say how many workers they have.

`k2c run` compiles with all processors and has no flag for it; only its program is held to a number. A program of a GPU
takes no --threads, and the emulated --driver has one.

usage: workers.py ROOT
"""
import re
import sys

from tree import files, lines, report

RUNS = re.compile(r"(?:/run|\bk2c run\b.* --) +(?:generate|logits|hidden|perplexity|routes|bench|links)\b")
COMPILES = re.compile(r"\bk2c compile\b(?!.* --(?:help|emit)\b)")
REFUSED = re.compile(r"\bnot k2c compile\b|expect\.py [12] k2c compile\b|expect\.py 2\b")  # before anything works


def commands(text):
    """(number of its first line, command) of each RUN and DEFINE line; a line may go on in the next."""
    begun, said = 0, ""
    for number, line in enumerate(text, 1):
        found = re.search(r"\b(?:RUN|DEFINE):(.*)", line)
        if not found:
            continue
        begun, said = (begun if said else number), said + found[1]
        if said.endswith("\\"):
            said = said[:-1]
            continue
        yield from ((begun, command) for command in re.split(r"&&|\|\||[;|]", said))
        said = ""


def is_uncounted(command):
    """True for one that takes all processors."""
    runs = RUNS.search(command) and "--threads" not in command and "--driver" not in command
    return not REFUSED.search(command) and (runs or (COMPILES.search(command) and "--jobs" not in command))


root = sys.argv[1]
tests = [path for path in files(root, ".test", ".long", ".sweep", under=["test"]) if "/Inputs/" not in path]
report([f"{path}:{number}: say --threads or --jobs"
        for path in tests for number, command in commands(lines(root, path)) if is_uncounted(command)],
       len(tests), "tests")
