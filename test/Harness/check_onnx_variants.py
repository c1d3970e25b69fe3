"""check_onnx_variants.py VARIANT.onnx MODEL: another spelling of a graph is the model that it was made of.

MODEL is a folder with a model.onnx whose weights are in model.onnx.data; the variant's are in that file, too. Its model
form is the model's but for the module's name, and every logit of a prompt has the bits of the model's program.
"""
import os
import re
import shutil
import sys
import tempfile

from bundles import Failure, compiled, form
from golden import Report

PROMPT = "11,100,3,51,7,7,129,64,33,12,80,9"


def unnamed(text):
    return re.sub(r'module @(\w+|"[^"]*")', "module @model", text)


def check(variant, source):
    report = Report(f"{variant} as {source}")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(variant, os.path.join(folder, "model.onnx"))
        shutil.copy(os.path.join(source, "model.onnx.data"), folder)
        report.check(unnamed(form(folder, "model")) == unnamed(form(source, "model")), "the model form")
        mine, theirs = (compiled(path).text("logits", "--prompt-ids", PROMPT, "--all", "--json")
                        for path in (folder, source))
    report.check(mine == theirs, f"logits of {PROMPT}: the same bits")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(check(*sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"check_onnx_variants.py: {failure}")
