"""check_onnx_mutants.py FILE MODELS [FIRST:END]: mutants of ONNX models are refused, or compute what ONNX Runtime did.

FILE has a mutant a line (test/Onnx/check_mutants.py --store): `model`, the folder of MODELS that it was made of; `what`
was changed; `splices`, [offset, bytes removed, bytes instead in base64] that make its model.onnx of that model's; and
`rows`, ONNX Runtime's logits after the last id of some prompts, with the distance that is `tolerated`. A mutant that is
`legal`, of the same family with other numbers, may not be refused. FIRST:END takes some of the lines.
"""
import base64
import json
import os
import shutil
import sys
import tempfile

from bundles import Failure, compile_into
from golden import Report, distance

LIMITS = ("--max-context", "64", "--step-tokens", "16")


def spliced(data, splices):
    """The bytes with each of the splices, which are in order and of the original, put in."""
    out, at = bytearray(), 0
    for offset, removed, instead in splices:
        out += data[at:offset] + base64.b64decode(instead)
        at = offset + removed
    return bytes(out + data[at:])


def write(folder, models, mutant):
    """The mutant as a file in `folder`, with what its model keeps beside it."""
    source = os.path.join(models, mutant["model"])
    with open(os.path.join(source, "model.onnx"), "rb") as file:
        data = spliced(file.read(), mutant["splices"])
    path = os.path.join(folder, "model.onnx")
    with open(path, "wb") as file:
        file.write(data)
    beside = os.path.join(source, "model.onnx.data")
    if os.path.exists(beside):
        shutil.copy(beside, folder)
    return path


def check_mutant(report, folder, models, mutant):
    path, title = write(folder, models, mutant), f"{mutant['model']}: {mutant['what']}"
    try:
        bundle = compile_into(os.path.join(folder, "bundle"), path, *LIMITS)
    except Failure as failure:
        message = str(failure).split("k2c: error: ")[-1]
        named = "exit 1: k2c: error: " in str(failure) and "model.onnx" in message
        report.check(named and not mutant.get("legal"), f"{title}: refused: {message[len(folder) + 1:][:120]}")
        return
    for prompt in mutant["rows"]:
        off = distance(bundle.logits(prompt["ids"]), [prompt["logits"]])
        report.within(off, mutant["tolerated"], f"{title}: logits from ONNX Runtime's")


def main(file, models, some=":"):
    with open(file) as lines:
        mutants = [json.loads(line) for line in lines]
    first, end = (int(part) if part else None for part in some.split(":"))
    report = Report(f"mutants {some} of {file}")
    for mutant in mutants[first:end]:
        with tempfile.TemporaryDirectory() as folder:
            check_mutant(report, folder, models, mutant)
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"check_onnx_mutants.py: {failure}")
