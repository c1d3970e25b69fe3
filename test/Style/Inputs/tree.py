"""The files of the repository that house rules speak of, and how a check reports."""
import os
import sys

FOLDERS = [".ci", "base", "benchmarks", "cmake", "dialects", "docs", "fuzz", "include", "lib", "models", "runtime",
           "scripts", "test", "tools", "unit"]
CPP = (".cpp", ".h", ".c", ".def")


def files(root, *suffixes, under=FOLDERS):
    """Paths below `root` with one of these suffixes, relative to it, sorted."""
    found = []
    for top in under:
        for folder, _, names in os.walk(os.path.join(root, top)):
            found += [os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith(suffixes)]
    return sorted(found)


def lines(root, path):
    with open(os.path.join(root, path), encoding="utf8") as file:
        return file.read().split("\n")


def report(problems, looked_at, what):
    """Prints what is wrong, or how much was looked at; ends the program."""
    for problem in problems:
        print(problem)
    print(f"{len(problems)} of {looked_at} {what} break the rule" if problems else f"{looked_at} {what}: fine")
    sys.exit(1 if problems or not looked_at else 0)
