"""Checks that the examples of td files are cut from lit tests, so that none differs from what a test proves.

A test proves the lines of its input and those it CHECKs. The lines of a ```mlir block stand in one test, each whole and
in the order of the block; an attribute or a type alone may be part of a line. `...` is whatever was left out. White
space does not count, and a line that is indented by four or more continues the one before it.

An example of a pass is cut from a test that runs the pass: up to `// after` its lines are input, from there on CHECK
lines. Where these have {{..}} or [[VAR]], an example has names of its own, one for each variable. Tests of errors prove
nothing.

With DOCS, the folder of the pages that were generated from the td files, each example there gets a line that names the
test it was cut from.
usage: examples.py ROOT [DOCS]
"""
import functools
import os
import re
import sys

from tree import files, lines, report

CHECK = re.compile(r"\s*// CHECK(?:-SAME|-NEXT|-LABEL|-DAG)?: *(.*)")
VARIABLE = re.compile(r"\{\{(?P<regex>.*?)\}\}|\[\[(?P<name>\w+)(?P<given>:(?P<value>.*?))?\]\]")
PART = re.compile(r"[#!]|tensor<")
LEFT_OUT = {"...": ".*?", " ...": "(?: .*)?"}
CUT = "Cut from "


def statements(numbered):
    """(line number, text, whether behind `// after`) of lines with what continues them, without comments."""
    found, indent, after = [], 0, False
    for number, line in numbered:
        after |= "// after" in line
        words = re.sub(r"(^|\s)//.*", "", line).rstrip()
        if words.strip() in ("", "..."):
            continue
        text, own = " ".join(words.split()), len(words) - len(words.lstrip())
        if found and own >= indent + 4:
            found[-1] = (found[-1][0], f"{found[-1][1]} {text}", after)
        else:
            found.append((number, text, after))
            indent = own
    return found


def checked(text, regexes):
    """A CHECK line with \\0N\\0 for its variable N, and (name, whether it is set, regular expression) of each."""
    variables = []

    def number(match):
        if match["given"]:
            regexes[match["name"]] = match["value"]
        variables.append((match["name"], match["given"], match["regex"] or regexes.get(match["name"], ".*")))
        return f"\0{len(variables) - 1}\0"

    return VARIABLE.sub(number, " ".join(text.replace("{{$}}", "").split())), variables


def proved(text):
    """The input lines and the CHECK lines of a test."""
    regexes = {}
    matches = filter(None, map(CHECK.match, text))
    return [(words, []) for _, words, _ in statements(enumerate(text))], [checked(m[1], regexes) for m in matches]


@functools.cache
def pattern(example):
    """A regular expression of what proves a line, with a group for each word, and (word, whether it names a value)."""
    tokens = re.findall(r" \.\.\.$|\.\.\.|\w+|.", example)
    regex = "".join(rf"(?:{token}|\0(\d+)\0)" if re.match(r"\w", token) else LEFT_OUT.get(token, re.escape(token))
                    for token in tokens)
    words = [(token, before == "%") for before, token in zip(["", *tokens], tokens) if re.match(r"\w", token)]
    return re.compile(rf".*?{regex}(?:\W.*)?" if PART.match(example) else regex), words


def matched(example, line, names):
    """The names of the variables so far, where `line` proves `example`; None where it does not."""
    regex, words = pattern(example)
    match = regex.fullmatch(line[0])
    names = dict(names)
    for (word, is_value), number in zip(words, match.groups() if match else ()):
        if number is not None:
            name, given, wanted = line[1][int(number)]
            if not (is_value if wanted == ".*" else re.fullmatch(wanted, word)):
                return None
            if given:
                names.pop(name, None)
            if name and (names.setdefault(name, word) != word or list(names.values()).count(word) > 1):
                return None
    return names if match else None


def found(example, proof, names):
    """How many lines of `example` stand in `proof`, in order, before the first that does not."""
    best = 0
    for at, line in enumerate(proof):
        if best < len(example) and (bound := matched(example[0], line, names)) is not None:
            rest = proof[at if PART.match(example[0]) else at + 1:]
            best = max(best, 1 + found(example[1:], rest, bound))
    return best


def missing(example, of_pass, test):
    """The statements of an example from the first that a test does not prove."""
    inputs, checks = test
    for after, proofs in ((False, [inputs] if of_pass else test), (True, [checks])):
        part = [statement for statement in example if statement[2] == after]
        count = max(found([text for _, text, _ in part], proof, {}) for proof in proofs)
        if count < len(part):
            return example[example.index(part[count]):]
    return []


def examples(text):
    """(definition, flag of a pass, statements, last line) of each ```mlir block of a td file, or of its page."""
    name = flag = block = None
    for number, line in enumerate(text, 1):
        if defined := re.match(r'def (\w+)(?: *: *Pass<"([\w-]+)")?', line):
            name, flag = defined.groups()
        elif heading := re.match(r"### `(?:-([\w-]+))?", line):
            flag = heading[1]
        if line.strip() == "```mlir":
            block = []
        elif line.strip() == "```" and block is not None:
            yield name, flag, statements(block), number
            block = None
        elif block is not None:
            block.append((number, line))


def tests_of(root):
    """(path, flags it runs, lines it proves) of each test that may prove an example."""
    for path in files(root, ".mlir", under=["test"]):
        if "Inputs" not in path.split(os.sep) and "invalid" not in os.path.basename(path):
            text = lines(root, path)
            flags = {flag for line in text if re.match(r"// (RUN|DEFINE):", line)
                     for flag in re.findall(r"--([\w-]+)", line)}
            yield path, flags, proved(text)


def nearest(example, flag, tests):
    """(statements that it does not prove, its path) of the test that proves most of an example."""
    left = [(missing(example, flag, test), path) for path, flags, test in tests if flag is None or flag in flags]
    return min(left, key=lambda each: len(each[0]), default=(example, None))


def name_tests(docs, tests):
    """Writes behind each example of the pages below `docs` its test, in place of the line of an earlier run."""
    for path in files(docs, ".md", under=["."]):
        text = [line for line in lines(docs, path) if not line.startswith(CUT)]
        for _, flag, example, end in reversed(list(examples(text))):
            left, test = nearest(example, flag, tests)
            if not left:
                text.insert(end, f"{CUT}`{test}`." + ("\\" if "".join(text[end:end + 1]).strip() else ""))
        with open(os.path.join(docs, path), "w", encoding="utf8") as file:
            file.write("\n".join(text))


def main(root, docs=None):
    tests = list(tests_of(root))
    if docs:
        return name_tests(docs, tests)
    problems, count = [], 0
    for path in (path for path in files(root, ".td") if "Inputs" not in path.split(os.sep)):
        for name, flag, example, _ in examples(lines(root, path)):
            count += 1
            if first := nearest(example, flag, tests)[0]:
                where = f"no test that runs --{flag}" if flag else "no test"
                problems.append(f"{path}:{first[0][0]}: {name}: {where} has '{first[0][1]}': cut the example from a"
                                " test, with ... for what is left out")
    report(problems, count, "examples")


main(*sys.argv[1:])
