#!/usr/bin/env python3
"""own_tables.py MODEL OUTPUT: the model in folder MODEL, where each layer has a copy of the rotary tables of all."""
import os
import sys

import onnx


def main(folder, output):
    model = onnx.load(os.path.join(folder, "model.onnx"))
    tables = {tensor.name: tensor for tensor in model.graph.initializer if tensor.name in ("cos_cache", "sin_cache")}
    for layer, node in enumerate(one for one in model.graph.node if one.op_type == "GroupQueryAttention"):
        for i, name in enumerate(node.input):
            if name in tables:
                node.input[i] = f"{name}.{layer}"
                model.graph.initializer.add().CopyFrom(tables[name])
                model.graph.initializer[-1].name = node.input[i]
    onnx.save(model, os.path.join(output, "model.onnx"))


if __name__ == "__main__":
    main(*sys.argv[1:])
