#!/usr/bin/env python3
"""Write a model with its weights of few bits as float32: what k2c compile --widen computes with.

  dequantise.py MODEL.onnx OUT.onnx

A weight is (number - zero point) * scale, one product of float32. Nodes that read such weights become those that read
float32: MatMulNBits MatMul, QMoE MoE, GatherBlockQuantized Gather; DequantizeLinear of a constant is a constant.
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper


def unpack(packed, bits):
    """The numbers of bytes, of 4 bits two in each, the first in its low half."""
    if bits == 8:
        return packed.astype(np.float32)
    return np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1).astype(np.float32)


def along(values, size, block, axis):
    """Scales or zero points, one for each of `size` numbers of an axis that has one for each block of it."""
    return np.repeat(values, block, axis).take(range(size), axis).astype(np.float32)


class Widen:
    """The rewrite of one model."""

    def __init__(self, model):
        self.model, self.made = model, 0
        self.stored = {t.name: t for t in model.graph.initializer}

    def array(self, node, place):
        """An input of a node that is a constant; None where it is left out or computed."""
        name = node.input[place] if len(node.input) > place else ""
        return numpy_helper.to_array(self.stored[name]) if name in self.stored else None

    def added(self, values):
        self.made += 1
        name = f"widened_{self.made}"
        self.model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(values, np.float32), name))
        return name

    def rows(self, node, places, bits, block, columns):
        """Weights [.., columns] in blocks along their last axis; of block 0 a scale for each row."""
        packed, scales, zeros = (self.array(node, p) for p in places)
        packed = packed.reshape(*scales.shape[:-1], -1) if block else packed
        numbers = unpack(packed, bits)[..., :columns]
        block = block or columns
        count = -(-columns // block)
        scales = scales.reshape(*numbers.shape[:-1], count)
        if zeros is None:
            zeros = np.full(scales.shape, 2 ** (bits - 1))
        elif zeros.dtype == np.uint8:
            by_rows = zeros.ndim == numbers.ndim - 1 and zeros.shape[-1] < numbers.shape[-2] * count
            zeros = unpack(zeros, bits) if by_rows else unpack(zeros.reshape(*scales.shape[:-1], -1), bits)[..., :count]
        zeros = zeros.reshape(scales.shape)
        return (numbers - along(zeros, columns, block, -1)) * along(scales, columns, block, -1)

    def matmulnbits(self, node, had):
        block = had["block_size"]
        scales, weights = self.array(node, 2), self.array(node, 1)
        scales = scales.reshape(had["N"], -1)
        self.stored[node.input[2]] = numpy_helper.from_array(scales, node.input[2])
        self.stored[node.input[1]] = numpy_helper.from_array(weights.reshape(had["N"], -1), node.input[1])
        weights = self.rows(node, (1, 2, 3), had.get("bits", 4), block, had["K"])
        product = f"{node.output[0]}.product" if len(node.input) > 5 and node.input[5] else node.output[0]
        yield helper.make_node("MatMul", [node.input[0], self.added(weights.T)], [product])
        if product != node.output[0]:
            yield helper.make_node("Add", [product, node.input[5]], node.output)

    def gatherblockquantized(self, node, had):
        block, axis, bits = had.get("block_size", 128), had.get("quantize_axis", 1), had.get("bits", 4)
        data, scales, zeros = (self.array(node, p) for p in (0, 2, 3))
        is_bytes = data.dtype == np.uint8
        numbers = unpack(data, bits) if is_bytes else data.astype(np.float32)
        size = numbers.shape[axis]
        if zeros is None:
            zeros = np.full(scales.shape, 2 ** (bits - 1) if is_bytes else 0)
        elif is_bytes:
            zeros = unpack(zeros, bits)[..., :scales.shape[-1]]
        table = (numbers - along(zeros, size, block, axis)) * along(scales, size, block, axis)
        yield helper.make_node("Gather", [self.added(table), node.input[1]], node.output,
                               axis=had.get("gather_axis", 0))

    def dequantizelinear(self, node, had):
        numbers, scales, zeros = (self.array(node, p) for p in range(3))
        if numbers is None:
            yield node
            return
        axis, block = had.get("axis", 1) % max(numbers.ndim, 1), had.get("block_size", 0)
        zeros = np.zeros(scales.shape) if zeros is None else zeros
        if block:
            scales, zeros = (along(v, numbers.shape[axis], block, axis) for v in (scales, zeros))
        elif scales.size > 1:
            shape = [-1 if i == axis else 1 for i in range(numbers.ndim)]
            scales, zeros = scales.reshape(shape), zeros.reshape(shape)
        weights = (numbers.astype(np.float32) - zeros.astype(np.float32)) * scales.astype(np.float32)
        yield helper.make_node("Identity", [self.added(weights)], node.output)

    def qmoe(self, node, had):
        bits, block = had["expert_weight_bits"], had.get("block_size", 0)
        given = lambda i: node.input[i] if len(node.input) > i else ""
        inputs = [*node.input[:2]]
        for weights, zeros in ((2, 11), (5, 12), (8, 13)):
            if given(weights):
                columns = self.array(node, weights).shape[-1] * 8 // bits
                widened = self.rows(node, (weights, weights + 1, zeros), bits, block, columns)
                inputs += [self.added(widened), given(weights + 2)]
            else:
                inputs += ["", ""]
        kept = {k: v for k, v in had.items() if k not in ("expert_weight_bits", "block_size", "quant_type")}
        yield helper.make_node("MoE", inputs, node.output, domain="com.microsoft", **kept)

    def run(self):
        nodes, rules = [], {"MatMulNBits": self.matmulnbits, "GatherBlockQuantized": self.gatherblockquantized,
                            "DequantizeLinear": self.dequantizelinear, "QMoE": self.qmoe}
        for node in self.model.graph.node:
            rule = rules.get(node.op_type)
            had = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            nodes += rule(node, had) if rule else [node]
        del self.model.graph.node[:]
        self.model.graph.node.extend(nodes)
        used = {name for node in nodes for name in node.input}
        kept = [t for t in self.model.graph.initializer if t.name in used]
        del self.model.graph.initializer[:]
        self.model.graph.initializer.extend(kept)
        return self.model


def dequantised(model):
    return Widen(model).run()


if __name__ == "__main__":
    onnx.save(dequantised(onnx.load(Path(sys.argv[1]))), sys.argv[2])
