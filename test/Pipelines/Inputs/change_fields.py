"""Changes each field of the plan and of the limits in the planned form of a model, drives the text on to the runtime
form, and prints for each what came of it: "refused: WHY", or "changed"; ends with exit code 1 when a change leaves the
rest of the module as it is.

usage: change_fields.py MODEL
"""
import re
import subprocess
import sys

ATTRIBUTES = re.compile(r"(dist\.plan = #dist\.plan|nn\.limits = #nn\.limits)<[^<>]*>")


def driven(text):
    """(runtime form, first error) of a planned form."""
    done = subprocess.run(["k2c-opt", "-", "--distributed-form", "--scheduled-form", "--runtime-form"], input=text,
                          capture_output=True, text=True, check=False, timeout=60)
    errors = re.findall(r"error: (.*)", done.stderr)
    return done.stdout, errors[0] if done.returncode else None


def changes(text):
    """(what it is, the text with it)."""
    for field, values in (("expanded_from", (-1, 0, 5)), ("token", (1, 100)), ("seq", (1, 7)), ("context", (1, 63))):
        found = re.search(rf"\b{field} = (-?\d+)", text)
        for value in values:
            if value != int(found[1]):
                yield f"{field} = {value}", text[:found.start(1)] + str(value) + text[found.end(1):]
    for layout in ("dp=2", "ep=1", "pp=1,dp=1", "pp=2", "experts=2"):
        yield f'layout = "{layout}"', text.replace('layout = "dp=1"', f'layout = "{layout}"')
    end = re.search(r"dist\.plan<[^<>]*", text).end()
    passes = ("fusion", "launch-groups", "buffer-reuse", "prefetch-weights", "x")
    for field in (*(f'without = ["{name}"]' for name in passes),
                  "tile_choice = 1", "route_limit = 1", "locality_penalty = 0.5", "halves_from = 4",
                  "stages = [0, 1, 2]"):
        yield field, f"{text[:end]}, {field}{text[end:]}"


def main(model):
    text = subprocess.run(["k2c", "compile", model, "-o", "-", "--emit", "planned", "--target", "x86-64-v3",
                           "--compute", "f32"],
                          capture_output=True, text=True, check=True, timeout=60).stdout
    sound, _ = driven(text)
    same = []
    for change, changed in changes(text):
        module, error = driven(changed)
        print(f"{change}: {'refused: ' + error if error else 'changed'}")
        if not error and ATTRIBUTES.sub("", module) == ATTRIBUTES.sub("", sound):
            same.append(change)
    sys.exit(f"these change nothing: {', '.join(same)}" if same else 0)


main(sys.argv[1])
