"""check_transformers.py FOLDER...: transformers loads the checkpoint that k2c export makes of an ONNX file.

No tensor is missing, left over or of another shape, and in float32 the last logits of the prompts of golden.json are at
most 4 times as far from float64 as those of the model that was exported. Needs torch and transformers.
"""
import json
import os
import sys
import tempfile
import warnings

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
warnings.filterwarnings("ignore")

import torch
from transformers import AutoModelForCausalLM

from bundles import Failure, output
from golden import OWN_ERRORS, Report, distance, own_error


def check(folder):
    report = Report(f"transformers on the export of {folder}")
    with open(os.path.join(folder, "golden.json")) as file:
        document = json.load(file)
    with tempfile.TemporaryDirectory() as scratch:
        exported = os.path.join(scratch, "exported")
        output(["k2c", "export", folder, "--format", "hf", "-o", exported])
        model, loaded = AutoModelForCausalLM.from_pretrained(
            exported, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager",
            output_loading_info=True)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        report.equal(sorted(loaded[kind]), [], kind.replace("_", " "))
    model.eval()
    for prompt in document["prompts"]:
        with torch.no_grad():
            rows = model(torch.tensor([prompt["ids"]])).logits[0, -1:].tolist()
        off = distance(rows, [prompt["logits"]])
        report.within(off, OWN_ERRORS * own_error(document),
                      f"{prompt['name']}: error of the last logits against float64")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(max([check(folder) for folder in sys.argv[1:]]))
    except Failure as failure:
        sys.exit(f"check_transformers.py: {failure}")
