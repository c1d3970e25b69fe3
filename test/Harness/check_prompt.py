"""check_prompt.py CHECKPOINT TEXT ID,ID,...: the tokenizer in the bundle of CHECKPOINT reads TEXT as these ids."""
import sys

from bundles import Failure, compiled
from golden import Report


def check(source, text, ids):
    report = Report(f"prompt of {source}")
    done = compiled(source).json("generate", "--prompt", text, "-n", 1, "--ignore-eos")
    report.equal(done["prompt_ids"], [int(i) for i in ids.split(",")], "prompt ids")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(check(*sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"check_prompt.py: {failure}")
