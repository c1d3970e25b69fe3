"""Checks that each message of the compiler, the runtime and the tools is quoted by a test.

A message is what MAKERS names: a call that makes an error, a remark or a note, an Error built in place, the body of a
function that returns an Error, a text kept for one or returned. Its words are its string literals, cut at what a format
fills in and at the markup of pages; every run of words of two or more must stand in a test, where literals may be
broken over lines as well.
EXCEPTIONS lists what no test makes happen: a line "maximum N", then N lines PATH: "WORDS" REASON. It may only shrink: a
line whose words are no longer in a message of that file, or which a test quotes by now, is a problem, and so is a
maximum that is not the number of lines.
usage: diagnostics.py --tests FOLDER,.. --exceptions FILE SOURCE_FOLDER..   below the working directory
"""
import argparse
import pathlib
import re
import sys

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
CALLS = """atLeast atMost badFile checkShape damaged divides emitError emitOpError emitRemark equal error fail failure
           indivisible invalid keep keys leaveWith missing mustBe noCache push_back refuse refused remark
           setInterruptNote systemError that tooWide unsupported wrong wrongType"""
MAKERS = re.compile(
    rf"\b(?:{'|'.join(CALLS.split())})\((?!&)|"
    r"\b(?:Error|ParseError)\s*[({]|\breturn (?!rewriter\b)[^;{}\"]*\"|\{\s*(?:K2RT_|code,)|\bfprintf\(stderr|"
    r"\b(?:remedy|why|message|problem|note|wanted|said)\s*\+?=(?!=)|"
    r"\b(?:Error|optional<Error>)\s+(?:\w+::)*\w+\([^;{}]*\)\s*(?:const\s*)?\{"
)
DECLARED = re.compile(r"(?:^|[\s<(])(?!return|else|throw|case)[A-Za-z_][\w:]*(?:<[^;<>]*>)?[&*]*\s+[&*]*(?:\w+::)*$")
WORDS = re.compile(r"[A-Za-z]{2,} +\S*[A-Za-z]{2,}")
MARKUP = r"</?[a-z]\w*(?: [\w-]+=[^<>]*)?(?:>|$)"
FILLED_IN = re.compile(rf"\\n|%[\d.]*(?:ll|l|z)?[dsugfixX]\b|{MARKUP}")
NO_CODE = {".cpp": re.compile(r"(?m)^\s*//.*$|(?<=[;{,)])\s*//.*$"),
           ".py": re.compile(r'(?s)""".*?"""|(?m:^\s*#.*$)')}
EXCEPTION = re.compile(r'(\S+): "(.*)" (\w.*)')


def joined(text):
    """`text` with adjacent string literals as one, and white space as one blank."""
    text = re.sub(r"(?<!\\)\"\s*\n?\s*\"", "", text)
    return re.sub(r"\s+", " ", text.replace("\\'", "'").replace('\\"', '"'))


def statement(text, start):
    """From `start` to the semicolon, or the brace, that ends the statement: outside literals and braces."""
    depth, at = 0, start
    while at < len(text):
        literal = LITERAL.match(text, at)
        if literal:
            at = literal.end()
            continue
        if text[at] in "({[":
            depth += 1
        elif text[at] in ")}]":
            depth -= 1
        if depth < 0 or (text[at] == ";" and depth <= 0) or (text[at] == "}" and text[start:at].startswith("Error ")):
            break
        at += 1
    return text[start:at]


def messages(path):
    """(line, runs of words) of each message of a file; a run belongs to the first message that has it."""
    text = re.sub(r"(?m)^\s*(?://|assert\().*$", "", path.read_text())
    seen = set()
    for match in MAKERS.finditer(text):
        if match[0][-1] == "(" and DECLARED.search(text[max(0, match.start() - 200) : match.start()]):
            continue
        line = text.count("\n", 0, match.start()) + 1
        body = re.sub(r'(?<!\\)"\s*\n?\s*"', "", statement(text, match.start()))
        runs = [joined(run).strip() for words in LITERAL.findall(body) for run in FILLED_IN.split(words)]
        runs = [run for run in dict.fromkeys(runs) if WORDS.search(run) and run not in seen]
        seen.update(runs)
        yield line, runs


def texts(folders):
    """The texts of all tests of some folders; what they read (Inputs), comments of programs and docstrings quote
    nothing."""
    for folder in map(pathlib.Path, folders):
        tests = [p for p in folder.rglob("*") if p.suffix in (".mlir", ".test", ".long", ".sweep", ".cpp", ".py")]
        for path in tests:
            if "Inputs" not in path.relative_to(folder).parts:
                text = path.read_text(errors="replace")
                yield NO_CODE[path.suffix].sub("", text) if path.suffix in NO_CODE else text


def exceptions(path):
    """The lines of the list as {(path, words): reason}, and what is wrong with the list itself."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    found = [EXCEPTION.fullmatch(line) for line in lines[1:]]
    problems = [f'{path}: not PATH: "WORDS" REASON: {line}' for line, match in zip(lines[1:], found) if not match]
    if lines[:1] != [f"maximum {len(lines) - 1}"]:
        problems.append(f"{path}: {len(lines) - 1} exceptions, the list states: {''.join(lines[:1])}")
    return {(match[1], match[2]): match[3] for match in found if match}, problems


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--tests", default="test,unit")
    parser.add_argument("--exceptions", required=True, type=pathlib.Path)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    flags = parser.parse_args(arguments)
    quoted = joined("\n".join(texts(flags.tests.split(","))))
    allowed, problems = exceptions(flags.exceptions)
    count, used = 0, set()
    for path in sorted(p for folder in flags.folders for p in folder.rglob("*") if p.suffix in (".cpp", ".h")):
        for line, runs in messages(path):
            count += bool(runs)
            for words in runs:
                key = (str(path), words)
                if key in allowed:
                    used.add(key)
                    if words in quoted:
                        problems.append(f'{flags.exceptions}: a test quotes "{words}" of {path} by now')
                elif words not in quoted:
                    problems.append(f'{path}:{line}: no test quotes "{words}"')
    problems += [f'{flags.exceptions}: {path} does not say "{words}"' for path, words in sorted(set(allowed) - used)]
    print("\n".join(problems) or f"{count} messages are tested, but {len(allowed)} of their parts")
    return 1 if problems or not count else 0


sys.exit(main(sys.argv[1:]))
