"""What must not stand in the sources: unfinished work, paths of one machine, addresses of package registries, output
or an end of the process in a library, names put into the namespace of MLIR, a second place that states the numerics
version.

usage: words.py ROOT
"""
import re
import sys

from tree import CPP, files, lines, report

TEXT = (*CPP, ".td", ".py", ".sh", ".cmake", "CMakeLists.txt", ".md", ".yaml", ".mlir", ".test", ".long",
        ".sweep", ".ini", "/run")
# pattern, what it is, path prefixes it holds for, path prefixes that are exempt
RULES = [
    (r"\b(TODO|FIX" r"ME|XX" r"X|HA" r"CK)\b(?!\S*-XX)(?! *\(#\d+\))", "unfinished work without an issue", [""], []),
    (r"(?<![\w.%$}/-])/(root|home|work|mnt|srv|Users)/", "a path of one machine", [""], []),
    (r"https?://[^/\s]*(pypi|registry|mirror|proxy|artifact|conda|npm|crates)", "the address of a registry", [""], []),
    (r"\bstd::(cout|cerr|clog)\b|\b(f?printf|puts|fputs)\((?!file\b)(?!to\b)|\bllvm::(errs|outs)\(\)",
     "output in a library", ["base/", "lib/", "dialects/", "include/", "runtime/src/"],
     ["runtime/src/run/", "lib/EmulatedDriver/Report.cpp"]),  # the latter says what no error code of CUDA says
    (r"\b(abort|exit|_exit|quick_exit|report_fatal_error)\(", "an end of the process in a library",
     ["base/", "lib/", "dialects/", "include/", "runtime/src/"],
     ["runtime/src/run/", "lib/Target/Host/"]),  # child processes of the latter end themselves
    (r"^namespace mlir\b", "a name of ours in namespace mlir", [""], []),
    (r"using namespace std;|#pragma once", "a habit of other projects", [""], []),
    (r'"v\d+/|"[^"]*\bnumerics \d|\{"version", *\d|NumericsAttr::get\(.*\b\d',
     "a numerics version beside that of numerics.h", ["base/", "lib/", "dialects/", "runtime/src/", "tools/"], []),
    (r"\bcl::opt\b", "a global option in a library", ["lib/", "include/", "dialects/"], []),
]


def main(root):
    problems, looked_at = [], 0
    for path in files(root, *TEXT):
        if path == "test/Style/Inputs/words.py":
            continue
        rules = [(re.compile(pattern), what) for pattern, what, where, exempt in RULES
                 if path.startswith(tuple(where)) and not path.startswith(tuple(exempt or ["//"]))]
        for number, line in enumerate(lines(root, path), 1):
            looked_at += 1
            code = line.split("//")[0] if path.endswith(CPP) else line
            for pattern, what in rules:
                if pattern.search(line if "unfinished" in what or "machine" in what or "registry" in what else code):
                    problems.append(f"{path}:{number}: {what}: {line.strip()[:80]}")
    report(problems, looked_at, "lines")


main(sys.argv[1])
