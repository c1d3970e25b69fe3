"""check_onnx.py FOLDER... [-- k2c compile options]: a compiled ONNX model computes what the golden.json beside it says.

golden.json (test/Onnx/make/golden.py) has the logits of transformers in float64 and how far ONNX Runtime's and
transformers' float32 are from it. The program's logits after a prompt are at most 4 times as far as the farther of the
two, and its greedy ids are the reference's. A model of a checkpoint of test/EndToEnd/oracle has the bits of the program
that is compiled from the checkpoint: every logit of a prompt, read whole.
"""
import json
import os
import sys

from bundles import Failure, compiled
from golden import Report, distance

OWN_ERRORS = 4  # times the error of a reference's float32 against float64
ORACLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd", "oracle")


def check_prompts(report, bundle, document):
    distances = document["distance"]
    own = max(distances.get("float64", 0.0), distances["transformers_float32_from_float64"])
    for prompt in document["prompts"]:
        name, ids, greedy = prompt["name"], prompt["ids"], prompt["greedy"]
        off = distance(bundle.logits(ids), [prompt["logits"]])
        report.within(off, OWN_ERRORS * own, f"{name}: error of the last logits against float64")
        report.equal(bundle.generate(ids, len(greedy))["ids"], greedy, f"{name}: {len(greedy)} greedy ids")


def check_bits(report, bundle, checkpoint, options, document):
    """The same text as the program that is compiled from the checkpoint prints."""
    theirs = compiled(checkpoint, *options)
    for prompt in document["prompts"]:
        command = ("logits", "--prompt-ids", ",".join(map(str, prompt["ids"])), "--all", "--json")
        report.check(bundle.text(*command) == theirs.text(*command),
                     f"{prompt['name']}: logits have the bits of {os.path.basename(checkpoint)}")


def check(folder, options):
    report = Report(f"{folder} {' '.join(options)}")
    with open(os.path.join(folder, "golden.json")) as file:
        document = json.load(file)
    bundle = compiled(folder, *options)
    check_prompts(report, bundle, document)
    checkpoint = os.path.normpath(os.path.join(ORACLE, document["checkpoint"]))
    if os.path.isdir(checkpoint):
        check_bits(report, bundle, checkpoint, options, document)
    return report.finish()


def main(arguments):
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    return max([check(folder, arguments[cut + 1:]) for folder in arguments[:cut]])


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"check_onnx.py: {failure}")
