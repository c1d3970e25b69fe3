"""Tokens a second of Hugging Face transformers in float32: questions and answers as lines of JSON.

A question: {"prompt": N} (prefill) or {"batch": B, "context": C, "steps": S} (decode), each with "repeats"; answer:
{"value": tokens/s}, the median. {"ready": true} is answered when the model is loaded.
usage: transformers_bench.py CHECKPOINT --threads N
"""
import argparse
import json
import statistics
import sys
import time

import torch
from transformers import AutoModelForCausalLM, DynamicCache


def random_ids(model, rows, columns):
    return torch.randint(2, model.config.vocab_size, (rows, columns))


def forward(model, ids, cache):
    return model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits


def prefill(model, tokens):
    begin = time.perf_counter()
    forward(model, random_ids(model, 1, tokens), DynamicCache(config=model.config))
    return tokens / (time.perf_counter() - begin)


def decode(model, batch, context, steps):
    cache = DynamicCache(config=model.config)
    forward(model, random_ids(model, batch, context), cache)
    ids = random_ids(model, batch, 1)
    forward(model, ids, cache)
    begin = time.perf_counter()
    for _ in range(steps):
        ids = forward(model, ids, cache)[:, -1].argmax(-1, keepdim=True)
    return batch * steps / (time.perf_counter() - begin)


def answer(model, question):
    if question.get("ready"):
        prefill(model, 8)
        return {"ready": True}
    run = ((lambda: prefill(model, question["prompt"])) if question["prompt"] else
           (lambda: decode(model, question["batch"], question["context"], question["steps"])))
    return {"value": statistics.median(run() for _ in range(question["repeats"]))}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("checkpoint")
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(args.checkpoint, dtype=torch.float32).eval()
    with torch.inference_mode():
        for line in sys.stdin:
            print(json.dumps(answer(model, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
