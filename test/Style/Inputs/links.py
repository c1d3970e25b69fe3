"""A bundle depends on the C library, libm and the loader; its program exports one symbol and needs none.

usage: links.py BUILD CHECKPOINT      (run with the Harness folder in PYTHONPATH: it compiles the checkpoint once)
"""
import os
import re
import subprocess
import sys

from bundles import compiled
from tree import report

SYSTEM = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


def readelf(flag, path):
    return subprocess.run(["llvm-readelf", flag, path], stdout=subprocess.PIPE, text=True, check=True).stdout


def needed(path):
    return set(re.findall(r"\(NEEDED\)\s+Shared library: \[(.*)\]", readelf("-d", path)))


def dynamic_symbols(path):
    """Name -> whether it is defined here."""
    rows = (line.split() for line in readelf("--dyn-syms", path).splitlines())
    return {row[7].split("@")[0]: row[6] != "UND" for row in rows if len(row) > 7 and row[0].rstrip(":").isdigit()}


def archives(build):
    """Static libraries of MLIR on link lines: one beside libMLIR.so makes two TypeIDs."""
    with open(os.path.join(build, "build.ninja")) as file:
        return sorted(set(re.findall(r"libMLIR\w+\.a", file.read())))


def main(build, checkpoint):
    folder = compiled(checkpoint).folder
    run, program = os.path.join(folder, "run"), os.path.join(folder, "program.so")
    problems = [f"run needs {name}" for name in sorted(needed(run) - SYSTEM)]
    problems += [f"program.so needs {name}" for name in sorted(needed(program) - SYSTEM)]
    if (symbols := dynamic_symbols(program)) != {"k2c_program_query": True}:
        problems.append(f"program.so has the dynamic symbols {symbols}, not k2c_program_query alone")
    problems += [f"build.ninja links {name} beside libMLIR.so" for name in archives(build)]
    report(problems, 4, "facts about links")


if __name__ == "__main__":
    main(*sys.argv[1:])
