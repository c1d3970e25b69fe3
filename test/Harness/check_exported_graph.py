"""check_exported_graph.py CHECKPOINT...: an export in ONNX Runtime computes what the checkpoint's reference does.

onnx.checker takes the file. Over all positions of the golden results, ONNX Runtime's logits on the processor are at
most 4 times as far from the reference in float64 as the reference's own float32, and its greedy ids, a token at a time
behind a cache, are the reference's. A prompt that is read in pieces has the logits of one that is read whole.
"""
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx

sys.path.append(str(Path(__file__).resolve().parents[1] / "Onnx"))

from bundles import Failure  # noqa: E402
from check_export import export  # noqa: E402
from check_golden import LogitErrors  # noqa: E402
from golden import Golden, Precision, Report, best, distance  # noqa: E402
from make.session import Session  # noqa: E402

PIECES_BOUND = 1e-4  # between logits whose sums have two orders
GREEDY = 12  # ids, of which a golden file has more


def in_pieces(session, ids):
    """Logits of a prompt that is read in two pieces and a token."""
    rows, cache, before = [], session.empty(1), 0
    for end in sorted({len(ids) // 2, len(ids) - 1, len(ids)} - {0}):
        logits, cache = session.call(np.array([ids[before:end]]), cache, before)
        rows.extend(logits[0])
        before = end
    return rows


def greedy(session, ids, count):
    logits, cache = session.call(np.array([ids]), session.empty(1), 0)
    found = [int(best(list(logits[0][-1])))]
    while len(found) < count:
        logits, cache = session.call(np.array([found[-1:]]), cache, len(ids) + len(found) - 1)
        found.append(int(best(list(logits[0][-1]))))
    return found


def check(checkpoint):
    report = Report(f"exported graph of {checkpoint}")
    golden, precision, errors = Golden(checkpoint), Precision(checkpoint), LogitErrors()
    with tempfile.TemporaryDirectory() as folder:
        export(checkpoint, folder)
        onnx.checker.check_model(os.path.join(folder, "model.onnx"), full_check=True)
        session = Session(None, Path(folder))
        for prompt in golden.prompts:
            name, ids = prompt["name"], prompt["ids"]
            rows = session.call(np.array([ids]), session.empty(1), 0)[0][0]
            some = [rows[position] for position in precision.positions(name)]
            errors.add(some, precision.rows(f"{name}.float32"), precision.rows(f"{name}.own"))
            report.within(distance(in_pieces(session, ids), rows), PIECES_BOUND, f"{name}: logits in pieces")
            report.equal(greedy(session, ids, GREEDY), prompt["greedy"]["ids"][:GREEDY], f"{name}: greedy ids")
    errors.check(report)
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(max(map(check, sys.argv[1:])))
    except Failure as failure:
        sys.exit(f"check_exported_graph.py: {failure}")
