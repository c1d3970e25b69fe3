#!/usr/bin/env python3
"""Runs the commands that pages show, and writes into a page what they print.

usage: scripts/pages.py [--check] [--build FOLDER] PAGE...      --check compares what is printed and writes nothing

The commands of a page's ```sh blocks are run one by one, in an empty folder with links to this repository's models,
test and to its build folder, whose tools come first. Each must succeed, or fail where its comment says "# fails". A
block of another language right behind a ```sh block is what its last command prints, long lines folded.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BLOCK = re.compile(r"^```sh\n(?P<commands>.*?)^```\n(?P<output>\n```(?P<language>\w+)\n.*?^```\n)?", re.M | re.S)
COLUMNS = 118


def folded(line):
    """`line` as lines of at most COLUMNS, cut behind blanks or commas."""
    indent = len(line) - len(line.lstrip())
    while len(line) > COLUMNS and (cut := max(line.rfind(each, indent + 4, COLUMNS) for each in " ,") + 1) > 0:
        yield line[:cut].rstrip()
        line = " " * (indent + 4) + line[cut:]
    yield line


def printed(command, folder, environment):
    """What a command prints. A command that does not end as it should ends the program."""
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if (done.returncode != 0) != ("# fails" in command):
        sys.exit(f"pages.py: exit code {done.returncode} of\n{command}{done.stderr[:2000]}")
    return done.stdout


def with_outputs(page, folder, environment):
    """The text of a page whose commands were run, and how many they were."""
    count = 0

    def filled(block):
        nonlocal count
        commands = [each for each in re.split(r"(?<!\\)\n", block["commands"]) if each]
        texts = [printed(command + "\n", folder, environment) for command in commands]
        count += len(commands)
        if not block["output"]:
            return block[0]
        lines = [part for line in texts[-1].rstrip("\n").split("\n") for part in folded(line.rstrip())]
        return f"```sh\n{block['commands']}```\n\n```{block['language']}\n" + "\n".join(lines) + "\n```\n"

    return BLOCK.sub(filled, page), count


def main():
    parser = argparse.ArgumentParser(prog="scripts/pages.py", description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare the pages, write nothing")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="the build folder")
    parser.add_argument("pages", nargs="+", metavar="PAGE")
    args = parser.parse_args()
    tools = os.path.join(os.path.abspath(args.build), "bin")
    environment = {**os.environ, "PATH": tools + os.pathsep + os.environ["PATH"]}
    for path in args.pages:
        if not os.path.isfile(path):
            sys.exit(f"pages.py: {path}: there is no such page")
        with open(path, encoding="utf8") as file:
            page = file.read()
        with tempfile.TemporaryDirectory() as folder:
            for linked in ("models", "test"):
                os.symlink(os.path.join(ROOT, linked), os.path.join(folder, linked))
            os.symlink(os.path.abspath(args.build), os.path.join(folder, "build"))
            now, count = with_outputs(page, folder, environment)
        if not count:
            sys.exit(f"pages.py: {path} has no commands in a ```sh block")
        if args.check and now != page:
            sys.exit(f"pages.py: {path} is not what its commands print; run scripts/pages.py {path}")
        if not args.check:
            with open(path, "w", encoding="utf8") as file:
                file.write(now)
        print(f"{path}: {count} commands")


main()
