"""Checks that each diagnostic and each remark of some libraries is quoted by a test.

A diagnostic is a statement with emitError, emitOpError, emitRemark, remark, missing or Error{; its words are its string
literals. Every run of words of two or more must stand in a test, where literals may be broken over lines as well.
usage: diagnostics.py SOURCE_FOLDER...   below the repository's root, which is the working directory
"""
import pathlib
import re
import sys

LITERAL = r'"((?:[^"\\\n]|\\.)*)"'
START = re.compile(r"\b(?:emitError|emitOpError|emitRemark|remark|missing|refuse)\(|\bError\{")


def joined(text):
    """`text` with adjacent string literals as one, and white space as one blank."""
    text = re.sub(r"(?<!\\)\"\s*\n?\s*\"", "", text)
    return re.sub(r"\s+", " ", text.replace("\\'", "'").replace('\\"', '"'))


def statement(text, start):
    """From `start` to the semicolon that ends the statement: outside literals and braces."""
    depth, at = 0, start
    while at < len(text):
        literal = re.compile(LITERAL).match(text, at)
        if literal:
            at = literal.end()
            continue
        if text[at] in "({[":
            depth += 1
        elif text[at] in ")}]":
            depth -= 1
        if depth < 0 or (text[at] == ";" and depth <= 0):
            break
        at += 1
    return text[start:at]


def messages(path):
    text = re.sub(r"(?m)^\s*//.*$", "", path.read_text())
    for match in START.finditer(text):
        if re.search(r"(LogicalResult|void|auto)\s+$", text[: match.start()]):
            continue  # a declaration
        line = text.count("\n", 0, match.start()) + 1
        body = re.sub(r'"\s*\n\s*"', "", statement(text, match.start()))
        yield line, [words for words in re.findall(LITERAL, body) if re.search(r"[A-Za-z]{2,} +\S*[A-Za-z]{2,}", words)]


def main(folders):
    tests = [p for root in ("test", "unit") for p in pathlib.Path(root).rglob("*")]
    tests = [p for p in tests if p.suffix in (".mlir", ".test", ".long", ".cpp", ".py") and "Inputs" not in p.parts]
    quoted = joined("\n".join(p.read_text(errors="replace") for p in tests))
    problems, count = [], 0
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*.cpp")):
            for line, parts in messages(path):
                count += 1
                for words in parts:
                    words = joined(words).strip()
                    if words not in quoted:
                        problems.append(f'{path}:{line}: no test quotes "{words}"')
    print("\n".join(problems) or f"{count} diagnostics and remarks are tested")
    return 1 if problems or not count else 0


sys.exit(main(sys.argv[1:]))
