"""Whether each pass, pipeline and option of theirs has a description: described.py HELP, what k2c-opt --help prints."""
import re
import sys


def main(path):
    with open(path, encoding="utf8") as file:
        lines = file.read().split("\n")
    begin, end = lines.index("    Passes:"), lines.index("    Pass Pipelines:")
    pipelines = next(number for number in range(end + 1, len(lines)) if not lines[number].startswith("      "))
    listed = [line for line in lines[begin:pipelines] if line.lstrip().startswith(("--", "="))]
    bare = [line for line in listed if not re.search(r" - +\S", line)]
    sys.exit("no description:\n" + "\n".join(bare) if bare else print(len(listed), "are described") if listed else 1)


main(sys.argv[1])
