"""Runs of nodes become functions of the model, also within each other; an attribute may become one of the function.

A run is cut from an order of the nodes and reduced to what hangs together, so that no way leads out of it and back in:
the call can stand where its last node stood. Functions have no initializers: what they read of them is a parameter.
"""
import onnx
from onnx import helper

from rewrite.graph import Names, ordered, outputs_of, readers, set_nodes

DOMAIN = "local"
SMALLEST, LARGEST = 3, 40  # nodes of a run
LIFTED = {onnx.AttributeProto.INT: "p", onnx.AttributeProto.FLOAT: "p"}


def connected(run):
    """The nodes of a run that hang together with its first."""
    touching = lambda node: {n for n in (*node.input, *node.output) if n}
    made = {n for node in run for n in node.output if n}
    group, values, grown = [run[0]], touching(run[0]) & made, True
    while grown:
        grown = [n for n in run if not any(n is g for g in group) and touching(n) & values]
        group += grown
        values |= {v for n in grown for v in touching(n) & made}
    return [n for n in run if any(n is g for g in group)]


def interface(group, model, read):
    """(values read from outside, values read outside) of a group of nodes."""
    made = {n for node in group for n in node.output if n}
    inner = {id(node) for node in group}
    wanted = outputs_of(model)
    inputs = list(dict.fromkeys(n for node in group for n in node.input if n and n not in made))
    outputs = [n for node in group for n in node.output
               if n and (n in wanted or any(id(user) not in inner for user, _ in read.get(n, ())))]
    return inputs, outputs


def lift(function, rng):
    """Makes one plain attribute of one node an attribute of the function; its name and value, or nothing."""
    places = [(node, a) for node in function.node for a in node.attribute
              if a.type in LIFTED and node.domain != DOMAIN and not a.ref_attr_name]
    if not places or rng.random() < 0.4:
        return {}
    _, attribute = rng.choice(places)
    value = helper.get_attribute_value(attribute)
    kind, name = attribute.type, attribute.name
    attribute.Clear()
    attribute.name, attribute.type, attribute.ref_attr_name = name, kind, f"given_{name}"
    function.attribute.append(f"given_{name}")
    return {f"given_{name}": value}


def wrap_one(model, rng, names):
    """Wraps one random run; False when it would make nothing."""
    nodes = ordered(model.graph.node)
    length = rng.randint(SMALLEST, max(SMALLEST, min(LARGEST, len(nodes) // 3)))
    start = rng.randrange(max(1, len(nodes) - length))
    group = connected(nodes[start:start + length])
    if len(group) < SMALLEST:
        return False
    inputs, outputs = interface(group, model, readers(model.graph))
    if not outputs or not inputs:
        return False
    name = names.fresh("Part")
    opsets = [helper.make_opsetid(o.domain, o.version) for o in model.opset_import]
    function = helper.make_function(DOMAIN, name, inputs, outputs, group, opsets)
    given = lift(function, rng)
    model.functions.append(function)
    call = helper.make_node(name, inputs, outputs, name=names.fresh("call"), domain=DOMAIN, **given)
    set_nodes(model.graph, ordered([*(n for n in nodes if not any(n is g for g in group)), call]))
    return True


def functions(model, rng):
    """Wraps about a run for every 40 nodes, later ones around earlier ones too."""
    model.ir_version = max(model.ir_version, 8)
    if DOMAIN not in {o.domain for o in model.opset_import}:
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    names = Names(model)
    for _ in range(max(2, len(model.graph.node) // 40)):
        wrap_one(model, rng, names)
    left = {n for node in model.graph.node for n in (*node.input, *node.output)}
    kept = [i for i in model.graph.value_info if i.name in left]
    copies = [type(i).FromString(i.SerializeToString()) for i in kept]
    del model.graph.value_info[:]
    model.graph.value_info.extend(copies)
