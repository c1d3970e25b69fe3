"""precision.json and precision.safetensors: one set of logits in float64, float32 and bfloat16.

Tensors of a prompt, rows by position:  NAME.float32   logits of the reference in float32
                                        NAME.own       float64 minus float32: the reference's own error, negated
                                        NAME.bfloat16  logits in bfloat16 with the routes of float32
batch.float32 and batch.own are those after the last token of each row of the batch.
"""
import json

import torch
from safetensors.torch import load_file, save_file

from recipe.checkpoints import read_checkpoint
from recipe.reference import NAME, Runner
from recipe.results import dump, routes_of

MOST = 40  # a longer prompt gives about 24 of its positions


def positions(count):
    step = 1 if count <= MOST else count // 24
    return sorted({*range(step - 1, count, step), count - 1})


def logits_of(runner, ids, routes=None):
    """(logits [position, vocabulary], layer -> experts of each token)"""
    with runner.recording() as events, runner.forcing(routes):
        logits, _ = runner.start(torch.tensor([ids]))
    return logits[0], {layer: [set(t[0]) for t in tokens] for layer, tokens in routes_of(events).items()}


def different(a, b):
    """How many choices of `a` are not choices of `b`."""
    return sum(len(x - y) for layer in a for x, y in zip(a[layer], b[layer]))


def precision(path):
    """(document, tensors) of a folder with golden.*"""
    config, tensors = read_checkpoint(path)
    golden = json.loads((path / "golden.json").read_text())
    stored = load_file(path / "golden.safetensors")
    single, double, half = (Runner(config, tensors, t) for t in (torch.float32, torch.float64, torch.bfloat16))
    document = {"format": 1, "reference": NAME, "float32_weights": half.kept, "prompts": []}
    out = {}
    for prompt in golden["prompts"]:
        name, ids, routes = prompt["name"], prompt["ids"], prompt["routes"] or None
        f32, chosen = logits_of(single, ids)
        f64, chosen64 = logits_of(double, ids)
        bf16, _ = logits_of(half, ids, routes)
        free, chosen16 = logits_of(half, ids)
        golden_choice = {layer: [set(t) for t in r["experts"]] for layer, r in prompt["routes"].items()}
        if chosen != golden_choice or chosen64 != golden_choice:
            raise RuntimeError(f"{path.name}, {name}: float64 takes {different(chosen64, chosen)} other experts")
        if not torch.allclose(f32[-1], stored[f"{name}.last_logits"], rtol=0, atol=1e-4):
            raise RuntimeError(f"{path.name}, {name}: golden.safetensors holds other logits")
        rows = positions(len(ids))
        out[f"{name}.float32"] = f32[rows].clone()
        out[f"{name}.own"] = (f64[rows] - f32[rows].double()).float()
        out[f"{name}.bfloat16"] = bf16[rows].clone()
        choices = sum(len(t) for tokens in chosen.values() for t in tokens)
        document["prompts"].append({"name": name, "positions": rows, "choices": choices,
                                    "bfloat16_choices_that_differ": different(chosen16, chosen)})
    batch = torch.tensor(golden["batch"]["ids"])
    last = single.start(batch)[0][:, -1]
    out["batch.float32"] = last.clone()
    out["batch.own"] = (double.start(batch)[0][:, -1] - last.double()).float()
    return document, out


def rms_error(document, out, kind):
    """The root mean square over all prompts of what `kind` gives for the name of one."""
    every = torch.cat([kind(out, p["name"]).flatten().double() for p in document["prompts"]])
    return float(every.pow(2).mean().sqrt())


def own_error(out, name):
    return out[f"{name}.own"]


def half_error(out, name):
    return out[f"{name}.bfloat16"].float() - out[f"{name}.float32"]


def write_precision(path):
    document, out = precision(path)
    (path / "precision.json").write_text(dump(document))
    save_file(out, path / "precision.safetensors")
    report(path.name, out, document)


def verify_precision(path):
    """Compares precision.* of a folder with what would be written: positions and kept tensors exactly, float32 within
    1e-4, its own error within a factor of 2, the error of bfloat16 within a tenth of itself and its choices within one
    of a hundred of all (another CPU rounds elsewhere)."""
    document, out = precision(path)
    stored, tensors = json.loads((path / "precision.json").read_text()), load_file(path / "precision.safetensors")
    differ = lambda doc: sum(p.pop("bfloat16_choices_that_differ") for p in doc["prompts"])
    mine, theirs = differ(stored), differ(document)
    choices = sum(p["choices"] for p in document["prompts"])
    same = stored == document and {k: v.shape for k, v in tensors.items()} == {k: v.shape for k, v in out.items()}
    worst = own = half = float("inf")
    if same:
        single = [k for k in out if k.endswith(".float32")]
        worst = float(torch.cat([(tensors[k] - out[k]).abs().flatten() for k in single]).max())  # NaN when one is
        own, half = (rms_error(stored, tensors, kind) / rms_error(document, out, kind)
                     for kind in (own_error, half_error))
    good = (worst <= 1e-4 and 0.5 <= own <= 2 and 0.9 <= half <= 1.1 and abs(mine - theirs) <= 0.01 * choices)
    print(f"{path.name}: precision {'as made' if good else 'DIFFERS'}: positions {'equal' if same else 'differ'}, "
          f"float32 within {worst:.2g}, its error {own:.3f} times, bfloat16's {half:.3f} times, "
          f"{mine} and {theirs} of {choices} choices differ", flush=True)
    return good


def report(name, out, document):
    own = rms_error(document, out, own_error)
    worst = max(float(out[f"{p['name']}.own"].abs().max()) for p in document["prompts"])
    half = rms_error(document, out, half_error)
    differ = sum(p["bfloat16_choices_that_differ"] for p in document["prompts"])
    print(f"{name}: float32 is off by {own:.2g} (root mean square), {worst:.2g} (largest); bfloat16 by {half:.3g}, "
          f"{differ} of {sum(p['choices'] for p in document['prompts'])} choices; "
          f"{len(document['float32_weights'])} tensors kept in float32", flush=True)
