"""check_exported_checkpoint.py FOLDER... [-- k2c compile options]: what k2c export makes of an ONNX file is its model.

The program that is compiled from the exported checkpoint prints, for every prompt of the golden.json beside the file,
the same logits as the one that is compiled from the file, byte for byte. Where the file was exported from a checkpoint
of test/EndToEnd/oracle, every tensor has the name, shape and numbers of that checkpoint's, which the file holds widened
to float32, and the model form is the same text but for the module's name, the stored types, and the formula of a few
pairs' angles, which no graph tells. A FOLDER that is such a checkpoint is exported as ONNX first, with its config.json,
which tells the formula.
"""
import itertools
import json
import os
import re
import sys
import tempfile

from bundles import Failure, compiled, form, output, split_options
from golden import Report, read_safetensors, same_bits

ORACLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEnd", "oracle")


def model_form(source, knows_formula):
    """The model form without what a file and its checkpoint have of their own."""
    text = form(source, "model", "--max-context", "64")
    text = re.sub(r"^module @\S+", "module", text, flags=re.MULTILINE)
    if not knows_formula:  # the angles of a few pairs are those of more than one
        text = re.sub(r"scaling = #nn\.\w+<[^>]*>>( : tensor<\d+x2x[1-8]x)", r"scaling = any>\1", text)
    return re.sub(r"^(  nn\.weights .*x)bf16>", r"\1f32>", text, flags=re.MULTILINE)


def tensors_of(folder):
    """name -> (shape, floats) of all files of a checkpoint."""
    tensors = {}
    for name in sorted(os.listdir(folder)):
        if name.startswith("model") and name.endswith(".safetensors"):
            tensors.update(read_safetensors(os.path.join(folder, name)))
    return tensors


def check_tensors(report, exported, checkpoint):
    ours, theirs = tensors_of(exported), tensors_of(checkpoint)
    report.equal(sorted(set(ours) - set(theirs)), [], "tensors that the checkpoint has not")
    # Layers of multi-token prediction and tables of angles, which some checkpoints have beside, are no part of a graph.
    layers = 1 + max(int(found[1]) for found in (re.match(r"model\.layers\.(\d+)\.", name) for name in ours) if found)
    extra = (f"model.layers.{layers}.", "rotary_emb.inv_freq")
    left = [name for name in set(theirs) - set(ours) if not any(part in name for part in extra)]
    report.equal(sorted(left), [], "tensors of the checkpoint that are left out")
    for name in sorted(set(ours) & set(theirs)):
        same = ours[name][0] == theirs[name][0] and ours[name][1].tobytes() == theirs[name][1].tobytes()
        report.check(same, f"{name} has the checkpoint's shape and numbers")


def check_checkpoint(report, exported, checkpoint, knows_formula):
    check_tensors(report, exported, checkpoint)
    ours, theirs = (model_form(folder, knows_formula).split("\n") for folder in (exported, checkpoint))
    pairs = itertools.zip_longest(ours, theirs)
    report.equal([pair for pair in pairs if len(set(pair)) > 1], [], "lines of the model form that differ")


def export(folder, name, exported):
    output(["k2c", "export", folder, "--format", name, "-o", exported])
    return exported


def check(folder, options):
    report = Report(f"checkpoint of {folder} {' '.join(options)}")
    with open(os.path.join(folder, "golden.json")) as file:
        document = json.load(file)
    with tempfile.TemporaryDirectory() as scratch:
        exported = os.path.join(scratch, "exported")
        if not os.path.exists(os.path.join(folder, "model.onnx")):
            onnx = export(folder, "onnx", os.path.join(scratch, "onnx"))
            check_checkpoint(report, export(onnx, "hf", exported), folder, knows_formula=True)
            return report.finish()
        ours = compiled(export(folder, "hf", exported), *options)
        same_bits(report, ours, compiled(folder, *options), document["prompts"], "the file's")
        checkpoint = os.path.normpath(os.path.join(ORACLE, document["checkpoint"]))
        if os.path.isdir(checkpoint):
            check_checkpoint(report, exported, checkpoint, knows_formula=False)
    return report.finish()


def main(arguments):
    folders, options = split_options(arguments)
    return max([check(folder, options) for folder in folders])


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"check_exported_checkpoint.py: {failure}")
