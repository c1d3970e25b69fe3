"""Mutants that a seeded generator draws: a comparison swapped, a constant off by one, a condition or a call dropped.

Sources are as clang-format leaves them, so a comparison has a blank on both sides and a template has none. Comments,
texts, lines of the preprocessor, assertions and sizes that change no result (SmallVector<Value, 4>) are left alone.
"""
import glob
import os
import random
import re

SWAPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|R\"\w*\((?:.|\n)*?\)\w*\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'"
                     r"|^[ \t]*#[^\n]*|\bSmall\w+<[^;{}()]*?>|\b(?:static_)?assert\([^;]*;", re.S | re.M)
COMPARISON = re.compile(r" (<=|>=|==|!=|<|>) ")
CONSTANT = re.compile(r"(?<![\w.'])(?:0|[1-9]\d*)(?![\w.'])")
JOINED = re.compile(r" (&&|\|\|) ")
CALL = re.compile(r"^( +)(?!return\b|throw\b|delete\b|if\b|for\b|while\b|switch\b|else\b)[\w.:\[\]>-]+\(.*\);$", re.M)


def code_of(text):
    """`text` with blanks in place of what is no code; offsets stay."""
    return NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def operand_end(code, start):
    """Where the operand that begins at `start` ends: before the next operator or the end of what holds it."""
    depth = 0
    for at in range(start, len(code)):
        if code[at] in "([{":
            depth += 1
        elif code[at] in ")]}":
            depth -= 1
        ended = depth < 0 or (depth == 0 and (code[at] in ";,?" or code.startswith((" && ", " || ", " : "), at)
                                              or (code[at] == "\n" and code[at:].lstrip().startswith(("&&", "||")))))
        if ended:
            return at
    return len(code)


def sites(text):
    """All changes of one file: (kind, start, end, the text that takes the place)."""
    code = code_of(text)
    for found in COMPARISON.finditer(code):
        yield "comparison", found.start(1), found.end(1), SWAPPED[found[1]]
    for found in CONSTANT.finditer(code):
        yield "constant", found.start(), found.end(), str(int(found[0]) + 1)
        if found[0] != "0":
            yield "constant", found.start(), found.end(), str(int(found[0]) - 1)
    for found in JOINED.finditer(code):
        yield "condition", found.end(), operand_end(code, found.end()), "true" if found[1] == "&&" else "false"
    for found in CALL.finditer(code):
        if code[:found.start()].rstrip()[-1:] in tuple(";{}):"):  # else it is the end of a longer statement
            yield "call", found.end(1), found.end(), ";"


def folder_of(path, folders):
    """The folder of `folders` that holds `path`: the longest, or None."""
    holding = [folder for folder in folders if path.startswith(folder + "/")]
    return max(holding, key=len, default=None)


def sources(root):
    """Sources and headers that hold code, from `root`; what include/ has are declarations, and half of all is built
    again for each of them."""
    return sorted(path for folder in ("base", "lib", "runtime", "tools", "dialects") for end in ("cpp", "h")
                  for path in glob.glob(f"{folder}/**/*.{end}", root_dir=root, recursive=True))


def drawn(root, folders, seed):
    """Yields (folder, path, kind, start, end, text), without end of N: folders take turns, each in an order that `seed`
    decides, of kinds in turn, so that many constants do not crowd out the conditions."""
    by_folder = {folder: [] for folder in folders}
    for path in sources(root):
        if folder := folder_of(path, folders):
            with open(os.path.join(root, path), encoding="utf-8") as source:
                by_folder[folder] += [(folder, path, *site) for site in sites(source.read())]
    turns = []
    for folder in sorted(by_folder):
        generator = random.Random(f"{seed}:{folder}")
        kinds = {}
        for site in by_folder[folder]:
            kinds.setdefault(site[2], []).append(site)
        for kind in kinds.values():
            generator.shuffle(kind)
        turns.append(in_turn([kinds[kind] for kind in sorted(kinds)]))
    return in_turn(turns)


def in_turn(lists):
    """One element of each iterable, then the second of each, as long as any has more."""
    iterators = [iter(one) for one in lists]
    while iterators:
        for iterator in list(iterators):
            try:
                yield next(iterator)
            except StopIteration:
                iterators.remove(iterator)
