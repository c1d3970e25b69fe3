#!/usr/bin/env python3
"""A model with weights of few bits, compiled with --widen, is that of its weights as float32.

  check_widened.py MODEL.onnx .. [--as FORMAT ..] [--runtime]

The packed weights of both programs are the same files, and so are the bits of a prompt's logits. With --as the model is
one of float32, whose weights are stored in each of the formats first (store.py); with --runtime its logits are ONNX
Runtime's of the same file, too, as far as float32 is exact.
"""
import argparse
import sys
import tempfile
from pathlib import Path

import onnx

from dequantise import dequantised
from store import FORMATS, stored_as

sys.path.append(str(Path(__file__).resolve().parents[1] / "Harness"))

from bundles import Bundle, Failure, objects, output  # noqa: E402

PROMPT = "11,100,3,51,7,7,129"
NEAR = 2e-5  # of the largest logit


def bundle_of(path, folder, *options):
    output(["k2c", "compile", path, "-o", folder, "--compute", "f32", "--max-context", "64", "--step-tokens", "16",
            "--jobs", "1", "--cache-dir", objects(), *options])
    return Bundle(folder)


def logits(bundle):
    return bundle.text("logits", "--prompt-ids", PROMPT, "--all", "--json")


def off_runtime(model, path):
    """How far ONNX Runtime's logits are from k2c's, relative to the largest."""
    from judge import apart, computed, expected  # noqa: PLC0415: of onnxruntime
    return apart(computed(path, "--widen")[0], expected(model))


def check(path, form, by_runtime):
    """What is wrong with a model in a format; nothing where it is right."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few, wide = folder / "few.onnx", folder / "wide.onnx"
        model = onnx.load(path)
        model = stored_as(model, form) if form else model
        onnx.save(model, few)
        onnx.save(dequantised(onnx.load(few)), wide)
        theirs = bundle_of(wide, folder / "theirs")
        ours = bundle_of(few, folder / "ours", "--widen")
        index = [(folder / which / "weights/index.json").read_text() for which in ("ours", "theirs")]
        if index[0] != index[1]:
            return "packed weights differ"
        if logits(ours) != logits(theirs):
            return "logits differ"
        off = off_runtime(model, few) if by_runtime else 0
        return f"ONNX Runtime's logits are {off:.2g} apart" if off > NEAR else ""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", type=Path, nargs="+")
    p.add_argument("--as", dest="forms", nargs="+", choices=[*FORMATS, "all"], default=[""])
    p.add_argument("--runtime", action="store_true")
    args = p.parse_args()
    wrong = 0
    for path in args.models:
        for form in FORMATS if args.forms == ["all"] else args.forms:
            try:
                why = check(path, form, args.runtime)
            except Failure as failure:
                why = str(failure)
            wrong += bool(why)
            print(f"{path.parent.name} {form}: {why or 'the same'}", flush=True)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
