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
    seeds.add("Layout", "serve", "tp=2,ep=8,dp=4,overlap=1,vocab=8,redundant=8")
    seeds.add(
        "Layout",
        "pools",
        "ep=8,cp=2,step=4096,prefill.ep=8,prefill.etp=2,prefill.cp=2,prefill.replicas=2,prefill.redundant=8",
    )
    seeds.add("Layout", "pool", "phase=decode,ep=8,cp=2,redundant=8,replicas=2")
    seeds.add(
        "Layout", "train", "ep=8,dp=8,pp=2,schedule=dualpipe,chunks=1,microbatches=8,recompute=k2,zero=os,sp=1"
    )
    seeds.add("Layout", "modules", "tp=8,dp=4,sp=1,recompute=activations+norms,zero=os+g,offload=optimizer")


def bundles(seeds):
    """unit/Hostile/SeedsTest.cpp holds these files to what their readers accept."""
    for path in sorted((ROOT / "fuzz/seeds").glob("*/*")):
        seeds.add(path.parent.name, path.name, path.read_bytes())


def main():
    seeds = Seeds(sys.argv[1])
    checkpoints(seeds)
    clusters(seeds)
    bundles(seeds)


if __name__ == "__main__":
    main()
