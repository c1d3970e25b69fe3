"""What k2c makes of a model and what ONNX Runtime computes on the same file: the same, or k2c refuses it.

Both get two short prompts with a token more, and one of 33 ids; ONNX Runtime takes that one whole where the model
keeps no cache, otherwise in pieces of 20, 12 and 1, so that a wrong cache, mask or position shows.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "Harness"))  # it has a mutations.py, too

from bundles import Bundle, Failure, json_file, objects  # noqa: E402
from golden import OWN_ERRORS, own_error  # noqa: E402, F401
from make.session import Session, runnable  # noqa: E402
from variants import NEXT, PROMPTS, head_size  # noqa: E402

LONG = [11, 100, 3, 51, 7, 7, 129, 64, 33, 12, 80, 9, 71, 5, 77, 23, 130, 4, 8, 61, 5, 90, 91, 2, 118, 46, 99, 101, 17,
        42, 57, 60, 13]
PIECES = (20, 12, 1)
SECONDS = 100  # that a compile may take


def golden_of(path):
    """golden.json beside a model"""
    return json.loads((path.parent / "golden.json").read_text())


def session_of(model):
    session = Session(runnable(model))
    session.head = head_size(model)
    return session


def in_pieces(session):
    """Logits of LONG, a row for each position."""
    if not session.past:
        return session.start(LONG)[0]
    rows, cache, before = [], session.empty(1), 0
    for size in PIECES:
        logits, cache = session.call(np.array([LONG[before:before + size]]), cache, before)
        rows.append(logits[0])
        before += size
    return np.concatenate(rows)


def expected(model):
    """Rows of logits of the prompts, by ONNX Runtime. The last is None where the changed model takes no pieces."""
    session = session_of(model)
    first, second = session.batch(PROMPTS, NEXT)
    rows = [np.concatenate([a, b[-1:]]) for a, b in zip(first, second)]
    try:
        return [*rows, in_pieces(session)]
    except Exception:  # ONNX Runtime's own type; shapes that fit the first prompts alone
        return [*rows, None]


def ids():
    return [[*prompt, token] for prompt, token in zip(PROMPTS, NEXT)] + [LONG]


def k2c_compile(path, output, *options):
    """(standard output of k2c compile, "") or (None, why it refuses the file)"""
    limits = ("--max-context", "64", "--step-tokens", "16")
    command = ["k2c", "compile", str(path), "-o", output, "--quiet", "--compute", "f32", *limits, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode == 1 and done.stderr.startswith("k2c: error: "):
        return None, done.stderr.removeprefix("k2c: error: ").strip()
    if done.returncode:
        raise Failure(f"{path}: exit {done.returncode}: {done.stderr}")
    return done.stdout, ""


def form(path, *options):
    """(text of the model form, "") or (None, why k2c refuses the file)"""
    return k2c_compile(path, "-", "--emit", "model", *options)


def computed(path, *options):
    """(rows of logits by k2c, "") or (None, why it refuses the file)"""
    with tempfile.TemporaryDirectory() as folder:
        done, why = k2c_compile(path, f"{folder}/bundle", "--jobs", "1", "--cache-dir", objects(), *options)
        if done is None:
            return None, why
        with json_file(ids()) as file:
            found = Bundle(f"{folder}/bundle").json("logits", "--batch-file", file, "--all")
        return [np.array(one["logits"], np.float64) for one in found], ""  # null, no number, becomes NaN


def largest(rows):
    """The largest finite magnitude."""
    return max(float(np.abs(r[np.isfinite(r)]).max(initial=0.0)) for r in rows if r is not None)


def apart(a, b):
    """The largest difference of two lists of rows, relative to the largest of the second; not numbers equal those."""
    worst = 0.0
    for x, y in zip(a, b):
        if x is None or y is None:
            continue
        if x.shape != y.shape:
            return float("inf")
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        off = np.where(same, 0.0, np.abs(x.astype(np.float64) - y))
        worst = max(worst, float("inf") if np.isnan(off).any() else float(off.max()))
    return worst / max(largest(b), 1e-30)
