"""Changes after which a graph is a decoder of the same family with other numbers: what an importer has to take.

A change is (what, edit) as in mutate.py, of every layer at once: checkpoints of a family have one epsilon, one theta.
"""
import numpy as np
from onnx import helper, numpy_helper

from rewrite.mutate import View, forward_input, give_constant, set_attribute

EPSILONS = (1e-4, 3e-5, 1e-5, 2e-6, 1e-6)
THETAS = (2500.0, 1e4, 1.5e5, 5e5, 1e6)


def together(edits):
    def edit(model):
        for one in edits:
            one(model)
    return edit


def scalars(view, ops, low, high):
    """[(node's number, place, value)] of constants of one number that nodes of these operators read."""
    found = []
    for i, node in view.of(*ops):
        for place, name in enumerate(node.input):
            values = view.constant(name) if name else None
            if values is not None and values.dtype.kind == "f" and values.size == 1 and low < values.reshape(()) < high:
                found.append((i, place, values))
    return found


def attributes(view, name, ops=()):
    """[(node's number, value)] of an attribute."""
    return [(i, helper.get_attribute_value(a)) for i, node in enumerate(view.nodes) for a in node.attribute
            if a.name == name and (not ops or node.op_type in ops)]


def epsilon(view, rng):
    """Another epsilon of all norms."""
    value = rng.choice(EPSILONS)
    edits = [give_constant(i, place, np.full_like(old, value)) for i, place, old in scalars(view, ("Add",), 1e-8, 9e-4)]
    for name in ("epsilon", "qk_norm_epsilon"):
        edits += [set_attribute(i, name, value) for i, _ in attributes(view, name)]
    return f"epsilon {value:g}", edits


def is_frequencies(values):
    """1 and smaller numbers, each a fraction of the one before."""
    flat = values.reshape(-1)
    return (values.dtype.kind == "f" and 2 <= flat.size == max(values.shape) and flat[0] == 1 and flat.min() > 0
            and bool((flat[1:] < 0.75 * flat[:-1]).all()))


def frequencies(theta, pairs):
    """Reciprocals in float32, as exporters compute them."""
    exponents = np.arange(pairs, dtype=np.float32) / np.float32(pairs)
    return np.float32(1.0) / (theta ** exponents.astype(np.float64)).astype(np.float32)


def tables_of(view):
    """[(node's number, place of cosines, of sines)] of nodes that read rotary tables that are stored."""
    found = []
    for op, cosines, sines in (("GroupQueryAttention", 7, 8), ("RotaryEmbedding", 2, 3), ("RotaryEmbedding", 1, 2)):
        for i, node in view.of(op):
            read = [view.constant(node.input[p]) if len(node.input) > p else None for p in (cosines, sines)]
            if all(r is not None and r.ndim == 2 and r.dtype.kind == "f" for r in read) and read[0][0, 0] == 1:
                found.append((i, cosines, sines, read[0].shape))
    return found


def theta(view, rng):
    """Another base of rotary frequencies, whatever scaled them before; or positions in quarters."""
    base, slower = rng.choice(THETAS), rng.choice((1, 1, 4))
    edits = []
    for i, node in enumerate(view.nodes):
        for place, name in enumerate(node.input):
            values = view.constant(name) if name else None
            if values is not None and is_frequencies(values):
                other = frequencies(base, values.size).reshape(values.shape) / np.float32(slower)
                edits.append(give_constant(i, place, other))
    for i, cosines, sines, (rows, pairs) in tables_of(view):
        angles = np.outer(np.arange(rows, dtype=np.float32), frequencies(base, pairs) / np.float32(slower))
        edits += [give_constant(i, cosines, np.cos(angles)), give_constant(i, sines, np.sin(angles))]
    return f"theta {base:g}{' / 4' if slower > 1 else ''}", edits


def chosen(view, rng):
    """Another number of experts of a token."""
    step = rng.choice((-1, 1))
    edits = [set_attribute(i, "k", k + step) for i, k in attributes(view, "k", ("MoE",))]
    sizes = [(i, view.constant(node.input[1])) for i, node in view.of("TopK")]
    sizes = [(i, k) for i, k in sizes if k is not None]
    largest = max((int(k.reshape(())) for _, k in sizes), default=0)
    edits += [give_constant(i, 1, k + step) for i, k in sizes if int(k.reshape(())) == largest]
    return f"{step:+} experts of a token", edits


def normalised(view, rng):
    """Weights of the chosen experts that are not made to sum to 1, or are."""
    name = "normalize_routing_weights"
    edits = [set_attribute(i, name, 1 - value) for i, value in attributes(view, name)]
    for i, node in view.of("Div"):
        made = view.maker.get(node.input[1])
        if made is not None and view.nodes[made].op_type == "ReduceSum" and view.nodes[made].input[0] == node.input[0]:
            edits.append(forward_input(i))
    return "weights of experts sum to 1, or no longer", edits


def routed(view, rng):
    """Another factor of what experts give."""
    factor = rng.choice((1.5, 2.0, 16.0))
    found = scalars(view, ("Mul",), 2.2, 100)
    return f"experts times {factor:g}", [give_constant(i, p, np.full_like(old, factor)) for i, p, old in found]


def tied(view, rng):
    """The rows of embeddings are those of the logits, too."""
    heads = [i for i, node in view.of("MatMul") if "logits" in node.output]
    tables = [n.input[0] for _, n in view.of("Gather") if n.input[0] in view.stored and "input_ids" in n.input]
    if not heads or not tables:
        return "tied", []
    def edit(model):
        model.graph.node.append(helper.make_node("Transpose", [tables[0]], ["mutant.tied"], perm=[1, 0]))
        model.graph.node[heads[0]].input[1] = "mutant.tied"
    return "the head is the table of embeddings", [edit]


def weights(view, rng):
    """Other numbers in every matrix and vector of weights."""
    tables = {view.nodes[i].input[p] for i, *places, _ in tables_of(view) for p in places}
    share = rng.choice((1, 3, 7))
    def edit(model):
        for tensor in model.graph.initializer:
            values = numpy_helper.to_array(tensor)
            if (values.dtype == np.float32 and values.size >= 16 and tensor.name not in tables
                    and not is_frequencies(values)):
                tensor.CopyFrom(numpy_helper.from_array(np.roll(values, share, -1) * np.float32(0.9), tensor.name))
    return f"weights turned by {share}, times 0.9", [edit]


CHANGES = (epsilon, theta, chosen, normalised, routed, tied, weights)


def change(model, rng):
    """(kind, what, edit): one to three of the changes that the model has places for."""
    view, kinds, texts, edits = View(model), [], [], []
    for make in rng.sample(CHANGES, len(CHANGES))[:rng.choice((3, 4, 5))]:
        what, some = make(view, rng)
        if some and len(kinds) < 3:
            kinds.append(make.__name__)
            texts.append(what)
            edits += some
    return "+".join(sorted(kinds)), "; ".join(texts), together(edits)
