"""Runs a decoder of this folder in ONNX Runtime, whatever its inputs: with or without mask, positions and cache.

ONNX Runtime's kernels for CPUs take few spellings of a mixture: MoE with rows of gate and up in turns only, QMoE
always with weights made to sum to one and 8 bits in blocks only with activations in integers. `runnable` spells the
experts of a model so that the CPU computes what the model says.
"""
import numpy as np
import onnx
import onnx.inliner
import onnxruntime
from onnx import helper, numpy_helper

from make.quantise import dequantise

DTYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(float16)": np.float16}
MIXTURES = ("MoE", "QMoE")
SPECIAL = (*MIXTURES, "MatMulNBits")


def attributes_of(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


class Constants:
    """The values of a graph that its inputs do not reach, through Constant nodes and nodes that move data."""

    def __init__(self, graph):
        self.stored = {t.name: t for t in graph.initializer}
        self.makers = {node.output[0]: node for node in graph.node if node.output}

    def __getitem__(self, name):
        if name in self.stored:
            return numpy_helper.to_array(self.stored[name])
        node = self.makers[name]
        attributes = attributes_of(node)
        if node.op_type == "Constant":
            return numpy_helper.to_array(attributes["value"])
        if node.op_type == "Transpose":
            return self[node.input[0]].transpose(attributes["perm"])
        if node.op_type == "Cast":
            return self[node.input[0]].astype(helper.tensor_dtype_to_np_dtype(attributes["to"]))
        if node.op_type == "Identity":
            return self[node.input[0]]
        raise ValueError(f"{name}: no constant, but the result of {node.op_type}")


def stored_experts(node, weights):
    """(first matrix, down, third matrix or None) of a MoE or QMoE node in float32, and the biases it has."""
    given = lambda i: weights[node.input[i]] if len(node.input) > i and node.input[i] else None
    if node.op_type == "MoE":
        return (given(2), given(4), given(6)), (given(3), given(5), given(7))
    attributes = attributes_of(node)
    bits, block = attributes["expert_weight_bits"], attributes.get("block_size", 0)
    matrices = [None if given(i) is None else dequantise(given(i), given(i + 1), given(zero), bits, block)
                for i, zero in ((2, 11), (5, 12), (8, 13))]
    return matrices, (given(4), given(7), given(10))


def in_turns(first, third, fusion):
    """Rows of gate and up in turns, of any of the spellings; works on matrices and on biases."""
    if third is None and fusion == 1:
        return first
    gate, up = (first, third) if third is not None else np.split(first, 2, axis=1)
    return np.stack([gate, up], axis=2).reshape(gate.shape[0], -1, *gate.shape[2:])


def taken(node):
    """Whether the CPU computes this node as it says, rounding activations to no integers."""
    if node.op_type == "MatMulNBits":
        return attributes_of(node).get("accuracy_level", 0) < 4
    return node.op_type not in MIXTURES or node.op_type == "MoE" and attributes_of(node).get("swiglu_fusion", 0) == 1


def runnable(model):
    """The same model with every mixture as MoE with gate and up in turns and products in float32; `model` itself when
    the CPU takes it."""
    if not any(n.op_type in SPECIAL for holder in (model.graph, *model.functions) for n in holder.node):
        return model
    changed = onnx.inliner.inline_local_functions(model)
    if all(map(taken, changed.graph.node)):
        return model
    weights = Constants(changed.graph)
    for node in changed.graph.node:
        if taken(node):
            continue
        if node.op_type == "MatMulNBits":
            next(a for a in node.attribute if a.name == "accuracy_level").i = 1
            continue
        (first, down, third), (bias, down_bias, third_bias) = stored_experts(node, weights)
        had = attributes_of(node)
        if had.get("activation_type", b"relu") not in (b"silu", b"swiglu"):
            raise ValueError(f"{node.name}: the CPU computes {had['activation_type']} of no two matrices")
        inputs = list(node.input[:2])
        for label, values in (("first", in_turns(first, third, had.get("swiglu_fusion", 0))),
                              ("bias", None if bias is None else in_turns(bias, third_bias, had["swiglu_fusion"])),
                              ("down", down), ("down_bias", down_bias)):
            inputs.append("" if values is None else f"{node.output[0]}.{label}")
            if values is not None:
                changed.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(values), inputs[-1]))
        kept = dict(k=had["k"], normalize_routing_weights=had.get("normalize_routing_weights", 0),
                    activation_type="swiglu", swiglu_fusion=1, activation_alpha=had.get("activation_alpha", 1.0),
                    activation_beta=had.get("activation_beta", 0.0))
        node.CopyFrom(helper.make_node("MoE", inputs, node.output, name=node.name, domain="com.microsoft", **kept))
    return changed


class Session:
    """A decoder in ONNX Runtime. `start` and `step` take one sequence, as the reference of golden.py does; `batch`
    takes several at once. `head` is the last size of caches where the model only names it."""

    def __init__(self, model, folder=None):
        onnxruntime.set_default_logger_severity(4)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")  # activations stay float32
        source = str(folder / "model.onnx") if folder else model.SerializeToString()
        self.session = onnxruntime.InferenceSession(source, options, ["CPUExecutionProvider"])
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.past = [name for name in self.inputs if name.startswith("past")]
        outputs = [o.name for o in self.session.get_outputs()]
        self.outputs = ["logits", *[o for o in outputs if o != "logits"]] if self.past else ["logits"]
        self.head = 0

    def empty(self, rows):
        """Caches of no positions; a size may be a name, or digits in a text."""
        sizes = {name: self.inputs[name].shape for name in self.past}
        width = lambda size: self.head if isinstance(size, str) and not size.isdigit() else int(size)
        return {name: np.zeros((rows, int(shape[1]), 0, width(shape[3])), DTYPES[self.inputs[name].type])
                for name, shape in sizes.items()}

    def call(self, ids, cache, before):
        """Logits [row, position, vocabulary] of ids [row, position] behind `before` positions, and the new cache."""
        rows, total = len(ids), before + ids.shape[1]
        feeds = {"input_ids": ids, "attention_mask": np.ones((rows, total), np.int64),
                 "position_ids": np.tile(np.arange(before, total), (rows, 1)), **cache}
        feeds = {name: feeds[name] for name in self.inputs}
        logits, *present = self.session.run(self.outputs, feeds)
        return logits, dict(zip(self.past, present))

    def start(self, ids):
        """Logits [position, vocabulary] and a state."""
        logits, cache = self.call(np.array([ids]), self.empty(1), 0)
        return logits[0], (list(ids), cache)

    def step(self, token, state):
        ids, cache = state
        if not self.past:
            logits, state = self.start([*ids, token])
            return logits[-1:], state
        logits, cache = self.call(np.array([[token]]), cache, len(ids))
        return logits[0], ([*ids, token], cache)

    def batch(self, rows, following):
        """Logits of several prompts of one length, and of one more token behind each."""
        rows, following = np.array(rows), np.array(following)[:, None]
        logits, cache = self.call(rows, self.empty(len(rows)), 0)
        if not self.past:
            return logits, self.call(np.concatenate([rows, following], 1), {}, 0)[0]
        return logits, self.call(following, cache, rows.shape[1])[0]
