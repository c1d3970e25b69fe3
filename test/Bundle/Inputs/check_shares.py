"""check_shares.py BUNDLE: prints the share of each weight, and fails unless the manifest's runs cover all slots."""
import json
import sys
from pathlib import Path

bundle = Path(sys.argv[1])
slots = {slot["slot"]: slot for slot in json.loads((bundle / "weights/index.json").read_text())["slots"]}
first, said = 0, set()
for run in json.loads((bundle / "manifest.json").read_text())["shares"]:
    for slot in range(first, first + run["slots"]):
        if "items" in run:
            ranges = slots[slot].get("experts", [slots[slot]])
            assert len(ranges) == run.get("experts", 1), (slot, run)
            assert all(run["items"] * run["item_bytes"] <= part["bytes"] for part in ranges), (slot, run)
        said.add(f'{slots[slot]["name"]} ' + (
            f'{run.get("experts", "no")} experts, {run["items"]} items of {run["item_bytes"]} bytes' if "items" in run
            else "is read by everyone"))
    first += run["slots"]
assert first == len(slots), (first, len(slots))
print("\n".join(sorted(said)))
