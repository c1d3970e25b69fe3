"""Models written by onnxruntime-genai's builder, and the weights that its files of 4 bits stand for."""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from make.checkpoints import float32_model, folder_of, with_weights
from make.quantise import dequantise


def genai(folder, name, precision="fp32", options=(), provider="cpu"):
    """python -m onnxruntime_genai.models.builder"""
    with tempfile.TemporaryDirectory() as temporary:
        command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(folder_of(name, temporary)),
                   "-o", str(Path(temporary) / "out"), "-p", precision, "-e", provider,
                   "-c", str(Path(temporary) / "c")]
        if options:
            command += ["--extra_options", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{name}: the builder ends with {done.returncode}: {done.stderr[-2000:]}")
        for file in ("model.onnx", "model.onnx.data"):
            shutil.copyfile(Path(temporary) / "out" / file, folder / file)
    model = float32_model(name)
    if precision == "int4":
        take_rounded(model, folder)
    if precision == "fp16":
        with_weights(model, lambda weight: weight.half().float())
    return model


def quantised_weights(folder):
    """name of the projection -> float32 [out, in] of each MatMulNBits or DequantizeLinear"""
    model = onnx.load(folder / "model.onnx")
    stored = {t.name: t for t in model.graph.initializer}
    found = {}
    for node in model.graph.node:
        if node.op_type == "MatMulNBits":
            codes, scales = (numpy_helper.to_array(stored[n]) for n in node.input[1:3])
            rows = codes.shape[0]
            values = dequantise(codes.reshape(rows, -1), scales, None, 4, codes.shape[2] * 2)
        elif node.op_type == "DequantizeLinear":
            codes, scales = (numpy_helper.to_array(stored[n]).astype(np.float32) for n in node.input[:2])
            values = (codes * np.repeat(scales, codes.shape[0] // scales.shape[0], axis=0)).T
        else:
            continue
        found[re.sub(r"\.MatMul\.weight.*", "", node.input[1 if node.op_type == "MatMulNBits" else 0])] = values
    return found


def take_rounded(model, folder):
    """Puts the weights of a file of 4 bits into the model that it was made from."""
    for name, values in quantised_weights(folder).items():
        values = torch.from_numpy(np.ascontiguousarray(values))
        name = name.replace(".attn.", ".self_attn.")
        if name.endswith("qkv_proj"):
            parts = [model.get_submodule(name.replace("qkv_proj", f"{p}_proj")) for p in "qkv"]
            for part, rows in zip(parts, values.split([p.weight.shape[0] for p in parts])):
                part.weight.data = rows
        else:
            model.get_submodule(name).weight.data = values
