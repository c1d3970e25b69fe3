"""Checkpoints in scaled e4m3 blocks: read, dequantised, damaged. Standard library only."""
import json
import os
import shutil
import struct

BLOCK = 128
SUFFIX = "_scale_inv"


class Tensors:
    """model.safetensors of a folder: name -> (dtype, shape, bytes), to be altered and written elsewhere."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "model.safetensors"), "rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header, data = json.loads(file.read(size)), file.read()
        header.pop("__metadata__", None)
        self.entries = {
            name: (entry["dtype"], entry["shape"], bytearray(data[slice(*entry["data_offsets"])]))
            for name, entry in header.items()
        }
        with open(os.path.join(folder, "config.json")) as file:
            self.config = json.load(file)

    def write(self, folder):
        """A checkpoint in `folder`: these tensors and this config beside the other files of the source."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder)
        header, data = {}, bytearray()
        for name, (dtype, shape, values) in self.entries.items():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
            data += values
        text = json.dumps(header).encode()
        with open(os.path.join(folder, "model.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data)
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(self.config, file)
        return folder


def value_of(code):
    """e4m3fn: sign, four bits of exponent with bias 7, three of mantissa; exponent 0 has no hidden one."""
    exponent, mantissa = code >> 3 & 15, code & 7
    magnitude = mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return -magnitude if code & 0x80 else magnitude


VALUES = [value_of(code) for code in range(256)]


def dequantise(tensors):
    """Every e4m3 tensor becomes f32: code * scale [i // 128][j // 128], exact in a double and rounded once."""
    for name in [name for name, entry in tensors.entries.items() if entry[0] == "F8_E4M3"]:
        _, (rows, columns), codes = tensors.entries[name]
        _, (_, across), bytes_of_scales = tensors.entries.pop(name + SUFFIX)
        scales = struct.unpack(f"<{len(bytes_of_scales) // 4}f", bytes_of_scales)
        wide = [
            VALUES[codes[i * columns + j]] * scales[i // BLOCK * across + j // BLOCK]
            for i in range(rows)
            for j in range(columns)
        ]
        tensors.entries[name] = ("F32", [rows, columns], bytearray(struct.pack(f"<{len(wide)}f", *wide)))
    del tensors.config["quantization_config"]
