"""Files of at most 400 lines, functions of at most 60, lines of at most 120 columns.

usage: sizes.py ROOT
"""
import re
import sys

from tree import CPP, files, lines, report

MOST_FILE, MOST_FUNCTION, MOST_COLUMNS = 400, 60, 120
CODE = (*CPP, ".td", ".py", ".sh", ".cmake", "CMakeLists.txt")
# Files whose lines are data: sentences of many scripts, and what they are cut with.
DATA = {"test/Runtime/tokenizers/make_golden.py", "test/Runtime/tokenizers/make_wide.py"}
NO_FUNCTION = re.compile(r"\s*(namespace|struct|class|enum|union|extern|if|for|while|switch|do|else|using)\b|.*= \{$")


def columns(path, text):
    """Lines that are too long; tables of Markdown and literals that no formatter breaks are as long as they must."""
    for number, line in enumerate(text, 1):
        if len(line) > MOST_COLUMNS and not line.startswith("|") and 'R"' not in line:
            yield f"{path}:{number}: {len(line)} columns, at most {MOST_COLUMNS}"


def functions(path, text):
    """Functions that are too long. Formatted code closes a body in the column where its head begins."""
    number = 0
    while number < len(text):
        head = re.match(r"( {0,4})\S.*[)\w] ?\{$", text[number])
        if head and "(" in text[number] and not NO_FUNCTION.match(text[number]) and len(head[1]) in (0, 2, 4):
            end = next((i for i in range(number, len(text)) if text[i].startswith(head[1] + "}")), number)
            # A constructor's initialiser begins a body, but its line is indented further than the closing brace.
            if end - number - 1 > MOST_FUNCTION and not text[number].lstrip().startswith(":"):
                yield f"{path}:{number + 1}: a function of {end - number - 1} lines, at most {MOST_FUNCTION}"
            number = end if not head[1] else number
        number += 1


def main(root):
    problems, looked_at = [], 0
    for path in files(root, *CODE, ".md"):
        if path in DATA:
            continue
        text = lines(root, path)
        looked_at += 1
        problems += columns(path, text)
        if path.endswith(CODE) and len(text) - 1 > MOST_FILE:
            problems.append(f"{path}: {len(text) - 1} lines, at most {MOST_FILE}")
        if path.endswith((".cpp", ".h")):
            problems += functions(path, text)
    report(problems, looked_at, "files")


main(sys.argv[1])
