#!/usr/bin/env python3
"""Compares programs of ONNX files with ONNX Runtime on the same file, in float32.

  benchmarks/onnx-speed.py [--work DIR] [--threads N] [--rounds R] [--models mixtral,llama]

mixtral is torch.onnx.export's file with a cache, whose experts are gathered for each token; llama is the one of
onnxruntime-genai's builder. Both have shapes of the published models, smaller, and random weights that are bf16's
numbers, as those of the published models are. Programs are compiled twice, of the weights as the file stores them and
with --narrow. Engines take turns, R rounds; a row has the medians of tokens a second and the ratio's median, minimum
and maximum over the rounds. Needs torch, transformers, onnx, onnxruntime and onnxruntime-genai; files are made once and
stay in DIR (build/bench/onnx).
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PROMPT, CONTEXT = 32, 32
SHAPES = {
    "mixtral": dict(vocab_size=8192, hidden_size=1024, intermediate_size=3584, num_hidden_layers=4,
                    num_attention_heads=16, num_key_value_heads=4, num_local_experts=8, num_experts_per_tok=2,
                    max_position_embeddings=512),
    "llama": dict(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=8,
                  num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=512),
}
POINTS = {"mixtral": [("prefill", 1), ("decode", 1)], "llama": [("prefill", 1), ("decode", 1), ("decode", 8)]}


def write_checkpoint(name, folder):
    import torch
    import transformers
    torch.manual_seed(0)
    family = name.capitalize()
    config = getattr(transformers, f"{family}Config")(**SHAPES[name], bos_token_id=1, eos_token_id=2)
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval().to(torch.bfloat16).to(torch.float32)
    model.save_pretrained(folder)
    shutil.copy(ROOT / "test" / "EndToEnd" / "oracle" / "llama" / "tokenizer.json", folder)  # the builder wants one
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')


def export_mixtral(checkpoint, folder):
    sys.path.insert(0, str(ROOT / "test" / "Onnx"))
    import torch
    from transformers import AutoModelForCausalLM
    from make import exported
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32, experts_implementation="batched_mm")
    exported.float32_model = lambda *_, **__: model.eval()
    exported.dynamo(folder, "mixtral", past=True, external=True)


def export_llama(checkpoint, folder):
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(checkpoint), "-o", str(folder),
               "-p", "fp32", "-e", "cpu", "-c", str(folder / "cache")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def prepared(name, work):
    """(folder of the ONNX file, flags -> bundle)"""
    checkpoint, folder = (work / f"{name}-{kind}" for kind in ("checkpoint", "onnx"))
    if not (folder / "model.onnx").exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_checkpoint(name, checkpoint)
        {"mixtral": export_mixtral, "llama": export_llama}[name](checkpoint, folder)
    bundles = {"": work / f"{name}-bundle", "--narrow": work / f"{name}-narrow"}
    for flags, bundle in bundles.items():
        k2c = [ROOT / "build" / "bin" / "k2c", "compile", folder / "model.onnx", *flags.split()]
        subprocess.run([*k2c, "-o", bundle, "--force", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return folder, bundles


def of_k2c(bundle, kind, batch, args):
    command = [bundle / "run", "bench", "--json", "--threads", str(args.threads), "--repeat", "3"]
    command += (["--prefill", str(PROMPT)] if kind == "prefill" else
                ["--decode", str(args.steps), "--context", str(CONTEXT), "--batch", str(batch)])
    return json.loads(subprocess.check_output(command))[f"{kind}_tokens_per_s"]


class Session:
    """A file of torch.onnx, run by onnxruntime; caches go in as they came out."""

    def __init__(self, folder, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
        self.caches = [i for i in self.session.get_inputs() if len(i.shape) == 4]

    def empty(self, batch):
        return [np.zeros((batch, i.shape[1], 0, i.shape[3]), np.float32) for i in self.caches]

    def step(self, ids, past):
        batch, count = ids.shape
        before = past[0].shape[2]
        feed = {"input_ids": ids, "attention_mask": np.ones((batch, before + count), np.int64),
                "position_ids": np.tile(np.arange(before, before + count), (batch, 1))}
        feed.update({i.name: tensor for i, tensor in zip(self.caches, past)})
        logits, *present = self.session.run(None, feed)
        return logits[:, -1:].argmax(-1), present

    def prefill(self, batch, prompt):
        begin = time.perf_counter()
        self.step(np.random.randint(3, 8000, (batch, prompt)), self.empty(batch))
        return batch * prompt / (time.perf_counter() - begin)

    def decode(self, batch, context, steps):
        ids, past = self.step(np.random.randint(3, 8000, (batch, context)), self.empty(batch))
        ids, past = self.step(ids, past)
        begin = time.perf_counter()
        for _ in range(steps):
            ids, past = self.step(ids, past)
        return batch * steps / (time.perf_counter() - begin)


class Generator:
    """A folder of onnxruntime-genai."""

    def __init__(self, folder, threads):
        import onnxruntime_genai
        config = json.loads((folder / "genai_config.json").read_text())
        config["model"]["decoder"]["session_options"]["intra_op_num_threads"] = threads
        (folder / "genai_config.json").write_text(json.dumps(config))
        self.genai, self.model = onnxruntime_genai, onnxruntime_genai.Model(str(folder))

    def started(self, batch, prompt):
        """(generator behind a prompt of random ids, the seconds of the prompt)"""
        parameters = self.genai.GeneratorParams(self.model)
        parameters.set_search_options(batch_size=batch, max_length=512, min_length=512, do_sample=False)
        generator = self.genai.Generator(self.model, parameters)
        ids = np.random.randint(3, 8000, (batch, prompt)).astype(np.int32)
        begin = time.perf_counter()
        generator.append_tokens(ids)
        return generator, time.perf_counter() - begin

    def prefill(self, batch, prompt):
        return batch * prompt / self.started(batch, prompt)[1]

    def decode(self, batch, context, steps):
        generator, _ = self.started(batch, context)
        generator.generate_next_token()
        generator.generate_next_token()
        begin = time.perf_counter()
        for _ in range(steps):
            generator.generate_next_token()
        return batch * steps / (time.perf_counter() - begin)


def of_runtime(engine, kind, batch, args):
    run = ((lambda: engine.prefill(batch, PROMPT)) if kind == "prefill" else
           (lambda: engine.decode(batch, CONTEXT, args.steps)))
    return statistics.median(run() for _ in range(3))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--work", type=Path, default=ROOT / "build" / "bench" / "onnx")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steps", type=int, default=32, help="decoding steps that are timed (default 32)")
    p.add_argument("--models", default=",".join(SHAPES))
    args = p.parse_args()
    print("model    point      flags      k2c tokens/s   ONNX Runtime   ratio (min to max)")
    for name in args.models.split(","):
        folder, bundles = prepared(name, args.work)
        engine = (Session if name == "mixtral" else Generator)(folder, args.threads)
        for kind, batch in POINTS[name]:
            rounds = [([of_k2c(bundle, kind, batch, args) for bundle in bundles.values()],
                       of_runtime(engine, kind, batch, args)) for _ in range(args.rounds)]
            theirs = statistics.median(runtime for _, runtime in rounds)
            for i, flags in enumerate(bundles):
                ours = statistics.median(k2c[i] for k2c, _ in rounds)
                ratios = sorted(k2c[i] / runtime for k2c, runtime in rounds)
                print(f"{name:8} {kind + ' ' + str(batch):10} {flags:10} {ours:12.1f} {theirs:14.1f}   "
                      f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
