"""Stores the weights of a float32 model in formats of few bits, in every way that ONNX has for them.

A format says how DequantizeLinear reads a tensor: type, axis, block and whether there are zero points; those whose
names begin with nbits use com.microsoft's MatMulNBits and GatherBlockQuantized instead where a product or a lookup
reads the weights. Values are rounded without care: what is compared is what is computed with the result.
"""
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from onnx import helper, numpy_helper

from make.quantise import pack

FEW = 32  # smaller tensors are no weights


@dataclass(frozen=True)
class Format:
    type: type  # of the numbers; of nbits their count
    axis: int | None = None  # None: one scale for the tensor
    block: int = 0  # 0: one scale for each index of the axis
    zeros: bool = False
    scale: type = np.float32
    vectors: bool = False  # norms, too


FORMATS = {
    "int8-tensor": Format(np.int8, vectors=True),
    "uint8-axis": Format(np.uint8, 1, zeros=True),
    "int8-axis-0": Format(np.int8, 0),
    "int8-blocks-3": Format(np.int8, 0, 3, zeros=True),
    "int16-tensor": Format(np.int16),
    "int4-blocks": Format(ml_dtypes.int4, 0, 16),
    "uint4-blocks-last": Format(ml_dtypes.uint4, 1, 5, zeros=True),
    "uint4-half-scales": Format(ml_dtypes.uint4, 0, 32, zeros=True, scale=np.float16),
    "fp8-tensor": Format(ml_dtypes.float8_e4m3fn, vectors=True),
    "fp8-axis": Format(ml_dtypes.float8_e4m3fn, 1),
    "fp8-blocks": Format(ml_dtypes.float8_e5m2, 0, 16, scale=ml_dtypes.bfloat16),
    "fp8-one-zero": Format(ml_dtypes.float8_e4m3fnuz, 0),
    "nbits-4": Format(4, block=16),
    "nbits-4-zeros": Format(4, block=16, zeros=True),
    "nbits-4-real-zeros": Format(4, block=32, zeros=True, scale=np.float16),
    "nbits-8": Format(8, block=16, zeros=True),
}


def span(kind):
    """(lowest, highest) number of a type."""
    info = ml_dtypes.iinfo(kind) if np.dtype(kind).name in ("int4", "uint4") or np.dtype(kind).kind in "iu" \
        else ml_dtypes.finfo(kind)
    return float(info.min), float(info.max)


def grouped(values, axis, block):
    """[groups, elements] of the numbers that share a scale, padded with 0, and back."""
    if axis is None:
        return values.reshape(1, -1)
    moved = np.moveaxis(values, axis, -1)
    if not block:
        return np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    padding = -moved.shape[-1] % block
    return np.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, padding)]).reshape(*moved.shape[:-1], -1, block)


def scales_of(values, of):
    """Scales and zero points in the shape that DequantizeLinear takes."""
    low, high = span(of.type)
    groups = grouped(values, of.axis, of.block)
    if of.zeros:
        least, most = np.minimum(groups.min(-1), 0), np.maximum(groups.max(-1), 0)
        scales = np.maximum((most - least) / (high - low), 1e-6).astype(of.scale)
        zeros = np.clip(np.rint(low - least / scales.astype(np.float32)), low, high)
    else:
        scales = np.maximum(np.abs(groups).max(-1) / high, 1e-6).astype(of.scale)
        zeros = np.zeros(scales.shape)
    if of.block:
        return np.moveaxis(scales, -1, of.axis), np.moveaxis(zeros, -1, of.axis)
    return (scales.reshape(()), zeros.reshape(())) if of.axis is None else (scales, zeros)


def spread(values, shape, of):
    """What belongs to each number."""
    if of.block:
        return np.repeat(values, of.block, of.axis).take(range(shape[of.axis]), of.axis)
    return values if of.axis is None else values.reshape([-1 if i == of.axis else 1 for i in range(len(shape))])


class Store:
    """The rewrite of one model."""

    def __init__(self, model, of):
        self.model, self.of = model, of
        self.stored = {t.name: t for t in model.graph.initializer}
        self.done = {}

    def add(self, values, name):
        self.model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def dequantize(self, name, values):
        """The nodes that give a tensor by DequantizeLinear, of the type that its reader takes."""
        of = self.of
        scales, zeros = scales_of(values, of)
        low, high = span(of.type)
        steps = values / spread(scales, values.shape, of).astype(np.float32) + spread(zeros, values.shape, of)
        whole = np.dtype(of.type).kind in "iu" or np.dtype(of.type).name in ("int4", "uint4")
        numbers = np.clip(np.rint(steps) if whole else steps, low, high)
        inputs = [self.add(numbers.astype(of.type), f"{name}.numbers"), self.add(scales, f"{name}.scales")]
        if of.zeros:
            inputs.append(self.add(zeros.astype(of.type), f"{name}.zeros"))
        had = {} if of.axis is None else {"axis": of.axis, **({"block_size": of.block} if of.block else {})}
        if of.scale == np.float32:
            return [helper.make_node("DequantizeLinear", inputs, [name], **had)]
        return [helper.make_node("DequantizeLinear", inputs, [f"{name}.half"], **had),
                helper.make_node("Cast", [f"{name}.half"], [name], to=1)]

    def rows(self, name, values):
        """(numbers as bytes, scales, packed zero points or None) of rows in blocks; the last block is filled."""
        of, top = self.of, 2 ** self.of.type - 1
        groups = grouped(values, 1, of.block)
        least, most = np.minimum(groups.min(-1), 0), np.maximum(groups.max(-1), 0)
        scales = np.maximum((most - least) / top, 1e-6).astype(of.scale)
        wide = scales.astype(np.float32)
        zeros = np.rint(-least / wide) if of.zeros else np.full(scales.shape, 2 ** (of.type - 1))
        numbers = np.clip(np.rint(groups / wide[..., None]) + zeros[..., None], 0, top).astype(np.int64)
        if of.zeros and of.scale != np.float32:
            stored = (zeros + 0.25).astype(of.scale)  # zero points that are no integers
        else:
            stored = pack(zeros.astype(np.int64), of.type) if of.zeros else None
        return pack(numbers, of.type), scales, stored

    def nbits(self, node):
        """A product or a lookup of a stored matrix by com.microsoft's ops; None: it is of another form."""
        name = node.input[0] if node.op_type == "Gather" else node.input[1]
        values = numpy_helper.to_array(self.stored[name])
        if values.ndim != 2 or values.size < FEW or values.dtype != np.float32:
            return None
        values = values if node.op_type == "Gather" else values.T
        numbers, scales, zeros = self.rows(name, values)
        if node.op_type == "Gather":
            if zeros is not None and zeros.dtype != np.uint8:
                return None
            numbers = numbers.reshape(len(values), -1)[:, :values.shape[1] * self.of.type // 8]
        given = [self.add(numbers, f"{node.output[0]}.numbers"), self.add(scales, f"{node.output[0]}.scales")]
        given += [] if zeros is None else [self.add(zeros, f"{node.output[0]}.zeros")]
        if node.op_type == "Gather":
            return helper.make_node("GatherBlockQuantized", [given[0], node.input[1], *given[1:]], node.output,
                                    domain="com.microsoft", bits=self.of.type, block_size=self.of.block)
        return helper.make_node("MatMulNBits", [node.input[0], *given], node.output, domain="com.microsoft",
                                K=values.shape[1], N=len(values), bits=self.of.type, block_size=self.of.block)

    def few_bits(self, name):
        """Whether a tensor is a weight that the format takes."""
        dims = self.stored[name].dims if name in self.stored else ()
        rank = 1 if self.of.vectors else 2
        return name in self.stored and self.stored[name].data_type == 1 and len(dims) >= rank and np.prod(dims) >= FEW

    def run(self):
        nodes = []
        for node in self.model.graph.node:
            made = None
            if isinstance(self.of.type, int):
                place = {"Gather": 0, "MatMul": 1}.get(node.op_type)
                made = self.nbits(node) if place is not None and node.input[place] in self.stored else None
            else:
                for name in node.input:
                    if self.few_bits(name) and name not in self.done:
                        self.done[name] = True
                        nodes.extend(self.dequantize(name, numpy_helper.to_array(self.stored[name])))
            nodes.append(made or node)
        del self.model.graph.node[:]
        self.model.graph.node.extend(nodes)
        used = {name for node in nodes for name in node.input} - set(self.done)
        kept = [t for t in self.model.graph.initializer if t.name in used]
        del self.model.graph.initializer[:]
        self.model.graph.initializer.extend(kept)
        for imported in self.model.opset_import:
            imported.version = max(imported.version, 21) if imported.domain == "" else imported.version
        if not any(i.domain == "com.microsoft" for i in self.model.opset_import):
            self.model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        self.model.ir_version = max(self.model.ir_version, 10)
        return self.model


def stored_as(model, form):
    return Store(model, FORMATS[form]).run()
