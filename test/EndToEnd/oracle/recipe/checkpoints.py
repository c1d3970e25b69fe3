"""The checkpoints of this folder by name: which family, how large, from which seed, stored how."""
import json
from dataclasses import dataclass, field

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from recipe import families
from recipe.families import Dims
from recipe.toy_tokenizer import MERGES, TEXT, encode_text, write_tokenizer
from recipe.weights import FP8_BLOCK, Weights, fp8_dequantise, fp8_quantise


@dataclass
class Checkpoint:
    """`examined`: the seed was searched for, so that no decision is a near tie, and golden.json says what was found."""

    family: str
    build: object
    dims: dict
    seed: int = 0
    shape: str = "base"
    storage: str = "bf16"
    shards: int = 1
    cuts: tuple = ()  # where the shards after the first begin in the sorted names, when not at equal distances
    quant: str = None
    tokenizer: str = "json"
    tokens: int = 32
    examined: bool = True
    changes: tuple = ()  # functions of (weights, dims, config)
    lengths: tuple = field(default=(1, 7, 33))  # of the random prompts, when not examined


_DS = dict(vocab=320, hidden=64, layers=3, dense_layers=1, heads=4, q_lora=24, kv_lora=16, nope=16, rope=16, v_dim=16,
           inter=96, moe_inter=32, experts=8, shared=1, top_k=3, groups=4, top_groups=2, route_scale=2.5,
           original_len=64, factor=4.0, beta_fast=32, mtp=0, eps=1e-6)
_KIMI = dict(_DS, groups=1, top_groups=1, experts=12, top_k=4, route_scale=2.827, beta_fast=1, moe_inter=24)
_GQA = dict(vocab=320, hidden=64, layers=3, heads=4, kv_heads=2, inter=96)
_GQA_ODD = dict(vocab=331, hidden=72, layers=4, heads=6, kv_heads=3, inter=76)
_V3, _V2, _K2 = families.build_deepseek_v3, families.build_deepseek_v2, families.build_kimi_k2

BASE = {
    "deepseek_v3": Checkpoint("deepseek_v3", _V3, dict(_DS, mtp=1), shards=2),
    "deepseek_v3_fp8": Checkpoint(
        "deepseek_v3_fp8", _V3, quant="fp8",
        dims=dict(_DS, hidden=160, layers=2, heads=2, q_lora=136, kv_lora=144, nope=48, rope=16, v_dim=48, inter=200,
                  moe_inter=136, experts=8, top_k=3)),
    "deepseek_v3_alternating": Checkpoint(
        "deepseek_v3", _V3, tokens=16,
        dims=dict(_DS, hidden=32, layers=6, q_lora=16, nope=8, rope=8, v_dim=8, inter=48, moe_inter=16, layer_freq=2)),
    "kimi_k2": Checkpoint("kimi_k2", _K2, _KIMI, tokenizer="tiktoken"),
    "deepseek_v2": Checkpoint("deepseek_v2", _V2, dict(_DS, shared=2, moe_inter=24, route_scale=3.0, mscale=1.0)),
    "deepseek_v2_lite": Checkpoint(
        "deepseek_v2_lite", _V2,
        dims=dict(_DS, q_lora=None, shared=2, moe_inter=24, groups=1, top_groups=1, route_scale=1.0, mscale=0.707)),
    "llama": Checkpoint("llama", families.build_llama, dict(_GQA, inter=192)),
    "mixtral": Checkpoint("mixtral", families.build_mixtral, dict(_GQA, inter=64, experts=8, top_k=2)),
    "qwen3_moe": Checkpoint(
        "qwen3_moe", families.build_qwen3_moe,
        dims=dict(_GQA, head_dim=24, moe_inter=24, experts=12, top_k=4, mlp_only=[])),
    "olmoe": Checkpoint("olmoe", families.build_olmoe,
                        dict(_GQA, kv_heads=4, inter=24, experts=12, top_k=4, clip=None)),
}

_ODD_V2 = dict(vocab=297, hidden=45, layers=1, dense_layers=0, heads=5, q_lora=None, kv_lora=30, nope=8, rope=10,
               v_dim=12, inter=21, moe_inter=9, experts=8, shared=3, top_k=2, groups=8, top_groups=3, route_scale=2.2,
               original_len=300, factor=4.0, beta_fast=32, mtp=0, eps=1e-05, mscale=1.0)
_ODD_V3 = dict(vocab=289, hidden=40, layers=2, dense_layers=0, heads=3, q_lora=None, kv_lora=18, nope=10, rope=4,
               v_dim=7, inter=37, moe_inter=19, experts=5, shared=1, top_k=5, groups=1, top_groups=1, route_scale=2.5,
               original_len=48, factor=2.5, beta_fast=32, mtp=0, eps=1e-05)
_ODD_KIMI = dict(vocab=291, hidden=42, layers=2, dense_layers=1, heads=17, q_lora=20, kv_lora=33, nope=12, rope=6,
                 v_dim=10, inter=37, moe_inter=9, experts=11, shared=1, top_k=5, groups=1, top_groups=1,
                 route_scale=2.827, original_len=48, factor=2.5, beta_fast=1, mtp=0, eps=1e-05)
_ODD_LITE = dict(_DS, vocab=299, hidden=54, layers=2, q_lora=None, heads=3, kv_lora=26, nope=14, rope=6, v_dim=9,
                 inter=43, moe_inter=13, experts=9, shared=3, top_k=4, groups=1, top_groups=1, route_scale=1.0,
                 original_len=48, factor=2.5, mscale=0.707, eps=1e-05)
_ODD_FP8 = dict(_DS, vocab=293, hidden=132, layers=2, heads=3, q_lora=40, kv_lora=130, nope=38, rope=10, v_dim=43,
                inter=150, moe_inter=29, experts=9, shared=2, top_k=4, groups=3, top_groups=2, original_len=48,
                factor=2.5, eps=1e-05)
_ODD_QWEN = dict(vocab=290, hidden=36, layers=1, heads=6, kv_heads=2, inter=50, head_dim=26, moe_inter=11, experts=33,
                 top_k=9, mlp_only=[])
_WIDE = dict(vocab=293, hidden=480, layers=2, heads=6, kv_heads=2, inter=50, head_dim=20, moe_inter=14, experts=17,
             top_k=5, mlp_only=[])
_ODD_MINIMAX = dict(vocab=293, hidden=36, layers=2, heads=6, kv_heads=2, head_dim=22, rope=10, inter=19, experts=13,
                    top_k=5)
_ODD_MINIMAX_FP8 = dict(_ODD_MINIMAX, hidden=132, heads=6, kv_heads=3, head_dim=46, rope=24, inter=29, experts=9)


def longer_context(weights, dims, config):
    config["max_position_embeddings"] = 1200


def odd(family, build, dims, lengths=(1, 7, 33, 70), changes=(), **more):
    return Checkpoint(family, build, dims, seed=1, shape="odd", tokens=12, examined=False, lengths=lengths,
                      changes=changes, **more)


ODD = {
    "odd_deepseek_v2": odd("deepseek_v2", _V2, _ODD_V2, (1, 7, 33, 1100)),
    "odd_deepseek_v3": odd("deepseek_v3", _V3, _ODD_V3, shards=3, cuts=(19, 37), changes=(
        families.drop_shared_experts, families.add_attention_biases, families.tie)),
    "odd_kimi_k2": odd("kimi_k2", _K2, _ODD_KIMI, tokenizer="tiktoken"),
    "odd_llama": odd("llama", families.build_llama, dict(vocab=289, hidden=40, layers=1, heads=5, kv_heads=1, inter=33),
                     (1, 7, 1100), (families.tie, longer_context), storage="f32"),
    "odd_qwen2": odd("qwen2", families.build_qwen2,
                     dict(vocab=289, hidden=40, layers=2, heads=5, kv_heads=1, inter=37), (1, 7, 33), (families.tie,)),
    "odd_qwen3": odd("qwen3", families.build_qwen3,
                     dict(vocab=293, hidden=36, layers=2, heads=6, kv_heads=2, head_dim=22, inter=37), (1, 7, 33)),
    "odd_qwen3_moe": odd("qwen3_moe", families.build_qwen3_moe, _ODD_QWEN, shards=3,
                         changes=(families.add_attention_biases, families.tie)),
    "odd_mixtral": odd("mixtral", families.build_mixtral,
                       dict(_GQA_ODD, layers=2, inter=37, experts=7, top_k=3), (1, 7, 33)),
    "odd_smollm3": odd("smollm3", families.build_smollm3, dict(vocab=295, hidden=42, layers=5, heads=3, kv_heads=1,
                       inter=29, interval=2), (1, 7, 33), (families.tie,)),
    "odd_minimax_m2": odd("minimax_m2", families.build_minimax_m2, _ODD_MINIMAX),
    "odd_minimax_m2_fp8": odd("minimax_m2_fp8", families.build_minimax_m2, _ODD_MINIMAX_FP8, (1, 7, 33), quant="fp8"),
    "odd_deepseek_v2_lite": odd("deepseek_v2_lite", _V2, _ODD_LITE, (1, 7, 33)),
    "odd_deepseek_v3_fp8": odd("deepseek_v3_fp8", _V3, _ODD_FP8, (1, 7, 33), quant="fp8"),
    "odd_wide": odd("qwen3_moe", families.build_qwen3_moe, _WIDE, (1, 7, 33), changes=(families.loud,)),
    "odd_olmoe": Checkpoint(
        "olmoe", families.build_olmoe, seed=1, shape="odd",
        dims=dict(_GQA_ODD, kv_heads=6, inter=20, experts=13, top_k=5, clip=1.75)),
    "odd_qwen3_alternating": Checkpoint(
        "qwen3_moe", families.build_qwen3_moe, seed=21, shape="odd",
        dims=dict(_GQA_ODD, head_dim=20, kv_heads=2, moe_inter=20, experts=14, top_k=5, mlp_only=[1])),
}

CHECKPOINTS = {**BASE, **ODD}


def prompts(checkpoint, seed, vocab):
    """name -> ids, and a batch of three rows."""
    rng = np.random.default_rng([seed, 77])
    first, end = (3, 256 + len(MERGES)) if checkpoint.examined else (0, vocab)
    draw = lambda n: [int(i) for i in rng.integers(first, end, n)]
    drawn = {f"len{n}": draw(n) for n in checkpoint.lengths}
    if checkpoint.examined:
        drawn["text"] = encode_text(TEXT)
    return drawn, [draw(5) for _ in range(3)]


def fp8_quantised_name(name):
    """The published FP8 files quantise every projection but not embeddings, head, router or norms."""
    if not name.endswith(("_proj.weight", ".w1.weight", ".w2.weight", ".w3.weight", "kv_a_proj_with_mqa.weight")):
        return False
    return "eh_proj" not in name


def stored_tensors(checkpoint, weights):
    """What the file holds: dtype conversion and quantisation."""
    out, extra_config = {}, {}
    for name, t in weights.tensors.items():
        if checkpoint.quant == "fp8" and fp8_quantised_name(name):
            out[name], out[name + "_scale_inv"] = fp8_quantise(t)
        elif name in weights.keep_f32 or weights.dtype == "f32":
            out[name] = t
        else:
            out[name] = t.bfloat16()
    if checkpoint.quant == "fp8":
        extra_config["quantization_config"] = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                                               "weight_block_size": [FP8_BLOCK, FP8_BLOCK]}
    return out, extra_config


def write_checkpoint(path, checkpoint, seed):
    d = Dims(checkpoint.dims)
    w = Weights(seed, checkpoint.storage)
    config = checkpoint.build(d, w)
    for change in checkpoint.changes:
        change(w, d, config)
    tensors, extra = stored_tensors(checkpoint, w)
    dtype = {"bf16": "bfloat16", "f32": "float32"}[checkpoint.storage]
    config.update(extra, torch_dtype=dtype, transformers_version="4.57.0")
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(dict(sorted(config.items())), indent=2) + "\n")
    start = {k: config[k] for k in ("bos_token_id", "eos_token_id", "pad_token_id") if k in config}
    (path / "generation_config.json").write_text(json.dumps({**start, "do_sample": False}, indent=2) + "\n")
    write_tokenizer(path, checkpoint.tokenizer, d.vocab)
    names, shards = sorted(tensors), checkpoint.shards
    if shards == 1:
        save_file({n: tensors[n].contiguous() for n in names}, path / "model.safetensors", metadata={"format": "pt"})
        return
    cuts = checkpoint.cuts or [len(names) * s // shards for s in range(1, shards)]
    bounds = [0, *cuts, len(names)]
    index = {"metadata": {"total_size": sum(t.numel() * t.element_size() for t in tensors.values())}, "weight_map": {}}
    for s in range(shards):
        file = f"model-{s + 1:05d}-of-{shards:05d}.safetensors"
        part = names[bounds[s]:bounds[s + 1]]
        save_file({n: tensors[n].contiguous() for n in part}, path / file, metadata={"format": "pt"})
        index["weight_map"].update({n: file for n in part})
    (path / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


def read_checkpoint(path):
    """config.json, and every tensor as float32."""
    config = json.loads((path / "config.json").read_text())
    raw = {}
    for file in sorted(path.glob("model*.safetensors")):
        raw.update(load_file(file))
    plain = {}
    for name, t in raw.items():
        if name.endswith("_scale_inv"):
            continue
        plain[name] = fp8_dequantise(t, raw[name + "_scale_inv"]) if t.dtype == torch.float8_e4m3fn else t.float()
    return config, plain
