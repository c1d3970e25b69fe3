"""A folder of PTX has an entry a file, called as it is, with the parameters of docs/Gpu.md; index.json names all.

Beside it are cubins, one for each, if and only if index.json has what ptxas says of them.
"""
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
    assert int(re.search(r"\.reqntid (\d+)", text)[1]) >= 128 and ".minnctapersm 2" in text, name
    entry = index[name]
    # What a tile of 16 rows does with 16 bytes of each is long already.
    assert entry["name"] != "linear_head" or '.pragma "nounroll"' in text, name
    assert entry["arch"] == "sm_90a" and entry["class"] == "warp", entry
cubins = {path.stem: path.read_bytes() for path in folder.parent.glob("cubin/*.cubin")}
assert cubins.keys() == {name for name, entry in index.items() if entry["registers"] is not None}, sorted(cubins)
assert all(code.startswith(b"\x7fELF") for code in cubins.values())
