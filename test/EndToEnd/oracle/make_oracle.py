#!/usr/bin/env python3
"""Make the checkpoints of this folder and their golden results, or check them.

Every folder holds a small random checkpoint in the layout of its publisher, and

  golden.json, golden.safetensors         tokens, experts, logits, hidden states: the reference in float32
  precision.json, precision.safetensors   the same logits in float64, float32 and bfloat16

`bundled` holds a text and its perplexity under models/bundled: perplexity.json.

Weights are rounded to what the file stores; the golden results are arithmetic on exactly those stored values (FP8: on
the dequantised values). In bfloat16 as well: a weight that bfloat16 cannot hold stays float32 there, as it does in a
compiled program, so that only activations are rounded. Needs torch, transformers, tokenizers and numpy; the versions
that made the files stand in golden.json.

  make_oracle.py --out DIR [--only NAME,NAME]     write checkpoints with golden.* into DIR/NAME
  make_oracle.py --precision [--only ..]          write precision.* of this folder, and bundled/perplexity.json
  make_oracle.py --verify [--only ..]             compare this folder with what would be written: weights byte by byte,
                                                  decisions exactly, numbers within 1e-4 (another CPU sums differently),
                                                  precision.* and perplexity.json as their recipes say
"""
import argparse
import json
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
warnings.filterwarnings("ignore")

import torch
from safetensors.torch import load_file, save_file

from recipe.checkpoints import CHECKPOINTS, read_checkpoint, write_checkpoint
from recipe.perplexity import verify_perplexity, write_perplexity
from recipe.precision import verify_precision, write_precision
from recipe.results import dump, head, reasons_against, results

HERE = Path(__file__).resolve().parent
BUNDLED = HERE.parents[2] / "models" / "bundled"
ATTEMPTS = 20  # seeds that are tried
RESULTS = ("golden.json", "golden.safetensors", "precision.json", "precision.safetensors")


def make(path, checkpoint):
    """Writes a checkpoint, the first seed whose decisions are none of them near a tie, with golden.*."""
    rejected = []
    for attempt in range(ATTEMPTS):
        shutil.rmtree(path, ignore_errors=True)
        seed = checkpoint.seed + 1000 * attempt
        write_checkpoint(path, checkpoint, seed)
        config, tensors = read_checkpoint(path)
        result, golden = results(checkpoint, config, tensors, seed)
        reasons = reasons_against(result, config) if checkpoint.examined else []
        if not reasons:
            break
        rejected.append({"seed": seed, "why": reasons})
    else:
        raise RuntimeError(f"{path.name}: no acceptable seed: {rejected}")
    (path / "golden.json").write_text(dump({**head(checkpoint, seed, rejected), **result}))
    save_file(golden, path / "golden.safetensors")


def verify(path, checkpoint):
    """Prints how a folder differs from what the recipe writes; True when it does not."""
    with tempfile.TemporaryDirectory() as tmp:
        fresh = Path(tmp, path.name)
        make(fresh, checkpoint)
        names = sorted({f.name for folder in (path, fresh) for f in folder.iterdir()} - set(RESULTS))
        files = [n for n in names if not (path / n).exists() or not (fresh / n).exists() or
                 (path / n).read_bytes() != (fresh / n).read_bytes()]
        stored, again = (json.loads((p / "golden.json").read_text()) for p in (path, fresh))
        numbers, numbers_again = (load_file(p / "golden.safetensors") for p in (path, fresh))
    decided = lambda doc: [(p["ids"], p["greedy"]["ids"], {k: r["experts"] for k, r in p["routes"].items()})
                           for p in doc["prompts"]]
    same = decided(stored) == decided(again) and stored["seed"] == again["seed"] and list(stored) == list(again)
    shapes = {k: v.shape for k, v in numbers.items()} == {k: v.shape for k, v in numbers_again.items()}
    worst = max(float((numbers[k] - numbers_again[k]).abs().max()) for k in numbers) if shapes else float("inf")
    good = not files and same and worst <= 1e-4
    print(f"{path.name}: {'as made' if good else 'DIFFERS'}: files {files or 'equal'}, "
          f"decisions {'equal' if same else 'differ'}, numbers within {worst:.2g}", flush=True)
    return good


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = p.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, help="folder to write checkpoints and golden.* into")
    what.add_argument("--precision", action="store_true", help="write precision.* and perplexity.json here")
    what.add_argument("--verify", action="store_true", help="compare the checkpoints here with the recipe")
    p.add_argument("--only", help="names of checkpoints, separated by commas (default: all)")
    args = p.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    names = args.only.split(",") if args.only else [*CHECKPOINTS, *([] if args.out else ["bundled"])]
    good = True
    for name in names:
        if name == "bundled" and args.verify:
            good &= verify_perplexity(HERE / name, BUNDLED)
        elif name == "bundled":
            write_perplexity(HERE / name, BUNDLED)
        elif args.out:
            make(args.out / name, CHECKPOINTS[name])
        elif args.verify:
            good &= verify(HERE / name, CHECKPOINTS[name]) & verify_precision(HERE / name)
        else:
            write_precision(HERE / name)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
