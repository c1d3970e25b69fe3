"""check_widened.py CHECKPOINT: f16 and mixed element types compute what the same values in f32 do, bit for bit.

Every tensor of the checkpoint is stored anew as f16, bf16 or f32, in turn, and once more as f32 with the same values.
"""
import json
import os
import shutil
import struct
import sys
import tempfile

from bundles import Failure, compile_into

NAMES = ["F16", "BF16", "F32"]


def floats(data, dtype):
    if dtype == "F32":
        return struct.unpack(f"<{len(data) // 4}f", data)
    halves = struct.unpack(f"<{len(data) // 2}H", data)
    return struct.unpack(f"<{len(halves)}f", struct.pack(f"<{len(halves)}I", *(half << 16 for half in halves)))


def stored(values, dtype):
    """The values cut to `dtype`."""
    if dtype == "F16":
        return struct.pack(f"<{len(values)}e", *values)
    if dtype == "F32":
        return struct.pack(f"<{len(values)}f", *values)
    words = struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values))
    return struct.pack(f"<{len(values)}H", *(word >> 16 for word in words))


def widened(data, dtype):
    if dtype == "F16":
        values = struct.unpack(f"<{len(data) // 2}e", data)
        return struct.pack(f"<{len(values)}f", *values)
    values = floats(data, dtype)
    return struct.pack(f"<{len(values)}f", *values)


def write(folder, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def read(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    header.pop("__metadata__", None)
    return {name: (e["dtype"], e["shape"], data[slice(*e["data_offsets"])]) for name, e in header.items()}


def variants(source, folder):
    """Folders of the checkpoint with mixed types, and with the same values as f32."""
    mixed, wide = {}, {}
    for number, (name, (dtype, shape, data)) in enumerate(sorted(read(f"{source}/model.safetensors").items())):
        kind = NAMES[number % 3]
        narrow = stored(floats(data, dtype), kind)
        mixed[name], wide[name] = (kind, shape, narrow), ("F32", shape, widened(narrow, kind))
    for name, tensors in (("mixed", mixed), ("wide", wide)):
        os.makedirs(f"{folder}/{name}")
        shutil.copy(f"{source}/config.json", f"{folder}/{name}")
        write(f"{folder}/{name}", tensors)
    return f"{folder}/mixed", f"{folder}/wide"


def main(source):
    with tempfile.TemporaryDirectory() as folder:
        logits = [
            compile_into(f"{variant}-bundle", variant).text(
                "logits", "--prompt-ids", "1,2,3,5,8,13,21,34,55", "--all", "--json"
            )
            for variant in variants(source, folder)
        ]
    if logits[0] != logits[1]:
        raise Failure(f"{source}: mixed element types and f32 differ: {logits[0][:80]} and {logits[1][:80]}")


try:
    main(sys.argv[1])
except Failure as failure:
    sys.exit(str(failure))
