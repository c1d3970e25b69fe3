"""Cases of single ops, one idea each: (name, nodes, operands by name, results, operator set)."""
import numpy as np
from onnx import helper

generator = None


def real(*shape):
    return generator.normal(size=shape).astype(np.float32)


def whole(low, high, *shape):
    return generator.integers(low, high, shape)


def ints(*values):
    return np.array(values, np.int64)


def scalar(value, dtype=np.int64):
    return np.array(value, dtype)


def case(name, op, operands, results=1, opset=23, domain="", **attributes):
    """A case of one node; operands of None are left out."""
    given = {f"x{i}": value for i, value in enumerate(operands) if value is not None}
    inputs = [f"x{i}" if value is not None else "" for i, value in enumerate(operands)]
    outputs = [f"y{i}" for i in range(results)]
    node = helper.make_node(op, inputs, outputs, domain=domain, **attributes)
    return name, [node], given, outputs, opset


def element_wise():
    a, b = real(2, 3), real(3)
    for op in ("Add", "Sub", "Mul", "Div"):
        yield case(op.lower(), op, [a, b])
    yield case("div-integers", "Div", [whole(0, 9, 2, 3), ints(4, 3, 2)])
    yield case("mod-negative", "Mod", [whole(-9, 9, 2, 3), ints(4, 3, 2)])
    yield case("pow", "Pow", [np.abs(a), b])
    yield case("pow-of-integers", "Pow", [whole(1, 5, 4), scalar(3)])
    for op in ("Sum", "Mean", "Max", "Min"):
        yield case(op.lower(), op, [a, b, real(2, 1)])
    for op in ("Neg", "Exp", "Sin", "Cos", "Tanh", "Erf", "Sigmoid", "Abs", "Sign", "Relu", "Round", "Ceil", "Floor"):
        yield case(op.lower(), op, [np.round(3 * real(2, 3), 1)])
    for op in ("Sqrt", "Reciprocal", "Log"):
        yield case(op.lower(), op, [np.abs(real(2, 3)) + 0.5])
    odd = np.array([1, np.nan, np.inf, -np.inf], np.float32)
    yield case("isnan", "IsNaN", [odd])
    yield case("isinf-below", "IsInf", [odd], detect_positive=0)
    yield case("swish", "Swish", [a], opset=24, alpha=1.5)
    yield case("gelu", "Gelu", [a])
    yield case("gelu-tanh", "Gelu", [a], approximate="tanh")
    yield case("clip", "Clip", [a, scalar(-0.5, np.float32), scalar(0.5, np.float32)])
    yield case("clip-above", "Clip", [a, None, scalar(0.5, np.float32)])


def conditions():
    a, b = whole(0, 3, 2, 3), whole(0, 3, 3)
    for op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
        yield case(op.lower(), op, [a, b])
    for op in ("And", "Or", "Xor"):
        yield case(op.lower(), op, [a > 0, b > 0])
    yield case("not", "Not", [a > 1])
    yield case("where", "Where", [b > 0, real(2, 3), real(1, 1)])
    value = helper.make_tensor("value", 1, [], [-np.inf])
    nodes = [helper.make_node("Constant", [], ["least"], value=value), helper.make_node("Equal", ["x", "least"], ["y"])]
    yield "equal-to-infinity", nodes, {"x": np.array([0, -np.inf], np.float32)}, ["y"], 23
    yield case("cast-to-integers", "Cast", [5 * real(2, 3)], to=7)
    yield case("cast-to-condition", "Cast", [a], to=9)
    yield case("castlike", "CastLike", [a, real(1)])


def moves():
    a = real(2, 3, 4)
    yield case("identity", "Identity", [a])
    yield case("dropout", "Dropout", [a], results=2)
    yield case("shape", "Shape", [a], start=-2, end=5)
    yield case("size", "Size", [a])
    yield case("squeeze", "Squeeze", [real(1, 3, 1), ints(-1)])
    yield case("squeeze-all", "Squeeze", [real(1, 3, 1)])
    yield case("unsqueeze", "Unsqueeze", [real(3), ints(-1, 0)])
    yield case("reshape", "Reshape", [a, ints(0, -1)])
    yield case("reshape-across", "Reshape", [a, ints(4, 3, 2)])
    yield case("flatten", "Flatten", [a], axis=2)
    yield case("transpose", "Transpose", [a], perm=[2, 0, 1])
    yield case("transpose-all", "Transpose", [a])
    yield case("expand", "Expand", [real(3, 1), ints(2, 1, 4)])
    yield case("tile", "Tile", [real(2, 3), ints(2, 2)])
    yield case("slice", "Slice", [a, ints(1, 0), ints(9, 2), ints(2, -2), ints(2, 1)])
    yield case("slice-reversed", "Slice", [a, ints(-1), ints(-99), ints(1), ints(-1)])
    yield case("split", "Split", [real(7, 2)], results=3, axis=0, num_outputs=3)
    yield case("split-uneven", "Split", [real(2, 7), ints(1, 4, 2)], results=3, axis=-1)
    yield case("concat", "Concat", [a, real(2, 1, 4)], axis=-2)
    yield case("range", "Range", [scalar(7), scalar(-2), scalar(-3)])
    value = helper.make_tensor("value", 1, [1], [2.5])
    yield case("constantofshape", "ConstantOfShape", [ints(2, 3)], value=value)
    yield case("trilu-lower", "Trilu", [real(3, 4), scalar(-1)], upper=0)
    yield case("trilu-upper", "Trilu", [real(2, 3, 3)])
    nodes = [
        helper.make_node("SplitToSequence", ["x", "n"], ["parts"], axis=1),
        helper.make_node("SequenceAt", ["parts", "i"], ["y"]),
    ]
    yield "sequence", nodes, {"x": real(2, 5), "n": scalar(2), "i": scalar(-1)}, ["y"], 23


def picks():
    a = real(3, 4)
    yield case("gather", "Gather", [a, ints(-1, 0).reshape(1, 2)], axis=1)
    yield case("gathernd", "GatherND", [real(2, 3, 4), ints(2, -1).reshape(2, 1)], batch_dims=1)
    yield case("gatherelements", "GatherElements", [a, whole(-3, 3, 2, 4)])
    yield case("onehot", "OneHot", [ints(0, -1, 7), scalar(3), np.array([2, 5], np.float32)], axis=0)
    yield case("scatterelements", "ScatterElements", [a, ints(3, 0, 1, 2, 2, 1).reshape(3, 2), real(3, 2)], axis=1)
    operands = [a, ints(1, 1, 0, 2).reshape(2, 2), real(2, 2)]
    yield case("scatterelements-add", "ScatterElements", operands, reduction="add")
    yield case("scatternd", "ScatterND", [a, ints(2, 0).reshape(2, 1), real(2, 4)])
    yield case("scatternd-add", "ScatterND", [a, ints(2, 0, 2, 0).reshape(2, 2), real(2)], reduction="add")
    range_of = helper.make_node("Range", ["one", "three", "one"], ["rows"])
    nodes = [
        range_of,
        helper.make_node("Unsqueeze", ["rows", "last"], ["indices"]),
        helper.make_node("ScatterND", ["x", "indices", "u"], ["y"]),
    ]
    given = {"x": a, "u": real(2, 4), "one": scalar(1), "three": scalar(3), "last": ints(1)}
    yield "scatternd-of-a-range", nodes, given, ["y"], 23
    nodes = [
        helper.make_node("Greater", ["c", "zero"], ["isOn"]),
        helper.make_node("NonZero", ["isOn"], ["places"]),
        helper.make_node("Gather", ["places", "first"], ["rows"], axis=0),
        helper.make_node("Gather", ["x", "rows"], ["taken"]),
        helper.make_node("MatMul", ["taken", "w"], ["worked"]),
        helper.make_node("Unsqueeze", ["rows", "last"], ["indices"]),
        helper.make_node("ScatterND", ["base", "indices", "worked"], ["y"], reduction="add"),
    ]
    given = {"c": ints(1, 0, 1), "zero": scalar(0), "first": scalar(0), "x": a, "w": real(4, 2), "last": ints(1)}
    yield "experts-of-places", nodes, {**given, "base": real(3, 2)}, ["y"], 23


def over_axes():
    a = real(2, 3, 4)
    yield case("reducesum", "ReduceSum", [a, ints(-1, 0)], keepdims=0)
    yield case("reducesum-nothing", "ReduceSum", [a, ints()], noop_with_empty_axes=1)
    for op in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL2"):
        yield case(op.lower(), op, [a])
    yield case("softmax", "Softmax", [a], axis=1)
    yield case("logsoftmax", "LogSoftmax", [a])
    yield case("topk", "TopK", [a, ints(2)], results=2)
    yield case("topk-least", "TopK", [a, ints(2)], results=2, axis=1, largest=0)
    yield case("cumsum", "CumSum", [a, scalar(1)], exclusive=1, reverse=1)
    yield case("matmul", "MatMul", [real(2, 1, 3, 4), real(3, 4, 2)])
    yield case("matmul-of-vectors", "MatMul", [real(4), real(2, 4, 3)])
    yield case("gemm", "Gemm", [real(3, 2), real(4, 3), real(4)], transA=1, transB=1, alpha=0.5, beta=2.0)
    yield case("rmsnormalization", "RMSNormalization", [a, real(4)], epsilon=1e-3)


def attentions():
    q, k, v = real(1, 4, 2, 8), real(1, 2, 3, 8), real(1, 2, 3, 6)
    yield case("attention", "Attention", [q, k, v], scale=0.3, softcap=2.0)
    yield case("attention-mask", "Attention", [q, k, v, np.array([[1, 0, 1], [0, 0, 0]], bool)])
    past = [real(1, 2, 2, 8), real(1, 2, 2, 6)]
    yield case("attention-causal", "Attention", [q, k, v, None, *past], results=3, is_causal=1)
    flat = [real(2, 3, 8), real(2, 3, 4), real(2, 3, 4), real(2, 1, 3, 3)]
    yield case("attention-flat", "Attention", flat, q_num_heads=4, kv_num_heads=2)
    yield case("attention-lengths", "Attention", [q, k, v, None, None, None, ints(2)], opset=24, is_causal=1)
    yield case("attention-window", "Attention", [q, k, v], opset=25, left_window_size=0, right_window_size=1)
    x, table = real(1, 2, 3, 6), [real(5, 2), real(5, 2)]
    positions = ints(4, 0, 2).reshape(1, 3)
    yield case("rotaryembedding", "RotaryEmbedding", [x, *table, positions], rotary_embedding_dim=4)
    of_rows = [real(2, 3, 8), real(2, 3, 2), real(2, 3, 2)]
    yield case("rotaryembedding-pairs", "RotaryEmbedding", of_rows, num_heads=2, interleaved=1)


def of_microsoft():
    def own(name, op, operands, results=1, **attributes):
        return case(name, op, operands, results, opset=21, domain="com.microsoft", **attributes)

    q, k, v = real(1, 3, 32), real(1, 3, 32), real(1, 3, 32)
    past = [real(1, 2, 2, 16), real(1, 2, 2, 16)]
    yield own("multiheadattention", "MultiHeadAttention", [q, k, v], num_heads=2, unidirectional=1)
    operands = [q, k, v, None, None, real(1, 2, 3, 5), *past]
    yield own("multiheadattention-past", "MultiHeadAttention", operands, 3, num_heads=2)
    table = [real(5, 2), real(5, 2)]
    yield own("rotary-from", "RotaryEmbedding", [real(1, 3, 8), ints(1), *table])
    skipped = [real(1, 2, 4), real(1, 2, 4), real(4), real(4)]
    name, (node,), given, _, opset = own("skipnorm", "SkipSimplifiedLayerNormalization", skipped, epsilon=1e-3)
    node.output.extend(["", "", "y3"])
    yield name, [node], given, ["y0", "y3"], opset
    yield own("gelu-microsoft", "Gelu", [real(2, 3)])
    yield own("fusedmatmul", "FusedMatMul", [real(2, 3, 2), real(2, 4, 3)], transA=1, transB=1, alpha=0.5)
    yield own("quickgelu", "QuickGelu", [real(2, 3)])
    yield own("quickgelu-silu", "QuickGelu", [real(2, 3)], alpha=1.0)
    yield own("fusedgemm", "FusedGemm", [real(3, 2), real(4, 2), real(4)], transB=1, activation="Sigmoid")


def quantised():
    def packed(*shape):
        return whole(0, 256, *shape).astype(np.uint8)

    def scales(*shape):
        return (0.01 + np.abs(real(*shape)) / 10).astype(np.float32)

    x = whole(-128, 128, 2, 6).astype(np.int8)
    yield case("dequantizelinear", "DequantizeLinear", [x, scalar(0.5, np.float32), scalar(3, np.int8)])
    yield case("dequantizelinear-axis", "DequantizeLinear", [x, scales(2)], axis=0)
    yield case("dequantizelinear-blocks", "DequantizeLinear", [x, scales(2, 2), x[:, :2]], axis=1, block_size=3)

    def own(name, op, operands, **attributes):
        return case(name, op, operands, opset=21, domain="com.microsoft", **attributes)

    rows = real(2, 40)
    sizes = {"K": 40, "N": 3, "block_size": 16, "accuracy_level": 1}
    yield own("matmulnbits", "MatMulNBits", [rows, packed(3, 3, 8), scales(3, 3)], bits=4, **sizes)
    operands = [rows, packed(3, 3, 8), scales(3, 3), packed(3, 2), None, real(3)]
    yield own("matmulnbits-zeros", "MatMulNBits", operands, bits=4, **sizes)
    operands = [packed(5, 16), ints(4, 0), scales(5, 2), packed(5, 1)]
    yield own("gatherblockquantized", "GatherBlockQuantized", operands, block_size=16, bits=4)


def experts():
    def own(name, op, operands, **attributes):
        return case(name, op, operands, opset=21, domain="com.microsoft", k=2, **attributes)

    x, router = real(3, 8), real(3, 4)
    fused = {"activation_type": "swiglu", "swiglu_fusion": 1}
    layers = [real(4, 8, 8), real(4, 8), real(4, 8, 4), real(4, 8)]
    yield own("moe", "MoE", [x, router, *layers], normalize_routing_weights=1, **fused)
    layers = [real(4, 4, 8), None, real(4, 8, 4)]
    yield own("moe-silu", "MoE", [x.reshape(1, 3, 8), router, *layers], activation_type="silu")
    weights = [whole(0, 256, 4, 32, 16).astype(np.uint8), (np.abs(real(4, 32, 2)) / 50).astype(np.float32), None]
    weights += [whole(0, 256, 4, 32, 8).astype(np.uint8), (np.abs(real(4, 32, 1)) / 50).astype(np.float32)]
    bits = {"expert_weight_bits": 4, "block_size": 16, "normalize_routing_weights": 1}
    yield own("qmoe", "QMoE", [real(3, 32), router, *weights], **bits, **fused)


def own_cases():
    global generator
    groups = (element_wise, conditions, moves, picks, over_axes, attentions, of_microsoft, quantised, experts)
    for seed, group in enumerate(groups):
        generator = np.random.default_rng(seed)
        yield from group()
