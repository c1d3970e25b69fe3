#!/usr/bin/env python3
"""Make the ONNX models of test/Onnx/models and what they compute, or check them.

models/KIND-CHECKPOINT/ holds model.onnx (model.onnx.data where its exporter writes one) and golden.json: prompts, the
logits of transformers in float64 on the weights that the file stands for, the greedy ids, and how far ONNX Runtime is
(make/golden.py). CHECKPOINT is a folder of test/EndToEnd/oracle or one of make/checkpoints.py. KIND is who wrote it:

  torch          torch.onnx.export(dynamo=True) of a prompt without cache; -mask with a mask and positions as inputs,
                 -past with a cache, -eager of eager attention (otherwise sdpa), -opsetN, -raw without its optimiser,
                 -external with the weights in a file of their own, -bf16 in bfloat16
  script         torch.onnx.export(dynamo=False): the older exporter, which traces
  hf             transformers' own exporter; -past with a cache, -cpu and -cuda fused for ONNX Runtime's providers
  genai          onnxruntime-genai's builder; -f16 in float16, -int4 with MatMulNBits, -int4-qdq with DequantizeLinear
  moe, qmoe      as genai would write mixtures (make/fused.py)
  unrolled       every expert its own nodes (make/unrolled.py): -masked for all tokens, -gathered for its own

  make_models.py [--only NAME,NAME]           write models here: test/Onnx/models
  make_models.py --out DIR [--only ..]        write them into DIR
  make_models.py --check [--only ..]          run what lies here in ONNX Runtime against golden.json: logits within 1e-3

Needs torch, transformers, onnx, onnxscript, onnxruntime and onnxruntime-genai; golden.json names versions. Made with
torch 2.15.0, transformers 5.24.0, onnx 1.23.2, onnxscript 0.7.2, onnxruntime 1.32.0, onnxruntime-genai 0.18.0.
"""
import argparse
import json
import shutil
import sys
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import torch

from make.builder import genai
from make.checkpoints import float64_model, prompts_of
from make.exported import dynamo, script, transformers_exporter
from make.fused import fused
from make.golden import dump, follow, golden
from make.session import Session, runnable
from make.tidy import describe, tidy

HERE = Path(__file__).resolve().parent
KINDS = {
    "torch": dynamo,
    "torch-eager": partial(dynamo, attention="eager"),
    "torch-mask": partial(dynamo, mask=True),
    "torch-past": partial(dynamo, past=True),
    "torch-past-eager": partial(dynamo, past=True, attention="eager"),
    "torch-past-opset18": partial(dynamo, past=True, opset=18),
    "torch-past-opset23": partial(dynamo, past=True, opset=23),
    "torch-opset23": partial(dynamo, opset=23),
    "torch-opset24": partial(dynamo, opset=24),
    "torch-raw": partial(dynamo, optimise=False),
    "torch-external": partial(dynamo, external=True),
    "torch-past-bf16": partial(dynamo, past=True, dtype=torch.bfloat16),
    "script": script,
    "script-past": partial(script, past=True),
    "script-opset14": partial(script, attention="sdpa", opset=14),
    "hf": transformers_exporter,
    "hf-past": partial(transformers_exporter, past=True),
    "hf-cpu": partial(transformers_exporter, past=True, fusions="cpu"),
    "hf-cuda": partial(transformers_exporter, past=True, fusions="cuda"),
    "genai": genai,
    "genai-f16": partial(genai, precision="fp16", provider="cuda"),
    "genai-int4": partial(genai, precision="int4"),
    "genai-int4-qdq": partial(genai, precision="int4", options=("use_qdq=true",)),
    "unrolled-masked": partial(dynamo, mask=True, unroll="Masked"),
    "unrolled-gathered": partial(dynamo, mask=True, unroll="Gathered"),
    "unrolled-masked-script": partial(script, unroll="Masked"),
    "unrolled-gathered-script": partial(script, unroll="Gathered"),
    **{f"moe-{form}": partial(fused, form=form) for form in ("interleaved", "concatenated", "separate", "silu")},
    **{f"qmoe-{form}": partial(fused, form=form) for form in ("int8", "int4", "int4-zeros", "int4-columns")},
}
MODELS = [tuple(line.split()) for line in (HERE / "models.txt").read_text().splitlines()
          if line and not line.startswith("#")]


def head_size(model):
    attention = model.model.layers[0].self_attn
    return getattr(attention, "head_dim", 0)


def session_of(folder, head):
    """(session or None, what there is to say about it)"""
    model = onnx.load(folder / "model.onnx")
    if describe(model)["dtype"] != "float32":
        return None, {"onnxruntime": "would compute it in fewer bits"}
    taken = runnable(model)
    session = Session(taken, folder if taken is model else None)
    session.head = head
    note = "runs the mixtures as MoE with gate and up in turns, and products with float32 activations"
    return session, {} if taken is model else {"onnxruntime": note}


def make(out, kind, checkpoint):
    """Writes one model and its golden.json; the sizes of its files in bytes."""
    folder = out / f"{kind}-{checkpoint}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model = KINDS[kind](folder, checkpoint)
    tidy(folder / "model.onnx")
    head_width = head_size(model)
    session, note = session_of(folder, head_width)
    model.set_attn_implementation("eager")
    head = {"kind": kind, "checkpoint": checkpoint, **describe(onnx.load(folder / "model.onnx")), "head": head_width,
            **note}
    document = golden(head, prompts_of(checkpoint), float64_model(checkpoint, model), model, session)
    (folder / "golden.json").write_text(dump(document))
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{folder.name}: {size} bytes, {document['distance']}", flush=True)
    return size


def check(out, kind, checkpoint):
    """Prints how far ONNX Runtime is from golden.json now; True when it is near and chooses the same ids."""
    folder = out / f"{kind}-{checkpoint}"
    document = json.loads((folder / "golden.json").read_text())
    session, _ = session_of(folder, document["head"])
    if not session:
        print(f"{folder.name}: not run, {document['onnxruntime']}", flush=True)
        return True
    worst, same = 0.0, True
    for prompt in document["prompts"]:
        rows, chosen = follow(session, prompt["ids"], len(prompt["greedy"]), prompt["greedy"])
        worst = max(worst, float(np.abs(rows[len(prompt["ids"]) - 1] - np.array(prompt["logits"])).max()))
        same &= chosen == prompt["greedy"]
    print(f"{folder.name}: within {worst:.2g}, greedy ids {'equal' if same else 'DIFFER'}", flush=True)
    return worst <= 1e-3 and same


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, default=HERE / "models", help="folder to write into (default: models here)")
    p.add_argument("--check", action="store_true", help="run the models instead of writing them")
    p.add_argument("--only", help="names KIND-CHECKPOINT, separated by commas (default: all)")
    args = p.parse_args()
    torch.set_num_threads(1)
    only = args.only.split(",") if args.only else [f"{kind}-{checkpoint}" for kind, checkpoint in MODELS]
    chosen = [m for m in MODELS if "-".join(m) in only]
    unknown = sorted(set(only) - {"-".join(m) for m in MODELS})
    if unknown:
        p.error(f"models.txt has no {', '.join(unknown)}")
    if args.check:
        return 0 if all([check(args.out, *m) for m in chosen]) else 1
    total = sum(make(args.out, *m) for m in chosen)
    print(f"{len(chosen)} models, {total} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
