"""Removes one blob of a bundle, and flips a byte of another; neither is a table, which only a compile can make.

usage: damage.py BUNDLE
"""
import json
import os
import sys

folder = os.path.join(sys.argv[1], "weights")
with open(os.path.join(folder, "index.json")) as file:
    blobs = sorted({slot["file"] for slot in json.load(file)["slots"] if slot["name"] != "rope"})
os.remove(os.path.join(folder, blobs[0]))
with open(os.path.join(folder, blobs[1]), "r+b") as file:
    byte = file.read(1)
    file.seek(0)
    file.write(bytes([byte[0] ^ 1]))
