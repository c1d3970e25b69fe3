"""check_blocks_refused.py CHECKPOINT FOLDER: damaged scaled blocks stop the compile with one message.

Each case alters a copy of the checkpoint in FOLDER and names what the message must say.
"""
import os
import struct
import subprocess
import sys

from blocks import SUFFIX, Tensors, dequantise
from golden import Report

WEIGHT = "model.layers.1.self_attn.kv_b_proj.weight"
SCALES = WEIGHT + SUFFIX


def code(value):
    def alter(tensors):
        tensors.entries[WEIGHT][2][145] = value

    return alter


def scale(value):
    def alter(tensors):
        tensors.entries[SCALES][2][4:8] = struct.pack("<f", value)

    return alter


def missing_scales(tensors):
    del tensors.entries[SCALES]


def transposed_scales(tensors):
    dtype, (rows, columns), data = tensors.entries[SCALES]
    tensors.entries[SCALES] = (dtype, [rows * columns, 1], data)


def bf16_scales(tensors):
    _, shape, data = tensors.entries[SCALES]
    tensors.entries[SCALES] = ("BF16", shape, data[: len(data) // 2])


def unsaid(tensors):
    del tensors.config["quantization_config"]


def converted(tensors):
    quantization = tensors.config["quantization_config"]
    dequantise(tensors)
    tensors.config["quantization_config"] = quantization


def quantization(key, value):
    def alter(tensors):
        tensors.config["quantization_config"][key] = value

    return alter


NO_SCALE = ", not zero or a number from 2^-126 to 2^119; the checkpoint is damaged: download it again"
CASES = [
    ("NaN", code(0x7F), f"tensor '{WEIGHT}': element 145 is NaN or infinite"),
    ("negative NaN", code(0xFF), f"tensor '{WEIGHT}': element 145 is NaN or infinite"),
    ("negative scale", scale(-0.25), f"tensor '{SCALES}': scale [0, 1] is -0.25{NO_SCALE}"),
    ("infinite scale", scale(float("inf")), f"tensor '{SCALES}': scale [0, 1] is inf{NO_SCALE}"),
    ("scale NaN", scale(float("nan")), f"tensor '{SCALES}': scale [0, 1] is nan{NO_SCALE}"),
    ("missing scales", missing_scales, f"tensor '{WEIGHT}' has no scales: tensor '{SCALES}' is missing"),
    (
        "scales of another shape",
        transposed_scales,
        f"tensor '{SCALES}' has shape [4, 1], blocks of [128, 128] of [192, 144] have [2, 2] scales",
    ),
    (
        "scales of another type",
        bf16_scales,
        f"tensor '{SCALES}' has element type bf16, scales are f32; take the weights from the published model",
    ),
    (
        "FP8 unsaid",
        unsaid,
        "is FP8, which quantization_config of config.json does not say; take config.json from the published model, or "
        "convert the tensor to bf16",
    ),
    (
        "no FP8",
        converted,
        "has element type f32, quantization_config of config.json says f8E4M3FN; remove quantization_config if the "
        "weights were converted",
    ),
    ("e5m2", quantization("fmt", "e5m2"), 'FP8 format "e5m2" is not in this build'),
    ("other blocks", quantization("weight_block_size", [64, 128]), "weight_block_size [64,128] is not in this build"),
    ("other method", quantization("quant_method", "gptq"), 'quantization method "gptq" is not in this build'),
    (
        "some of a role",
        quantization("modules_to_not_convert", ["model.layers.1.self_attn"]),
        "quantization_config leaves 'model.layers.1.self_attn.q_a_proj.weight' alone and not "
        "'model.layers.0.self_attn.q_a_proj.weight'; tensors of one role must be stored alike; convert the tensors of "
        "'model.layers.{layer}.self_attn.q_a_proj.weight' to one type",
    ),
]


def main():
    source, folder = sys.argv[1:]
    report = Report(f"damaged copies of {source}")
    for name, alter, message in CASES:
        tensors = Tensors(source)
        alter(tensors)
        tensors.write(os.path.join(folder, "checkpoint"))
        command = ["k2c", "compile", os.path.join(folder, "checkpoint"), "-o", os.path.join(folder, "bundle")]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        report.equal(done.returncode, 1, f"{name}: exit code")
        report.check(done.stderr.count("error:") == 1 and message in done.stderr, f"{name}: {done.stderr.strip()}")
        report.check(not os.path.exists(os.path.join(folder, "bundle", "run")), f"{name}: nothing that runs is left")
    sys.exit(report.finish())


if __name__ == "__main__":
    main()
