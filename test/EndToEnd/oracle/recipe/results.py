"""golden.json and golden.safetensors: what a correct implementation computes, in float32."""
import json
import re

import torch
import torch.nn.functional as F

from recipe.checkpoints import prompts as prompts_of
from recipe.reference import NAME, Runner
from recipe.toy_tokenizer import TEXT

TOP = 8  # how many of the best logits a golden lists
MIN_MARGIN = 1e-3  # smallest gap between the best two logits of a greedy step, where the seed is searched for


def number(x):
    return float(f"{float(x):.7g}")


def routes_of(events):
    """layer -> [(expert ids by falling weight, their weights)] per token."""
    out = {}
    for kind, key, *rest in events:
        if kind != "route":
            continue
        for row, ws in zip(rest[0].tolist(), rest[1].tolist()):
            order = sorted(range(len(row)), key=lambda i: (-ws[i], row[i]))
            out.setdefault(key, []).append(([row[i] for i in order], [number(ws[i]) for i in order]))
    return out


def top_logits(row):
    best = row.topk(TOP)
    return {"argmax": int(best.indices[0]), "margin": number(best.values[0] - best.values[1]),
            "top_ids": best.indices.tolist(), "top_values": [number(v) for v in best.values]}


def describe_prompt(runner, name, ids, count, examined):
    """One prompt's item of golden.json, its logits, its hidden states."""
    row = torch.tensor([ids])
    with runner.recording() as events:
        logits, _ = runner.start(row)
    with runner.recording() as steps:
        tokens, margins = runner.greedy(row, count)
    hidden = {key.replace("layer-1", "embed"): rest[0] for kind, key, *rest in events if kind == "hidden"}
    greedy = {"ids": tokens, "margins": [number(m) for m in margins]}
    if examined:
        greedy["experts"] = {key: [t[0] for t in tokens][-count:] for key, tokens in routes_of(steps).items()}
    item = {
        "name": name,
        "ids": ids,
        "last": top_logits(logits[0, -1]),
        "greedy": greedy,
        "routes": {key: {"experts": [t[0] for t in tokens], "weights": [t[1] for t in tokens]}
                   for key, tokens in routes_of(events).items()},
    }
    if examined:
        item["hidden_norms"] = {key: [number(v) for v in h[0].norm(dim=-1)] for key, h in hidden.items()}
    if len(ids) > 1:
        item["mean_nll"] = number(F.cross_entropy(logits[0, :-1].float(), torch.tensor(ids[1:])))
    if name == "text":
        item["text"] = TEXT
    return item, logits[0], hidden


def describe(runner, prompts, batch, count, examined=True):
    """Everything golden.json and golden.safetensors hold about the outputs."""
    result, tensors = {"prompts": []}, {}
    for name, ids in prompts.items():
        item, logits, hidden = describe_prompt(runner, name, ids, count, examined)
        result["prompts"].append(item)
        tensors[f"{name}.last_logits"] = logits[-1].clone()
        if name == "len7":
            tensors["len7.logits"] = logits.clone()
            tensors.update({f"len7.hidden.{key}": h[0].clone() for key, h in hidden.items()})
    logits, _ = runner.start(torch.tensor(batch))
    result["batch"] = {"ids": batch, "last": [top_logits(r) for r in logits[:, -1]]}
    tensors["batch.last_logits"] = logits[:, -1].clone()
    return result, tensors


def decisions(runner, prompts, count):
    """The discrete outcomes, to compare between two runs."""
    out = {}
    for name, ids in prompts.items():
        row = torch.tensor([ids])
        with runner.recording() as events:
            runner.start(row)
        out[name, "experts"] = {k: [sorted(t[0]) for t in v] for k, v in routes_of(events).items()}
        out[name, "greedy"] = runner.greedy(row, count)[0]
    return out


def jittered(tensors, relative, seed):
    g = torch.Generator().manual_seed(seed)
    jitter = lambda t: t * (1 + relative * torch.randn(t.shape, generator=g))
    return {n: t if n.endswith("inv_freq") else jitter(t) for n, t in tensors.items()}


def other_precisions(runner, golden, ids):
    """Largest differences of the parameters' float64 and bfloat16 from the float32 result. Coarser than precision.json:
    what the model's code does in float32 stays so here, and rotary frequencies become bfloat16."""
    wanted, row = golden["len33.last_logits"], torch.tensor([ids])
    distances = []
    for convert in (runner.model.double, runner.model.bfloat16):
        convert()
        distances.append(number((runner.start(row)[0][0, -1].float() - wanted).abs().max()))
    return distances


def examine(config, tensors, prompts, batch, count):
    """Golden results plus the checks that make them fit for token-for-token comparison."""
    runner = Runner(config, tensors)
    result, golden = describe(runner, prompts, batch, count)
    again, golden_again = describe(runner, prompts, batch, count)
    repeat = result == again and all(torch.equal(golden[k], golden_again[k]) for k in golden)
    cached_equal, drift = True, 0.0
    for item in result["prompts"]:
        cached_equal &= runner.greedy_without_cache(torch.tensor([item["ids"]]), count) == item["greedy"]["ids"]
    for r, ids in enumerate(batch):
        alone, _ = runner.start(torch.tensor([ids]))
        drift = max(drift, float((alone[0, -1] - golden["batch.last_logits"][r]).abs().max()))
    base = decisions(runner, prompts, count)
    stable = all(decisions(Runner(config, jittered(tensors, 1e-5, s)), prompts, count) == base for s in (1, 2))
    spread = max(float(v.abs().max()) for k, v in golden.items() if k.endswith("last_logits"))
    double, half = other_precisions(runner, golden, prompts["len33"])
    used = {}
    for item in result["prompts"]:
        for key, r in item["routes"].items():
            used.setdefault(key, set()).update(e for t in r["experts"] for e in t)
    result["checks"] = {
        "repeatable": repeat,
        "cache_equals_recompute": cached_equal,
        "batch_vs_single_max_abs": number(drift),
        "stable_under_1e-5_weight_jitter": stable,
        "min_greedy_margin": min(m for i in result["prompts"] for m in i["greedy"]["margins"]),
        "distinct_greedy_tokens": len({t for i in result["prompts"] for t in i["greedy"]["ids"]}),
        "experts_used": {k: len(v) for k, v in used.items()},
        "dropped_tokens": 0,
        "max_abs_logit": number(spread),
        "float64_vs_float32_max_abs": double,
        "bfloat16_vs_float32_max_abs": half,
    }
    return result, golden


def reasons_against(result, config):
    """Why a seed is not taken."""
    c = result["checks"]
    experts = next((config[k] for k in ("n_routed_experts", "num_experts", "num_local_experts") if k in config), 0)
    return [name for name, ok in {
        "not repeatable": c["repeatable"],
        "cache differs from recompute": c["cache_equals_recompute"],
        "decisions move under jitter": c["stable_under_1e-5_weight_jitter"],
        "logit margin": c["min_greedy_margin"] >= MIN_MARGIN,
        "too few distinct tokens": c["distinct_greedy_tokens"] >= 20,
        "experts unused": all(2 * n > experts for n in c["experts_used"].values()),
    }.items() if not ok]


def head(checkpoint, seed, rejected):
    """The first fields of golden.json."""
    fields = {"format": 1, "family": checkpoint.family, "seed": seed}
    common = {"storage": checkpoint.storage, "compute": "float32", "reference": NAME}
    if not checkpoint.examined:
        return {**fields, **common, "new_tokens": checkpoint.tokens, "shape": checkpoint.shape, "dims": checkpoint.dims}
    return {**fields, "shape": checkpoint.shape, "scale": 1, "storage": checkpoint.storage,
            "quantisation": checkpoint.quant, "compute": "float32", "reference": NAME, "first_class": True,
            "note": None, "rejected_seeds": rejected, "new_tokens": checkpoint.tokens}


def results(checkpoint, config, tensors, seed):
    """(golden.json without its head, golden.safetensors)."""
    prompts, batch = prompts_of(checkpoint, seed, config["vocab_size"])
    if checkpoint.examined:
        return examine(config, tensors, prompts, batch, checkpoint.tokens)
    return describe(Runner(config, tensors), prompts, batch, checkpoint.tokens, examined=False)


def dump(doc):
    """JSON with one line per innermost list, so that a diff stays readable and the file small."""
    one_line = lambda m: re.sub(r"\s+", " ", m.group(0)).replace("[ ", "[").replace(" ]", "]")
    return re.sub(r"\[[^\[\]{}\"]*\]", one_line, json.dumps(doc, indent=1)) + "\n"
