"""Flips the sign of the first element of a bundle's final norm, which every logit is made of.

usage: flip_norm.py BUNDLE
"""
import json
import os
import sys

folder = os.path.join(sys.argv[1], "weights")
with open(os.path.join(folder, "index.json")) as file:
    slot = next(slot for slot in json.load(file)["slots"] if slot["layer"] is None and "norm" in slot["name"])
with open(os.path.join(folder, slot["file"]), "r+b") as file:
    byte = file.read(4)[3]
    file.seek(3)
    file.write(bytes([byte ^ 0x80]))
