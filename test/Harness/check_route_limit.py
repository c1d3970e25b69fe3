"""check_route_limit.py CHECKPOINT RANKSxNODES SEEDS BOUND... [--layout LAYOUT]: tokens are bound to nodes by the rule.

CHECKPOINT is a folder, or wide-KIND. A BOUND is M (--route-limit), pX (--locality-penalty), or MpX. The rule is read
here on its own, from scores that need no arithmetic: SEEDS checkpoints are made of the given one, with router weights
of zero and biases drawn anew, so that every token has the experts that the biases choose. Then the given checkpoint
itself, whose tokens choose differently: none is on more nodes than M. Of each, the routes that the bound program
prints, forced in the program of one rank, give the bound program's logits, byte by byte.
"""
import json
import os
import random
import re
import shutil
import struct
import sys
from array import array

from bundles import Failure, compiled, json_file, objects
from check_invariance import draw
from check_ranks import LIMITS, LOCAL, topology
from wide import checkpoint as found

SIXTY_FOURTHS = 64


def ranked(values):
    """Indices by falling value, the lower first among equals."""
    return sorted(range(len(values)), key=lambda i: (-values[i], i))


def best_nodes(choices, allowed, nodes, count, among, top):
    """The `count` best of `nodes`, lists of experts, by the sum of their ceil(top / among) best choices."""
    scores = {}
    for node, experts in enumerate(nodes):
        own = sorted((choices[e] for e in set(experts) & allowed), reverse=True)
        if own:
            scores[node] = sum(own[:-(-top // among)])
    return sorted(scores, key=lambda node: (-scores[node], node))[:count]


def rule(bias, nodes, config, limit, penalty):
    """Experts of a token whose scores are all 1/2, of the model's groups and the bound."""
    top, groups, kept = config["top"], config["groups"], config["kept"]
    choices = [0.5 + value for value in bias]
    size = len(choices) // groups
    scores = [sum(sorted(choices[g * size:(g + 1) * size])[-2:]) for g in range(groups)]
    allowed = {g * size + i for g in ranked(scores)[:kept] for i in range(size)}
    if penalty:
        home, = best_nodes(choices, allowed, nodes, 1, len(nodes), top)
        choices = [c if e in nodes[home] else c - penalty for e, c in enumerate(choices)]
    if limit:
        stay = best_nodes(choices, allowed, nodes, limit, limit, top)
        allowed &= {e for node in stay for e in nodes[node]}
    return sorted([e for e in ranked(choices) if e in allowed][:top])


def read_config(checkpoint):
    with open(os.path.join(checkpoint, "config.json")) as file:
        config = json.load(file)
    return {"top": config["num_experts_per_tok"], "groups": config.get("n_group") or 1,
            "kept": config.get("topk_group") or 1}


def stored(values, dtype):
    """The bytes of numbers that are exact in `dtype`."""
    data = array("f", values).tobytes()
    if dtype == "F32":
        return data
    if dtype != "BF16" or any(data[0::4]) or any(data[1::4]):
        raise Failure(f"biases of a test are not exact in {dtype}")
    return bytes(byte for i, byte in enumerate(data) if i % 4 > 1)


def with_biases(data, rng, biases):
    """The bytes of a file of weights with routers that choose by biases from `rng`, which are added to `biases`."""
    size, = struct.unpack_from("<Q", data)
    for name, tensor in sorted(json.loads(data[8:8 + size]).items()):
        begin, end = (8 + size + offset for offset in tensor.get("data_offsets", (0, 0)))
        if name.endswith(".mlp.gate.weight"):
            data[begin:end] = bytes(end - begin)
        elif found := re.search(r"layers\.(\d+)\.mlp\.gate\.e_score_correction_bias$", name):
            count = tensor["shape"][0]  # these and their sums are exact in float, and no two are equal
            biases[found[1]] = [n / SIXTY_FOURTHS for n in rng.sample(range(-2 * count, 2 * count), count)]
            data[begin:end] = stored(biases[found[1]], tensor["dtype"])
    return data


def biased(checkpoint, seed):
    """A copy of `checkpoint` whose routers choose by their biases alone: (its folder, the biases of each layer)."""
    folder = os.path.join(os.path.dirname(objects()), "checkpoints", f"{os.path.basename(checkpoint)}-biased-{seed}")
    made, biases, rng = f"{folder}.{os.getpid()}", {}, random.Random(seed)
    shutil.copytree(checkpoint, made, ignore=shutil.ignore_patterns("golden*", "precision*"))
    for name in sorted(os.listdir(made)):
        if name.endswith(".safetensors"):
            with open(os.path.join(made, name), "r+b") as file:
                data = with_biases(bytearray(file.read()), rng, biases)
                file.seek(0)
                file.write(data)
    if not os.path.exists(folder):
        os.rename(made, folder)
    shutil.rmtree(made, ignore_errors=True)
    return folder, biases


def nodes_of(bundle, layer):
    """The experts of each node."""
    with open(os.path.join(bundle.folder, "placement.json")) as file:
        ranks = json.load(file)["layers"][layer]["both"]
    machines = bundle.manifest["topology"]
    each = machines["ranks"] // machines["nodes"] // int(re.search(r"\betp=(\d+)|$", bundle.manifest["layout"])[1] or 1)
    return [[e for rank in ranks[first:first + each] for e in rank if e is not None]
            for first in range(0, len(ranks), each)]


def check_forced(one, bound, ids, limit):
    """(the routes of the bound program, its forced logits are its own)."""
    prompt = ",".join(map(str, ids))
    routes = bound.json("routes", "--prompt-ids", prompt, *LOCAL)
    for layer, chosen in routes["layers"].items():
        nodes = nodes_of(bound, layer)
        for token, experts in enumerate(chosen["experts"]):
            # Where no expert has a copy, one node has each: the nodes that it is on.
            on = {next(n for n, own in enumerate(nodes) if e in own) for e in experts}
            if limit and len(on) > limit:
                raise Failure(f"layer {layer}, token {token}: experts {experts} are on {len(on)} nodes, not {limit}")
    with json_file(routes) as file:
        if one.logits(ids, "--all", "--routes", file) != bound.logits(ids, "--all", *LOCAL):
            raise Failure("the routes of the bound program, forced in that of one rank, give other logits")
    return routes


def check_dispersion(bound, limit, penalty):
    """What the manifest says of the bound."""
    end = "/" + (f"m{limit}-" if limit else "") + (f"p{penalty:g}-" if penalty else "")
    if not re.search(re.escape(end) + "[0-9a-f]{8}$", bound.manifest["numerics"]["id"]):
        raise Failure(f"the numerics id is {bound.manifest['numerics']['id']}, not one that ends in {end}..")
    said = bound.manifest["dispersion"]
    if said["kind"] != ("route-limit" if limit else "penalty") or said["nodes_per_token"]["max"] > (limit or 99):
        raise Failure(f"the manifest's dispersion is {said}")


def main(name, shape, seeds, *bounds):
    ranks, nodes = map(int, shape.split("x"))
    checkpoint, machines = found(name), ("--topology", topology(ranks, nodes))
    if "--layout" in bounds:
        bounds, machines = bounds[:-2], (*machines, *bounds[-2:])
    config = read_config(checkpoint)
    are_changed = False  # a limit may be what groups or empty slots see to already
    for text in bounds:
        limit, penalty = re.fullmatch(r"(\d*)p?([\d.]*)", text).groups()
        limit, penalty = int(limit or 0), float(penalty or 0)
        flags = (*(("--route-limit", str(limit)) if limit else ()),
                 *(("--locality-penalty", f"{penalty:g}") if penalty else ()))
        for seed in range(int(seeds)):
            folder, biases = biased(checkpoint, seed)
            bound = compiled(folder, *machines, *LIMITS, *flags)
            check_dispersion(bound, limit, penalty)
            ids = draw(3, bound.manifest["model"]["vocab"], seed)
            routes = check_forced(compiled(folder, *LIMITS), bound, ids, limit)
            for layer, chosen in routes["layers"].items():
                wanted = rule(biases[layer], nodes_of(bound, layer), config, limit, penalty)
                for experts in chosen["experts"]:
                    if sorted(experts) != wanted:
                        raise Failure(f"{text}, seed {seed}, layer {layer}: experts {sorted(experts)}, the rule has "
                                      f"{wanted}")
        bound = compiled(checkpoint, *machines, *LIMITS, *flags)
        ids = draw(31, bound.manifest["model"]["vocab"], 5)
        free = compiled(checkpoint, *LIMITS)
        routes = check_forced(free, bound, ids, limit)
        are_changed |= routes != free.json("routes", "--prompt-ids", ",".join(map(str, ids)))
    if not are_changed:
        raise Failure(f"the routes under {', '.join(bounds)} are those without a bound")
    print(f"{checkpoint}: tokens are bound to nodes as the rule says")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Failure as wrong:
        sys.exit(f"check_route_limit.py: {wrong}")
