#!/usr/bin/env python3
"""Write a decoder of published size as an ONNX model whose weights are holes in a sparse file.

  make_large.py DIR [--layers N] [--experts N] [--unrolled] [--shuffle SEED]

writes DIR/model.onnx and DIR/model.onnx.data. Rows of 7,168, 64 heads of 128 for queries and 8 for keys, experts of
2,048 of which a token takes 8, 163,840 tokens: the sizes of Kimi K2, with grouped attention. By default 61 layers of
384 experts: 4 TB of holes. The experts of a layer are one MoE node with stacked weights; with --unrolled each expert
has its own nodes and weights, which makes 94,000 initializers and 258,000 nodes. --shuffle writes both
in another order.
"""
import argparse
import random
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper


FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
MICROSOFT = "com.microsoft"
HIDDEN, HEADS, KV_HEADS, HEAD, INNER, CHOSEN, VOCABULARY, CONTEXT = 7168, 64, 8, 128, 2048, 8, 163840, 4096


class Writer:
    def __init__(self):
        self.nodes, self.weights, self.inside, self.starts, self.size = [], [], [], [], 0

    def hole(self, name, *shape):
        """A float32 weight in the file: a number of its own, then zeros, for what is 0 everywhere is no weight."""
        tensor = TensorProto(name=name, data_type=FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        length = 4 * int(np.prod(shape))
        for key, value in (("location", "model.onnx.data"), ("offset", self.size), ("length", length)):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
        self.starts.append(self.size)
        self.size += (length + 4095) // 4096 * 4096
        self.weights.append(tensor)
        return name

    def number(self, name, values):
        self.inside.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, op, inputs, name, domain="", outputs=None, **attributes):
        outputs = outputs or [f"{name}.{op}"]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=f"{name}.{op}", domain=domain, **attributes))
        return outputs[0]


def write_constants(out):
    """The embedded tokens; rotary tables, and numbers that all layers read."""
    frequencies = np.float32(1) / (5e4 ** (np.arange(HEAD // 2) / (HEAD // 2))).astype(np.float32)
    angles = np.outer(np.arange(CONTEXT, dtype=np.float32), frequencies)
    out.number("cosines", np.cos(angles))
    out.number("sines", np.sin(angles))
    for name, value in (("one", [1]), ("last", [-1]), ("k", [CHOSEN])):
        out.number(name, np.array(value, np.int64))
    out.number("zero", np.float32(0))
    total = out.node("ReduceSum", ["attention_mask", "one"], "mask", keepdims=0)
    out.node("Cast", [out.node("Sub", [total, "one"], "mask")], "lengths", outputs=["lengths"], to=INT32)
    width = out.node("Gather", [out.node("Shape", ["attention_mask"], "mask"), out.number("axis", np.int64(1))], "mask")
    out.node("Cast", [width], "total", outputs=["total"], to=INT32)
    return out.node("Gather", [out.hole("embed.weight", VOCABULARY, HIDDEN), "input_ids"], "embed")


def norm(out, rows, name):
    return out.node("SimplifiedLayerNormalization", [rows, out.hole(f"{name}.weight", HIDDEN)], name, axis=-1,
                    epsilon=1e-6)


def attention(out, rows, layer):
    name, past = f"layers.{layer}.attn", f"past_key_values.{layer}"
    packed = out.node("MatMul", [rows, out.hole(f"{name}.qkv", HIDDEN, (HEADS + 2 * KV_HEADS) * HEAD)], f"{name}.qkv")
    outputs = [f"{name}.rows", f"present.{layer}.key", f"present.{layer}.value"]
    inputs = [packed, "", "", f"{past}.key", f"{past}.value", "lengths", "total", "cosines", "sines"]
    sizes = dict(num_heads=HEADS, kv_num_heads=KV_HEADS, do_rotary=1, scale=float(HEAD ** -0.5))
    out.node("GroupQueryAttention", inputs, name, MICROSOFT, outputs, **sizes)
    return out.node("MatMul", [outputs[0], out.hole(f"{name}.o", HEADS * HEAD, HIDDEN)], f"{name}.o")


def stacked(out, rows, logits, name, experts):
    """One MoE node a layer."""
    flat = out.node("Reshape", [logits, out.number(f"{name}.shape", np.array([-1, experts], np.int64))], name)
    first = out.hole(f"{name}.gate_up", experts, 2 * INNER, HIDDEN)
    down = out.hole(f"{name}.down", experts, HIDDEN, INNER)
    return out.node("MoE", [rows, flat, first, "", down], name, MICROSOFT, k=CHOSEN, normalize_routing_weights=1,
                    activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.0, activation_beta=0.0)


def unrolled(out, rows, logits, name, experts):
    """Every expert its own nodes: all tokens, times a weight that is 0 where the expert was not chosen."""
    values, chosen = f"{name}.values", f"{name}.chosen"
    out.node("TopK", [logits, "k"], f"{name}.choice", outputs=[values, chosen], axis=-1)
    weights, total = out.node("Softmax", [values], name, axis=-1), None
    for expert in range(experts):
        one = f"{name}.{expert}"
        mine = out.node("Equal", [chosen, out.number(f"{one}.index", np.int64(expert))], one)
        weight = out.node("ReduceSum", [out.node("Where", [mine, weights, "zero"], one), "last"], one, keepdims=1)
        gate = out.node("MatMul", [rows, out.hole(f"{one}.w1", HIDDEN, INNER)], f"{one}.gate")
        up = out.node("MatMul", [rows, out.hole(f"{one}.w3", HIDDEN, INNER)], f"{one}.up")
        silu = out.node("Mul", [gate, out.node("Sigmoid", [gate], one)], f"{one}.silu")
        inner = out.node("Mul", [silu, up], one)
        made = out.node("MatMul", [inner, out.hole(f"{one}.w2", INNER, HIDDEN)], f"{one}.down")
        made = out.node("Mul", [made, weight], f"{one}.weighed")
        total = out.node("Add", [total, made], f"{one}.sum") if total else made
    return total


def model_of(layers, experts, form):
    """(graph without the order shuffled, bytes of the file of weights)"""
    out = Writer()
    rows = write_constants(out)
    for layer in range(layers):
        name = f"layers.{layer}"
        rows = out.node("Add", [rows, attention(out, norm(out, rows, f"{name}.norm1"), layer)], f"{name}.residual1")
        normed = norm(out, rows, f"{name}.norm2")
        logits = out.node("MatMul", [normed, out.hole(f"{name}.router", HIDDEN, experts)], f"{name}.router")
        rows = out.node("Add", [rows, form(out, normed, logits, f"{name}.moe", experts)], f"{name}.residual2")
    out.node("MatMul", [norm(out, rows, "norm"), out.hole("head", HIDDEN, VOCABULARY)], "head", outputs=["logits"])
    return out


def ports(layers):
    """(inputs, outputs) of the graph"""
    value = helper.make_tensor_value_info
    inputs = [value("input_ids", INT64, ["batch", "sequence"]), value("attention_mask", INT64, ["batch", "total"])]
    outputs = [value("logits", FLOAT, ["batch", "sequence", VOCABULARY])]
    for layer in range(layers):
        for kind in ("key", "value"):
            inputs.append(value(f"past_key_values.{layer}.{kind}", FLOAT, ["batch", KV_HEADS, "past", HEAD]))
            outputs.append(value(f"present.{layer}.{kind}", FLOAT, ["batch", KV_HEADS, "total", HEAD]))
    return inputs, outputs


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=Path)
    p.add_argument("--layers", type=int, default=61)
    p.add_argument("--experts", type=int, default=384)
    p.add_argument("--unrolled", action="store_true")
    p.add_argument("--shuffle", type=int, metavar="SEED")
    args = p.parse_args()
    out = model_of(args.layers, args.experts, unrolled if args.unrolled else stacked)
    tensors = [*out.inside, *out.weights]
    if args.shuffle is not None:
        rng = random.Random(args.shuffle)
        rng.shuffle(tensors)
        rng.shuffle(out.nodes)  # readers before makers, too: k2c sorts them
    inputs, outputs = ports(args.layers)
    graph = helper.make_graph(out.nodes, "large", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    args.dir.mkdir(parents=True, exist_ok=True)
    (args.dir / "model.onnx").write_bytes(model.SerializeToString())
    with open(args.dir / "model.onnx.data", "wb") as file:
        file.truncate(out.size)
        for number, offset in enumerate(out.starts, 1):
            file.seek(offset)
            file.write(np.float32(number).tobytes())
    print(f"{len(out.nodes)} nodes, {len(tensors)} initializers, {out.size / 1e9:.1f} GB of weights")
    return 0


if __name__ == "__main__":
    sys.exit(main())
