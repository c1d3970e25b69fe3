"""Edits a checkpoint of one file, or a file of any kind.

usage: edit_checkpoint.py swap FILE TENSOR         its two dimensions change places: another shape of the same size
       edit_checkpoint.py add FILE TENSOR          a tensor that no model has
       edit_checkpoint.py set FILE KEY JSON        a key of a JSON file
       edit_checkpoint.py flip FILE                the lowest bit of the byte in the middle
"""
import json
import struct
import sys


def edit_tensors(path, edit):
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(size)), file.read()
    edit(header, data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def swap(path, tensor):
    edit_tensors(path, lambda header, data: header[tensor]["shape"].reverse())


def add(path, tensor):
    empty = {"dtype": "BF16", "shape": [0]}
    edit_tensors(path, lambda header, data: header.update({tensor: {**empty, "data_offsets": [len(data)] * 2}}))


def set_key(path, key, value):
    with open(path) as file:
        document = json.load(file)
    document[key] = json.loads(value)
    with open(path, "w") as file:
        json.dump(document, file)


def flip(path):
    with open(path, "rb") as file:
        content = bytearray(file.read())
    content[len(content) // 2] ^= 1
    with open(path, "wb") as file:
        file.write(content)


{"swap": swap, "add": add, "set": set_key, "flip": flip}[sys.argv[1]](*sys.argv[2:])
