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


def write_perplexity(path, model):
    """For path/text.txt; `standard_error`: of the mean, from the errors of the tokens."""
    config, tensors = read_checkpoint(model)
    ids = Tokenizer.from_file(str(model / "tokenizer.json")).encode((path / "text.txt").read_text()).ids
    precisions = (torch.float64, torch.float32, torch.bfloat16)
    double, single, half = (token_losses(config, tensors, ids, precision) for precision in precisions)
    error = lambda of, exact: float((of - exact).pow(2).mean().sqrt()) / math.sqrt(len(exact))
    document = {
        "format": 1, "reference": NAME, "ids": ids,
        "nll": {"float64": float(double.mean()), "float32": float(single.mean()), "bfloat16": float(half.mean())},
        "standard_error": {"float32": error(single, double), "bfloat16": error(half, single)},
    }
    (path / "perplexity.json").write_text(dump(document))
    print(f"{path.name}: nll {json.dumps(document['nll'])}, standard errors {json.dumps(document['standard_error'])}")
