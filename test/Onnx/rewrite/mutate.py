"""Places where one node of a graph can be made to say something else, and what would be said there.

A place is (what, edit): a line that tells it, and a function that changes the node in a copy of the model. Constants
that several nodes share are given to the one node under a new name. Whether a changed model runs is for others to see.
"""
import numpy as np
from onnx import helper, numpy_helper

from rewrite.graph import types

STANDARD = ("", "ai.onnx")


class View:
    """A model's nodes by number, what makes a value, constants, and types."""

    def __init__(self, model):
        self.model, self.nodes, self.types = model, list(model.graph.node), types(model)
        self.maker = {o: i for i, node in enumerate(self.nodes) for o in node.output if o}
        self.stored = {t.name: t for t in model.graph.initializer}
        self.shapes = {i.name: [d.dim_value or d.dim_param for d in i.type.tensor_type.shape.dim]
                       for i in (*model.graph.value_info, *model.graph.input, *model.graph.output)}

    def constant(self, name):
        """The array of an initializer or Constant node, or nothing."""
        if name in self.stored:
            return numpy_helper.to_array(self.stored[name])
        made = self.nodes[self.maker[name]] if name in self.maker else None
        if made is None or made.op_type != "Constant":
            return None
        value = {a.name: helper.get_attribute_value(a) for a in made.attribute}
        if "value" in value:
            return numpy_helper.to_array(value["value"])
        only = next(iter(value.values()))
        return np.array(only, np.float32 if any("float" in k for k in value) else np.int64)

    def of(self, *ops, domain=None):
        """(number, node) of every node of these operators."""
        return [(i, n) for i, n in enumerate(self.nodes)
                if n.op_type in ops and (domain is None or n.domain == domain)]


def label(i, node):
    return f"node {i} {node.op_type} -> {node.output[0]}"


def set_operator(i, name):
    def edit(model):
        model.graph.node[i].op_type = name
    return edit


def set_input(i, place, name):
    def edit(model):
        model.graph.node[i].input[place] = name
    return edit


def exchange(i, field, a, b):
    def edit(model):
        names = list(getattr(model.graph.node[i], field))
        names[a], names[b] = names[b], names[a]
        getattr(model.graph.node[i], field)[:] = names
    return edit


def give_constant(i, place, values):
    """This node alone reads other numbers."""
    def edit(model):
        name = f"mutant.{i}.{place}"
        model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        model.graph.node[i].input[place] = name
    return edit


def set_attribute(i, name, value):
    def edit(model):
        node = model.graph.node[i]
        kept = [a for a in node.attribute if a.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, value)])
    return edit


def forward_input(i, place=0):
    """The node only forwards one of its inputs."""
    def edit(model):
        node = model.graph.node[i]
        node.CopyFrom(helper.make_node("Identity", [node.input[place]], [node.output[0]], name=node.name))
    return edit


def attribute_places(view):
    """Other values of attributes that mean something to a decoder."""
    for i, node in enumerate(view.nodes):
        has = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        kind, rank = view.types.get(node.output[0], (0, 0))
        for name, value in has.items():
            for other in other_values(name, value):
                if name == "axis" and kind and (other - value) % max(rank, 1) == 0:
                    continue  # the same axis, counted from the other end
                yield "attribute", f"{label(i, node)}: {name} {value} becomes {other}", set_attribute(i, name, other)
        if node.op_type == "GroupQueryAttention":
            for name, other in (("local_window_size", 4), ("softcap", 5.0)):
                yield "attribute", f"{label(i, node)}: {name} becomes {other}", set_attribute(i, name, other)


def other_values(name, value):
    if name == "axis":
        return [value - 1, value + 1]
    if name in ("epsilon", "qk_norm_epsilon"):
        return [value * 1000]
    if name in ("scale", "activation_alpha"):
        return [value * 1.25]
    if name == "activation_beta":
        return [value + 1.0]
    if name == "perm":
        swapped = [list(value[:-2]) + [value[-1], value[-2]], [value[1], value[0], *value[2:]]]
        return [p for p in swapped if p != list(value)]
    if name in ("rotary_interleaved", "interleaved", "normalize_routing_weights", "largest", "is_causal", "do_rotary"):
        return [1 - value]
    if name == "swiglu_fusion":
        return [2 if value == 1 else 1] if value else []
    if name == "k":
        return [value + 1, value - 1]
    if name == "num_heads" and value % 2 == 0:
        return [value // 2]
    if name == "reduction" and value == b"add":
        return ["none", "mul"]
    return []


OTHER_OPERATOR = {
    "Sigmoid": ("Tanh", "Softplus"), "Cos": ("Sin",), "Sin": ("Cos",), "Add": ("Sub",), "Sub": ("Add",),
    "Mul": ("Div",), "Div": ("Mul",), "And": ("Or",), "LessOrEqual": ("Less", "GreaterOrEqual"),
    "GreaterOrEqual": ("Greater", "LessOrEqual"), "Less": ("LessOrEqual",), "Greater": ("GreaterOrEqual",),
    "ReduceMean": ("ReduceSum", "ReduceMax"), "ReduceSum": ("ReduceMean", "ReduceMax"), "ReduceMax": ("ReduceMin",),
    "Softmax": ("LogSoftmax",), "Max": ("Min",), "Sqrt": ("Abs",),
}
FORWARDED = ("Neg", "Not", "Sigmoid", "Sqrt", "Reciprocal", "Softmax", "Div", "Where", "RotaryEmbedding",
             "RMSNormalization", "SimplifiedLayerNormalization", "IsNaN", "CumSum", "Transpose", "Mul", "Add")


def operator_places(view):
    """Another operator of the same inputs, or none: the first or second input forwarded."""
    for i, node in enumerate(view.nodes):
        if node.domain in STANDARD:
            for other in OTHER_OPERATOR.get(node.op_type, ()):
                yield "operator", f"{label(i, node)}: becomes {other}", set_operator(i, other)
        if node.op_type in FORWARDED:
            place = 1 if node.op_type == "Where" else 0
            what = "drops the division" if node.op_type == "Div" else f"only forwards {node.input[place]}"
            yield "dropped", f"{label(i, node)}: {what}", forward_input(i, place)


def operand_places(view):
    """Inputs or outputs of one node exchanged."""
    for i, node in view.of("MatMul", "Sub", "Div", "Concat", "Pow", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
        if len(node.input) >= 2 and node.input[0] != node.input[1]:
            yield "exchanged", f"{label(i, node)}: its first two inputs exchanged", exchange(i, "input", 0, 1)
    for i, node in view.of("Where"):
        yield "exchanged", f"{label(i, node)}: its two branches exchanged", exchange(i, "input", 1, 2)
    for i, node in view.of("Split"):
        yield "exchanged", f"{label(i, node)}: its first two outputs exchanged", exchange(i, "output", 0, 1)
    for i, node in view.of("RotaryEmbedding"):
        a, b = (2, 3) if node.domain not in STANDARD else (1, 2)
        yield "exchanged", f"{label(i, node)}: cosines and sines exchanged", exchange(i, "input", a, b)
    for i, node in view.of("GroupQueryAttention"):
        for a, b, what in ((1, 2, "key and value"), (3, 4, "caches of key and value"), (7, 8, "cosines and sines")):
            if node.input[a] and node.input[b]:
                yield "exchanged", f"{label(i, node)}: {what} exchanged", exchange(i, "input", a, b)
        yield "exchanged", f"{label(i, node)}: new caches of key and value exchanged", exchange(i, "output", 1, 2)
    for i, node in view.of("MoE"):
        if len(node.input) > 6 and node.input[6]:
            yield "exchanged", f"{label(i, node)}: gate and up exchanged", exchange(i, "input", 2, 6)
    for i, node in view.of("Attention", domain=""):
        yield "exchanged", f"{label(i, node)}: key and value exchanged", exchange(i, "input", 1, 2)


def constant_places(view):
    """Other numbers in a constant that one node reads."""
    for i, node in enumerate(view.nodes):
        for place, name in enumerate(node.input):
            values = view.constant(name) if name else None
            if values is None or node.op_type in ("Constant", "Cast", "Expand", "ConstantOfShape"):
                continue
            for what, other in other_numbers(node, place, values):
                yield "constant", f"{label(i, node)}: {name} {what}", give_constant(i, place, other)


def other_numbers(node, place, values):
    """(what happens to them, the numbers)"""
    if values.dtype.kind == "i" and 1 <= values.size <= 4 and np.abs(values).max() < 2 ** 31:
        if node.op_type in ("TopK", "Gather", "Slice", "Range", "Add", "Sub", "Unsqueeze", "Split", "CumSum", "Mod"):
            yield f"{values.tolist()} plus one", values + 1
            yield f"{values.tolist()} minus one", values - 1
    if values.dtype.kind != "f":
        return
    if values.size == 1:
        value = float(values.reshape(()))
        if value < -1e30:
            yield f"{value:.3g} becomes -1", np.full_like(values, -1.0)
        elif value == 0:
            yield "0 becomes 0.5", np.full_like(values, 0.5)
        elif abs(value) <= 1e-4:
            yield f"{value:.3g} times 1000", (values * 1000).astype(values.dtype)
        else:
            yield f"{value:.6g} times 1.25", (values * 1.25).astype(values.dtype)
            yield f"{value:.6g} becomes its opposite", -values
        return
    yield f"of {list(values.shape)} times 1.25", (values * 1.25).astype(values.dtype)
    yield f"of {list(values.shape)} turned by one along its last axis", np.roll(values, 1, -1)
    if values.ndim == 2 and values.shape[0] == values.shape[1]:
        yield f"of {list(values.shape)} transposed", values.T


def another_value_places(view):
    """A node reads another value of the same type and shape, made before it; and known faults of routers."""
    alike = {}
    for name, shape in view.shapes.items():
        if name in view.types and shape and name in view.maker:
            alike.setdefault((view.types[name][0], tuple(shape)), []).append(name)
    for i, node in enumerate(view.nodes):
        for place, name in enumerate(node.input):
            if name not in view.shapes or name not in view.types:
                continue
            key = view.types[name][0], tuple(view.shapes[name])
            others = [o for o in alike.get(key, ()) if o != name and view.maker[o] < i]
            for other in others[-1:] + others[:1]:
                yield "other value", f"{label(i, node)}: reads {other} instead of {name}", set_input(i, place, other)
    for i, node in view.of("GatherElements"):
        for j, add in view.of("Add"):
            if node.input[0] in add.input and any(view.constant(n) is not None for n in add.input):
                yield ("bias", f"{label(i, node)}: weighs with the scores that have the bias, {add.output[0]}",
                       set_input(i, 0, add.output[0]))


def output_places(view):
    """Two caches of the same type and shape leave the model under each other's names."""
    caches = [o.name for o in view.model.graph.output if o.name != "logits"]
    by_shape = {}
    for name in caches:
        by_shape.setdefault(tuple(map(str, view.shapes[name][1::2])), []).append(name)
    for group in by_shape.values():
        for a, b in zip(group, group[1:]):
            i, j = view.maker[a], view.maker[b]
            if i != j:
                yield "caches", f"outputs {a} and {b} exchanged", exchange_names(a, b)


def exchange_names(a, b):
    """Every node that makes or reads one value makes or reads the other; the outputs of the model stay."""
    other = {a: b, b: a}
    def edit(model):
        for node in model.graph.node:
            node.input[:] = [other.get(n, n) for n in node.input]
            node.output[:] = [other.get(n, n) for n in node.output]
    return edit


KINDS = (attribute_places, operator_places, operand_places, constant_places, another_value_places, output_places)


def places(model):
    """kind -> [(what, edit)] of all places of a model."""
    view, found = View(model), {}
    for kind in KINDS:
        for name, what, edit in kind(view):
            found.setdefault(name, []).append((what, edit))
    return found

