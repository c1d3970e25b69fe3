#!/usr/bin/env python3
"""seeds.py FOLDER: small real files for each fuzz target, in FOLDER/TARGET, from the tests' data."""
import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ORACLE = ROOT / "test/EndToEnd/oracle"
TOKENIZERS = ROOT / "test/Runtime/tokenizers"


class Seeds:
    def __init__(self, folder):
        self.folder = Path(folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    def add(self, target, name, data):
        path = self.folder / target / name.replace("/", "_").replace("*", "_")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())

    def document(self, target, name, value):
        self.add(target, name, json.dumps(value))

    def files(self, target, *patterns):
        for pattern in patterns:
            for path in sorted(ROOT.glob(pattern)):
                self.add(target, f"{path.parent.name}-{path.name}", path.read_bytes())


def checkpoints(seeds):
    seeds.files("Config", "test/EndToEnd/oracle/*/config.json")
    seeds.files("GenerationConfig", "test/EndToEnd/oracle/*/generation_config.json")
    seeds.files("SafetensorsIndex", "test/EndToEnd/oracle/deepseek_v3/*.index.json")
    seeds.add("Safetensors", "llama", (ORACLE / "llama/model.safetensors").read_bytes()[:40000])
    for name in ("toy", "flags", "cuts", "fold", "deepseek", "metaspace", "mixtral"):
        seeds.add("Tokenizer", name, (TOKENIZERS / f"{name}.json").read_bytes())
    rules = json.loads((TOKENIZERS / "kimi.rules.json").read_text())
    ranks = (TOKENIZERS / "kimi.model").read_bytes()
    seeds.add("Tiktoken", "ranks", ranks)
    seeds.add("Tiktoken", "configured", ranks[:4000] + b"\0" + json.dumps(rules["config"]).encode())
    texts = json.loads((TOKENIZERS / "texts.json").read_text())
    for i, text in enumerate(texts[:: len(texts) // 48]):
        seeds.add("Text", str(i), bytes([i % 6 + 6 * 21 * (i % 2)]) + str(text).encode("utf-8", "replace")[:400])


def clusters(seeds):
    seeds.files("Topology", "models/topologies/*.yaml", "test/Tools/Inputs/*.yaml")
    seeds.files("Import", "test/Tools/Inputs/topologies/*")
    for item in json.loads((ROOT / "test/Planner/golden_public.json").read_text())["items"]:
        if item["function"] and item["recomputed"] is not None and item["function"].isidentifier():
            seeds.add("Query", item["id"], item["function"] + "\n" + json.dumps(item["inputs"]))
    chat = re.search(r"^```yaml\n(.*?)^```", (ROOT / "docs/Workload.md").read_text(), re.M | re.S)
    seeds.add("Workload", "chat", chat.group(1))
    seeds.add("Layout", "serve", "tp=2,ep=8,dp=8,overlap=1,redundant=8")
    seeds.add(
        "Layout",
        "pools",
        "ep=8,cp=2,step=4096,prefill.ep=8,prefill.etp=2,prefill.cp=2,prefill.replicas=2,prefill.redundant=8",
    )
    seeds.add(
        "Layout", "train", "ep=8,dp=8,pp=2,schedule=dualpipe,chunks=1,microbatches=8,recompute=k2,zero=os,sp=1"
    )


def weight_map():
    """Slots of each kind over the tensors of the oracle's llama."""
    layer = "model.layers.0."
    norm = {"name": layer + "input_layernorm.weight", "shape": [64]}
    down = {"name": layer + "mlp.down_proj.weight", "shape": [64, 192]}
    gate = {"name": layer + "mlp.gate_proj.weight", "shape": [192, 64], "slice": [0, 32, 96]}
    query = {"name": layer + "self_attn.q_proj.weight", "shape": [2, 32, 64], "transpose": True}
    panels = {"kind": "panels", "type": "bf16", "matrices": 1, "n": 64, "k": 192, "interleave": 1}
    layouts = [
        ({"kind": "rows", "type": "bf16", "elements": 64}, [norm]),
        (panels, [down]),
        ({**panels, "n": 64, "k": 64}, [gate]),
        ({**panels, "matrices": 2, "n": 64, "k": 32}, [query]),
        ({"kind": "table", "bytes": 4096, "file": "0" * 32 + ".bin"}, []),
    ]
    return [
        {"slot": 0, "family": "f", "layer": number or None, "layout": layout, "sources": sources}
        for number, (layout, sources) in enumerate(layouts)
    ]


def bundles(seeds):
    fake = (ROOT / "unit/Runtime/fake/FakeBundle.cpp").read_text()
    manifest, index = (json.loads(text) for text in re.findall(r'R"\((\{"format".*?)\)"', fake, re.S))
    manifest["memory"].update(arena=65536, logits=8 * 97 * 4)
    manifest["shares"] = [{"slots": 1, "groups": 2, "items": 2, "item_bytes": 1024}]
    seeds.document("Manifest", "fake", manifest)
    seeds.document("WeightIndex", "fake", index)
    blob = {"slot": 0, "name": "w", "layer": None, "file": "0" * 32 + ".bin", "bytes": 4096, "xxh3": "0" * 16}
    seeds.document("WeightIndex", "blob", {"format": 1, "slots": [blob]})
    slots = weight_map()
    for number, slot in enumerate(slots):
        seeds.document("WeightMap", str(number), {"format": 1, "slots": [slot]})
    together = [{**slot, "slot": number} for number, slot in enumerate(slots)]
    seeds.document("WeightMap", "all", {"format": 1, "slots": together})
    listed = {"file": "config.json", "bytes": 700, "xxh3": "0" * 16}
    seeds.document("BundleFiles", "one", {"format": 1, "files": [listed]})
    attention = {"kind": "mla", "heads": 16, "query_latent": 0, "latent": 512, "nope": 128, "rope": 64, "value": 128}
    seeds.document("CompiledSpec", "one", {"family": "deepseek_v2", "layers": 27, "attention": attention})
    seeds.document("Prompts", "batch", [[1, 2, 3], [4, 5]])
    seeds.add("Prompts", "ids", "1,2, 3 4")
    routes = {"experts": [[0, 1], [3], []], "weights": [[0.5, 0.25], [1.0], []]}
    seeds.document("Prompts", "routes", {"layers": {"1": routes, "2": routes}})


def main():
    seeds = Seeds(sys.argv[1])
    checkpoints(seeds)
    clusters(seeds)
    bundles(seeds)


if __name__ == "__main__":
    main()
