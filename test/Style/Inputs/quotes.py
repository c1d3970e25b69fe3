"""No path of a RUN line stands in quotes: lit quotes it where the folder's name has a space, and two quotes end one.

usage: quotes.py ROOT
"""
import re
import sys

from tree import files, lines, report

PATH = re.compile(r"%(k2c_src|k2c_obj|harness|objects|chromium|poison|python|[tSsp](?![a-z_]))")
OWN = "test/Style/quotes.test"  # plants what is looked for
TESTS = (".test", ".mlir", ".long", ".sweep")
# In this order: a command in double quotes, which has quotes of its own; an escaped character; a quote; a path.
TOKEN = re.compile(r"\\.|\$\([^()]*\)|[\"']|" + PATH.pattern)


def quoted_paths(text):
    """Paths of a shell command that stand in quotes."""
    quote, found = "", []
    for token in TOKEN.finditer(text):
        word = token[0]
        if word in ("'", '"'):
            quote = "" if quote == word else quote or word
        elif quote and PATH.fullmatch(word):
            found.append(word)
    return found


def main(root):
    problems, commands = [], 0
    for path in files(root, *TESTS):
        if path == OWN:
            continue
        for number, line in enumerate(lines(root, path), 1):
            command = re.match(r"\s*(?://|#) RUN: (.*)", line)
            commands += bool(command)
            for word in quoted_paths(command[1]) if command else ():
                problems.append(f"{path}:{number}: {word} stands in quotes; end them first, as in %k2c_src'/docs/*'")
    report(problems, commands, "commands")


main(sys.argv[1])
