"""Edits the JSON list of a bundle's file, one entry a line.

usage: edit_slots.py BUNDLE FILE ENTRY PATH JSON     ENTRY: a number, or the kind of the first slot of that layout;
                                                     PATH: layout.n, sources.0.name, "" is the document's format
"""
import json
import sys


def main(bundle, name, entry, path, value):
    with open(f"{bundle}/{name}") as file:
        document = json.load(file)
    key, = set(document) - {"format"}
    entries = document[key]
    if not path:
        document["format"] = json.loads(value)
    else:
        chosen = entries[int(entry)] if entry.isdigit() else next(e for e in entries if e["layout"]["kind"] == entry)
        *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        for part in parents:
            chosen = chosen[part]
        chosen[last] = json.loads(value)
    lines = ",\n".join(json.dumps(e, separators=(",", ":")) for e in entries)
    with open(f"{bundle}/{name}", "w") as file:
        file.write(f'{{"format":{document["format"]},"{key}":[\n{lines}\n]}}\n')


main(*sys.argv[1:])
