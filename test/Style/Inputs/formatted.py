"""Every C++ source is as clang-format 22 writes it.

usage: formatted.py CLANG_FORMAT ROOT
"""
import os
import re
import subprocess
import sys

from tree import files, report


def main(formatter, root):
    sources = files(root, ".cpp", ".h", ".c")
    command = [formatter, "--style=file:" + os.path.join(root, ".clang-format"), "--dry-run"]
    said = subprocess.run([*command, *sources], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: (?:warning|error)", said.stdout, re.M)))
    problems = [f"{path}: run clang-format on it" for path in wrong]
    if said.returncode and not wrong:
        problems.append(said.stdout.strip())
    report(problems, len(sources), "sources")


main(*sys.argv[1:])
