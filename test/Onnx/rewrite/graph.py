"""What the rewriters need to know of a graph: who makes and reads a value, types, and an order of nodes."""
import random

import onnx
from onnx import shape_inference


def load(path):
    """The model with all data inside."""
    return onnx.load(path)


def outputs_of(model):
    return {o.name for o in model.graph.output}


def inputs_of(model):
    return {i.name for i in model.graph.input}


def readers(graph):
    """value -> [(node, place among its inputs)]"""
    found = {}
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name:
                found.setdefault(name, []).append((node, place))
    return found


def types(model):
    """value -> (element type, rank) where they are known: stored, or inferred for operators of the standard."""
    try:
        graph = shape_inference.infer_shapes(model).graph
    except Exception:  # an operator the inference refuses: what the file says remains
        graph = model.graph
    found = {t.name: (t.data_type, len(t.dims)) for t in graph.initializer}
    for info in (*graph.value_info, *graph.input, *graph.output):
        kind = info.type.tensor_type
        if kind.elem_type and kind.HasField("shape"):
            found[info.name] = (kind.elem_type, len(kind.shape.dim))
    return found


class Names:
    """Names that no value or node of a model has."""

    def __init__(self, model):
        self.taken = set()
        for graph in (model.graph, *model.functions):
            for node in graph.node:
                self.taken.update((node.name, *node.input, *node.output))
        self.taken.update(t.name for t in model.graph.initializer)
        self.taken.update((*inputs_of(model), *outputs_of(model)))

    def fresh(self, stem):
        number = 0
        while f"{stem}_{number}" in self.taken:
            number += 1
        self.taken.add(f"{stem}_{number}")
        return f"{stem}_{number}"


def ordered(nodes, rng=None):
    """The nodes with makers before readers: the first that can stand next, or a random one with `rng`."""
    nodes = list(nodes)
    maker = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    waiting = [{maker[name] for name in node.input if name in maker} for node in nodes]
    after = {}
    for i, before in enumerate(waiting):
        for j in before:
            after.setdefault(j, []).append(i)
    ready = [i for i, before in enumerate(waiting) if not before]
    done = []
    while ready:
        place = rng.randrange(len(ready)) if rng else ready.index(min(ready))
        i = ready.pop(place)
        done.append(nodes[i])
        for j in after.get(i, ()):
            waiting[j].discard(i)
            if not waiting[j]:
                ready.append(j)
    if len(done) != len(nodes):
        raise ValueError("the graph has a cycle")
    return done


def set_nodes(holder, nodes):
    """Replaces the nodes of a graph or function."""
    copies = []
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copies.append(copy)
    del holder.node[:]
    holder.node.extend(copies)


def some(rng: random.Random, items, share, most=40):
    """A random part of the items."""
    items = list(items)
    count = min(most, max(1, round(len(items) * share))) if items else 0
    return rng.sample(items, min(count, len(items)))
