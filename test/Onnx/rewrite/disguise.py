"""Rewrites that leave every number alone: names, order, operands, and nodes that undo each other."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from rewrite.graph import Names, inputs_of, ordered, outputs_of, readers, set_nodes, some, types

COMMUTATIVE = ("Add", "Mul", "And", "Or", "Xor", "Equal", "Max", "Min", "Sum")
WIDER = {TensorProto.FLOAT: TensorProto.DOUBLE, TensorProto.FLOAT16: TensorProto.FLOAT,
         TensorProto.BOOL: TensorProto.INT64}
FEW = 16  # elements of an initializer that may become a Constant node


def rename_values(holder, rng, kept):
    """Renames the nodes of a graph or function and their values; gives the map of values."""
    values = {}
    new = lambda name: name if not name or name in kept else values.setdefault(name, f"t{rng.getrandbits(40):x}")
    for node in holder.node:
        node.name = f"n{rng.getrandbits(40):x}"
        node.input[:] = [new(n) for n in node.input]
        node.output[:] = [new(n) for n in node.output]
    return new


def rename_functions(model, rng):
    """Functions and all that is in them."""
    called = {(f.domain, f.name): f"f{rng.getrandbits(40):x}" for f in model.functions}
    for function in model.functions:
        new = rename_values(function, rng, ())
        function.input[:] = [new(n) for n in function.input]
        function.output[:] = [new(n) for n in function.output]
        function.name = called[function.domain, function.name]
    for holder in (model.graph, *model.functions):
        for node in holder.node:
            node.op_type = called.get((node.domain, node.op_type), node.op_type)


def rename(model, rng):
    """Every value inside, every initializer, node, function and symbolic size gets a name that says nothing."""
    new, sizes = rename_values(model.graph, rng, inputs_of(model) | outputs_of(model)), {}
    rename_functions(model, rng)
    for tensor in model.graph.initializer:
        tensor.name = new(tensor.name)
    for info in (*model.graph.value_info, *model.graph.input, *model.graph.output):
        info.name = new(info.name)
        for size in info.type.tensor_type.shape.dim:
            if size.dim_param and not size.dim_param.isdigit():
                size.dim_param = sizes.setdefault(size.dim_param, f"d{rng.getrandbits(40):x}")
    model.graph.name = f"g{rng.getrandbits(40):x}"
    model.producer_name, model.producer_version = "another", "0"


def shuffle(model, rng):
    """Another order of nodes that computes the same, and of initializers."""
    set_nodes(model.graph, ordered(model.graph.node, rng))
    for field in (model.graph.initializer, model.graph.value_info):
        items = list(field)
        rng.shuffle(items)
        copies = [type(i).FromString(i.SerializeToString()) for i in items]
        del field[:]
        field.extend(copies)


def commute(model, rng):
    """The operands of commutative operators in another order, for about half of them."""
    for node in model.graph.node:
        if node.op_type in COMMUTATIVE and node.domain in ("", "ai.onnx") and rng.random() < 0.5:
            names = list(node.input)
            rng.shuffle(names)
            node.input[:] = names[::-1] if names == list(node.input) else names


def insert(model, value, users, made):
    """Puts nodes between a value and some of its readers; the last makes what they read instead."""
    for node, place in users:
        node.input[place] = made[-1].output[0]
    set_nodes(model.graph, ordered([*model.graph.node, *made]))


def chains(model, rng, share, wanted, build):
    """Behind a part of the values that `wanted` takes, the nodes that `build` gives, for some of their readers."""
    names, known, read = Names(model), types(model), readers(model.graph)
    candidates = [v for v in read if wanted(v, known.get(v))]
    for value in some(rng, sorted(candidates), share):
        users = readers(model.graph)[value]
        insert(model, value, some(rng, users, rng.choice((0.5, 1.0))), build(value, known.get(value), names))


def identity(model, rng):
    """Identity behind values and initializers."""
    chains(model, rng, 0.12, lambda value, kind: True,
           lambda value, kind, names: [helper.make_node("Identity", [value], [names.fresh("same")])])


def casts(model, rng):
    """Casts to a type that holds every value of the first, and back."""
    def pair(value, kind, names):
        wide, back = names.fresh("wide"), names.fresh("back")
        return [helper.make_node("Cast", [value], [wide], to=WIDER[kind[0]]),
                helper.make_node("Cast", [wide], [back], to=kind[0])]
    chains(model, rng, 0.08, lambda value, kind: kind and kind[0] in WIDER, pair)


def transposes(model, rng):
    """Transposes that undo each other."""
    def pair(value, kind, names):
        order = list(range(kind[1]))
        while order == list(range(kind[1])):
            rng.shuffle(order)
        turned, back = names.fresh("turned"), names.fresh("straight")
        return [helper.make_node("Transpose", [value], [turned], perm=order),
                helper.make_node("Transpose", [turned], [back], perm=[int(i) for i in np.argsort(order)])]
    floats = (TensorProto.FLOAT, TensorProto.FLOAT16)
    chains(model, rng, 0.08, lambda value, kind: kind and kind[0] in floats and kind[1] >= 2, pair)


def constant_node(tensor, rng):
    """A Constant node in one of the spellings that its values allow."""
    values = numpy_helper.to_array(tensor)
    spellings = [{"value": tensor}]
    if values.ndim <= 1 and values.size and values.dtype in (np.int64, np.float32):
        stem = "value_int" if values.dtype == np.int64 else "value_float"
        spellings.append({stem: values.item()} if values.ndim == 0 else {f"{stem}s": values.tolist()})
    return helper.make_node("Constant", [], [tensor.name], **rng.choice(spellings))


def constants(model, rng):
    """Small initializers become Constant nodes, and Constant nodes of tensors become initializers."""
    graph = model.graph
    small = [t for t in graph.initializer if np.prod(t.dims) <= FEW and t.name not in inputs_of(model)]
    moved = {t.name for t in some(rng, small, 0.5, 10 ** 6)}
    made = [constant_node(t, rng) for t in graph.initializer if t.name in moved]
    kept = [t for t in graph.initializer if t.name not in moved]
    nodes = []
    for node in graph.node:
        stored = [a.t for a in node.attribute if a.name == "value"]
        if node.op_type == "Constant" and stored and rng.random() < 0.5:
            stored[0].name = node.output[0]
            kept.append(stored[0])
        else:
            nodes.append(node)
    copies = [TensorProto.FromString(t.SerializeToString()) for t in kept]
    set_nodes(graph, ordered([*nodes, *made]))
    del graph.initializer[:]
    graph.initializer.extend(copies)
