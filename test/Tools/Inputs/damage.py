"""Removes one blob of a bundle, and flips a byte of another; neither is a table, which only a compile can
make, or of experts.

usage: damage.py BUNDLE
"""
import json
import os
import sys

folder = os.path.join(sys.argv[1], "weights")
with open(os.path.join(folder, "index.json")) as file:
    slots = [slot for slot in json.load(file)["slots"] if slot["name"] != "rope" and "experts" not in slot]
    blobs = sorted({slot["file"] for slot in slots})
os.remove(os.path.join(folder, blobs[0]))
with open(os.path.join(folder, blobs[1]), "r+b") as file:
    byte = file.read(1)
    file.seek(0)
    file.write(bytes([byte[0] ^ 1]))
