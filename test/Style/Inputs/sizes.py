"""Files of at most 400 lines, functions of at most 60, lines of at most 120 columns.

usage: sizes.py ROOT
"""
import re
import sys

from tree import CPP, files, lines, report

MAX_FILE, MAX_FUNCTION, MAX_COLUMNS = 400, 60, 120
CODE = (*CPP, ".td", ".py", ".sh", ".cmake", "CMakeLists.txt")
# Files whose lines are data: sentences of many scripts, and what they are cut with.
DATA = {"test/Runtime/tokenizers/make_golden.py", "test/Runtime/tokenizers/make_wide.py"}
NO_FUNCTION = re.compile(
    r"\s*(//|(namespace|struct|class|enum|union|extern|if|for|while|switch|do|else|using|return)\b)|.*= \{$")


def columns(path, text):
    """Lines that are too long; tables of Markdown and literals that no formatter breaks are as long as they must."""
    for number, line in enumerate(text, 1):
        if len(line) > MAX_COLUMNS and not line.startswith("|") and 'R"' not in line:
            yield f"{path}:{number}: {len(line)} columns, at most {MAX_COLUMNS}"


def head_of(text, brace):
    """The line where the head begins whose body opens at the end of line `brace`: wrapped lines and a constructor's
    initialisers are indented further than it. None when nothing there is a function."""
    number = brace
    # A head that is wrapped ends in lines of at least four columns; its first line is less indented and not ended.
    while number > 0 and re.match(r" {4}", text[number]) and re.search(r"[,(=<&|+?:)]$|[^;{}\s]$", text[number - 1]):
        number -= 1
    if number < brace and "](" in text[brace]:
        return None  # a lambda among the initialisers
    head = " ".join(text[number:brace + 1])
    indent = len(text[number]) - len(text[number].lstrip())
    return number if indent in (0, 2, 4) and "(" in head and not NO_FUNCTION.match(head) else None


def functions(path, text):
    """Functions that are too long. Formatted code closes a body in the column where its head begins."""
    number = 0
    while number < len(text):
        head = head_of(text, number) if re.search(r"[)\w}] ?\{$", text[number]) else None
        if head is not None:
            indent = re.match(" *", text[head])[0]
            end = next((i for i in range(number, len(text)) if text[i].startswith(indent + "}")), number)
            if end - number - 1 > MAX_FUNCTION:
                yield f"{path}:{head + 1}: a function of {end - number - 1} lines, at most {MAX_FUNCTION}"
            number = end if not indent else number
        number += 1


def main(root):
    problems, looked_at = [], 0
    for path in files(root, *CODE, ".md"):
        if path in DATA:
            continue
        text = lines(root, path)
        looked_at += 1
        problems += columns(path, text)
        if path.endswith(CODE) and len(text) - 1 > MAX_FILE:
            problems.append(f"{path}: {len(text) - 1} lines, at most {MAX_FILE}")
        if path.endswith((".cpp", ".h")):
            problems += functions(path, text)
    report(problems, looked_at, "files")


main(sys.argv[1])
