"""check_export.py CHECKPOINT...: what k2c exports as ONNX is the checkpoint.

The program that is compiled from the export, in f32, prints what the checkpoint's prints: every logit of every golden
prompt, character by character. Of a checkpoint in float32 its weights are the same files; others are widened.
"""
import json
import os
import sys
import tempfile

from bundles import Failure, compile_into, compiled, output
from golden import Golden, Report


def export(checkpoint, folder):
    output(["k2c", "export", checkpoint, "--format", "onnx", "-o", folder])


def blobs(bundle):
    """The names of the files of weights, which are hashes of what they were made from."""
    return sorted(name for name in os.listdir(os.path.join(bundle.folder, "weights")) if name.endswith(".bin"))


def check(checkpoint):
    report = Report(f"export of {checkpoint}")
    with open(os.path.join(checkpoint, "config.json")) as file:
        stored = json.load(file).get("torch_dtype")
    with tempfile.TemporaryDirectory() as folder:
        exported = os.path.join(folder, "onnx")
        export(checkpoint, exported)
        mine, theirs = compile_into(os.path.join(folder, "bundle"), exported), compiled(checkpoint)
        for prompt in Golden(checkpoint).prompts:
            command = ("logits", "--prompt-ids", ",".join(map(str, prompt["ids"])), "--all", "--json")
            report.check(mine.text(*command) == theirs.text(*command), f"{prompt['name']}: every logit")
        if stored == "float32":
            report.equal(blobs(mine), blobs(theirs), "files of weights")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(max(map(check, sys.argv[1:])))
    except Failure as failure:
        sys.exit(f"check_export.py: {failure}")
