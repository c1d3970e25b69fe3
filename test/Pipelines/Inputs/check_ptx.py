"""A folder of PTX has an entry a file, called as it is, with the parameters of docs/Gpu.md; index.json names all."""
import json
import pathlib
import re
import sys

folder = pathlib.Path(sys.argv[1])
index = json.loads((folder / "index.json").read_text())
files = {path.stem: path.read_text() for path in folder.glob("*.ptx")}
assert files and files.keys() == index.keys(), (sorted(files), sorted(index))
for name, text in files.items():
    assert re.findall(r"\.entry (\w+)", text) == [name], name
    assert f".b8 {name}_param_0[80]" in text, name
    assert re.search(r"\.reqntid \d+", text), name
    entry = index[name]
    assert entry["arch"] == "sm_90a" and entry["class"] == "warp", entry
