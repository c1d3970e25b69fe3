"""check_onnx.py FOLDER... [-- k2c compile options]: a compiled ONNX model computes what the golden.json beside it says.

golden.json (test/Onnx/make/golden.py) has the logits of transformers in float64 and how far ONNX Runtime's and
transformers' float32 are from it. The program's logits after a prompt are at most 4 times as far as the farther of the
two, and its greedy ids are the reference's. A model of a checkpoint of test/EndToEnd/oracle has the bits of the program
that is compiled from the checkpoint: every logit of a prompt, read whole.
"""
import json
import os
import sys

from bundles import Failure, compiled, split_options
from golden import OWN_ERRORS, Report, distance, own_error, same_bits

ORACLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd", "oracle")


def check_prompts(report, bundle, document):
    for prompt in document["prompts"]:
        name, ids, greedy = prompt["name"], prompt["ids"], prompt["greedy"]
        off = distance(bundle.logits(ids), [prompt["logits"]])
        report.within(off, OWN_ERRORS * own_error(document), f"{name}: error of the last logits against float64")
        report.equal(bundle.generate(ids, len(greedy))["ids"], greedy, f"{name}: {len(greedy)} greedy ids")


def check(folder, options):
    report = Report(f"{folder} {' '.join(options)}")
    with open(os.path.join(folder, "golden.json")) as file:
        document = json.load(file)
    bundle = compiled(folder, *options)
    check_prompts(report, bundle, document)
    checkpoint = os.path.normpath(os.path.join(ORACLE, document["checkpoint"]))
    if os.path.isdir(checkpoint):
        same_bits(report, bundle, compiled(checkpoint, *options), document["prompts"], os.path.basename(checkpoint))
    return report.finish()


def main(arguments):
    folders, options = split_options(arguments)
    return max([check(folder, options) for folder in folders])


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"check_onnx.py: {failure}")
