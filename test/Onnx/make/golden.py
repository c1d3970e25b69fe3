"""golden.json: what the reference computes in float64 for a model, and how far ONNX Runtime in float32 is from it.

  prompts   ids; `logits`, those after the last token in float64; `greedy`, the ids that float64 chooses, and
            `least_margin`, the smallest gap between the best two logits on that way
  distance  largest absolute difference of logits over all positions of all prompts and all greedy steps, of ONNX
            Runtime's float32 from transformers in float64 and in float32, and of the latter from float64; `same_greedy`
"""
import json
from contextlib import nullcontext

import numpy as np
import torch
import transformers
from recipe.reference import InFloat64, default_dtype

DIGITS = 7


class Reference:
    """transformers' model with the interface of Session; in float64 when its weights are."""

    def __init__(self, model):
        self.model, self.wide = model, next(model.parameters()).dtype == torch.float64

    @torch.no_grad()
    def call(self, ids, cache):
        arithmetic = InFloat64(refuse=True) if self.wide else nullcontext()
        with arithmetic, default_dtype(torch.float64 if self.wide else torch.float32):
            out = self.model(input_ids=torch.tensor([ids]), past_key_values=cache, use_cache=True)
        return out.logits[0].numpy(), out.past_key_values

    def start(self, ids):
        return self.call(ids, None)

    def step(self, token, state):
        return self.call([token], state)


def follow(runner, ids, count, forced=None):
    """Logits of the prompt and of `count` greedy steps, and the ids; the ids of another are followed where forced."""
    logits, state = runner.start(ids)
    rows, chosen = [logits], []
    for i in range(count):
        chosen.append(int(rows[-1][-1].argmax()))
        logits, state = runner.step(forced[i] if forced else chosen[-1], state)
        rows.append(logits)
    return np.concatenate(rows), chosen


def least_margin(rows):
    """The smallest gap between the best two logits of any row."""
    best = np.partition(rows, -2, axis=-1)[:, -2:]
    return (best[:, 1] - best[:, 0]).min()


def number(value):
    return float(f"{float(value):.{DIGITS}g}")


def measure(prompts, exact, single, session, count):
    """(prompts of golden.json, distances); `session` may be None, when ONNX Runtime does not take the model."""
    described, worst, same = [], {}, True
    for name, ids in prompts.items():
        reference, greedy = follow(exact, ids, count)
        described.append({"name": name, "ids": ids, "logits": [number(v) for v in reference[len(ids) - 1]],
                          "greedy": greedy, "least_margin": number(least_margin(reference[len(ids) - 1:-1]))})
        rows, _ = follow(single, ids, count, greedy)
        found = {"transformers_float32_from_float64": np.abs(rows - reference).max()}
        if session:
            theirs, chosen = follow(session, ids, count, greedy)
            found["float64"], found["float32"] = np.abs(theirs - reference).max(), np.abs(theirs - rows).max()
            same &= chosen == greedy
        worst = {key: max(worst.get(key, 0.0), float(value)) for key, value in found.items()}
    distances = {key: number(value) for key, value in worst.items()}
    return described, {**distances, **({"same_greedy": same} if session else {})}


def golden(head, prompts, exact, single, session, count=12):
    described, distance = measure(prompts, Reference(exact), Reference(single), session, count)
    versions = f"transformers {transformers.__version__}, float64, torch {torch.__version__}"
    return {"format": 1, **head, "reference": versions, "new_tokens": count, "distance": distance,
            "prompts": described}


def dump(document):
    """JSON with a line for each item of the outer lists."""
    prompts = ",\n  ".join(json.dumps(p) for p in document["prompts"])
    rest = {k: v for k, v in document.items() if k != "prompts"}
    return json.dumps(rest, indent=1)[:-2] + ',\n "prompts": [\n  ' + prompts + "\n ]\n}\n"
