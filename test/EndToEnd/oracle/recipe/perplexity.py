"""bundled/perplexity.json: the mean of -log p of a text under the bundled model, in three precisions."""
import json
import math

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from recipe.checkpoints import read_checkpoint
from recipe.reference import NAME, Runner
from recipe.results import dump


def token_losses(config, tensors, ids, dtype):
    logits, _ = Runner(config, tensors, dtype).start(torch.tensor([ids]))
    return F.cross_entropy(logits[0, :-1].double(), torch.tensor(ids[1:]), reduction="none")


def perplexity(path, model):
    """The document for path/text.txt; `standard_error`: of the mean, from the errors of the tokens."""
    config, tensors = read_checkpoint(model)
    ids = Tokenizer.from_file(str(model / "tokenizer.json")).encode((path / "text.txt").read_text()).ids
    precisions = (torch.float64, torch.float32, torch.bfloat16)
    double, single, half = (token_losses(config, tensors, ids, precision) for precision in precisions)
    error = lambda of, exact: float((of - exact).pow(2).mean().sqrt()) / math.sqrt(len(exact))
    return {
        "format": 1, "reference": NAME, "ids": ids,
        "nll": {"float64": float(double.mean()), "float32": float(single.mean()), "bfloat16": float(half.mean())},
        "standard_error": {"float32": error(single, double), "bfloat16": error(half, single)},
    }


def write_perplexity(path, model):
    document = perplexity(path, model)
    (path / "perplexity.json").write_text(dump(document))
    print(f"{path.name}: nll {json.dumps(document['nll'])}, standard errors {json.dumps(document['standard_error'])}")


def verify_perplexity(path, model):
    """Compares path/perplexity.json with what would be written: ids exactly, each mean within 1e-6, bfloat16 within
    twice its standard error, these errors within a factor of 2 (another CPU sums differently)."""
    stored, again = json.loads((path / "perplexity.json").read_text()), perplexity(path, model)
    same = all(stored[key] == again[key] for key in ("format", "ids")) and list(stored) == list(again)
    errors = [stored["standard_error"][kind] / again["standard_error"][kind] for kind in again["standard_error"]]
    apart = {kind: abs(stored["nll"][kind] - again["nll"][kind]) for kind in stored["nll"]}
    good = same and all(0.5 <= ratio <= 2 for ratio in errors) and all(
        apart[kind] <= (2 * again["standard_error"][kind] if kind == "bfloat16" else 1e-6) for kind in apart)
    print(f"{path.name}: perplexity {'as made' if good else 'DIFFERS'}: ids {'equal' if same else 'differ'}, "
          f"nll apart by {json.dumps(apart)}, standard errors {', '.join(f'{ratio:.3f}' for ratio in errors)} times",
          flush=True)
    return good
