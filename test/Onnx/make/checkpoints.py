"""The checkpoints that the models are exported from, and their transformers models.

Most are those of test/EndToEnd/oracle by name. `TINY` are made from the same recipe with sizes that ONNX Runtime's own
operators take (a head is a multiple of 16 numbers, a block of quantised weights 32), a small vocabulary, and a short
context, since an exporter that writes rotary tables writes a row for each position.
"""
import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
ORACLE = Path(__file__).resolve().parents[2] / "EndToEnd" / "oracle"
sys.path.insert(0, str(ORACLE))

import torch  # noqa: E402
from recipe import families  # noqa: E402
from recipe.checkpoints import Checkpoint, prompts, read_checkpoint, write_checkpoint  # noqa: E402
from recipe.reference import load  # noqa: E402

CONTEXT, VOCABULARY = 128, 144


def shrink(weights, dims, config):
    """A short context and a vocabulary of the first ids only."""
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        weights.tensors[name] = weights.tensors[name][:VOCABULARY].clone()
    config.update(max_position_embeddings=CONTEXT, vocab_size=VOCABULARY, bos_token_id=VOCABULARY - 2,
                  eos_token_id=VOCABULARY - 1)


def tiny(family, build, **dims):
    base = dict(vocab=290, hidden=32, layers=2, heads=2, kv_heads=1, inter=32)
    return Checkpoint(family, build, dict(base, **dims), seed=3, shape="odd", tokens=12, examined=False,
                      lengths=(1, 7, 33), changes=(shrink,))


_LATENT = dict(dense_layers=1, q_lora=12, kv_lora=16, nope=8, rope=8, v_dim=8, moe_inter=16, experts=8, top_k=3,
               groups=4, top_groups=2, original_len=32, factor=4.0, beta_fast=32, mtp=0, eps=1e-6)
_LITE = dict(_LATENT, q_lora=None, experts=5, groups=1, top_groups=1, route_scale=1.0, mscale=0.707, shared=2)
_KIMI = dict(_LATENT, experts=6, groups=1, top_groups=1, route_scale=2.827, beta_fast=1, shared=1)

TINY = {
    "tiny_llama": tiny("llama", families.build_llama),
    "tiny_qwen2": tiny("qwen2", families.build_qwen2),
    "tiny_tied_qwen2": dataclasses.replace(tiny("qwen2", families.build_qwen2), changes=(shrink, families.tie)),
    "tiny_qwen3": tiny("qwen3", families.build_qwen3, head_dim=16),
    "tiny_mixtral": tiny("mixtral", families.build_mixtral, experts=4, top_k=2),
    "tiny_qwen3_moe": tiny("qwen3_moe", families.build_qwen3_moe, head_dim=16, moe_inter=32, experts=5, top_k=3,
                           mlp_only=[]),
    "tiny_olmoe": tiny("olmoe", families.build_olmoe, kv_heads=2, experts=4, top_k=2, clip=None),
    "tiny_minimax_m2": tiny("minimax_m2", families.build_minimax_m2, head_dim=20, rope=12, inter=16, experts=6,
                            top_k=3),
    "tiny_deepseek_v2": tiny("deepseek_v2", families.build_deepseek_v2,
                             **dict(_LATENT, shared=2, route_scale=3.0, mscale=1.0)),
    "tiny_deepseek_v2_lite": tiny("deepseek_v2_lite", families.build_deepseek_v2, **_LITE),
    "tiny_deepseek_v3": tiny("deepseek_v3", families.build_deepseek_v3, **dict(_LATENT, shared=1, route_scale=2.5)),
    "tiny_kimi_k2": tiny("kimi_k2", families.build_kimi_k2, **_KIMI),
}


def folder_of(name, temporary):
    """Where the checkpoint lies; a tiny one is written into the folder `temporary`."""
    if name not in TINY:
        return ORACLE / name
    path = Path(temporary) / name
    write_checkpoint(path, TINY[name], TINY[name].seed)
    return path


def read(name):
    """config.json and every tensor in float32."""
    with tempfile.TemporaryDirectory() as temporary:
        return read_checkpoint(folder_of(name, temporary))


def prompts_of(name, longest=70):
    """name -> ids of the prompts of a checkpoint that are no longer than `longest`."""
    if name in TINY:
        drawn = prompts(TINY[name], TINY[name].seed, VOCABULARY)[0]
    else:
        golden = json.loads((ORACLE / name / "golden.json").read_text())
        drawn = {p["name"]: p["ids"] for p in golden["prompts"]}
    return {key: ids for key, ids in drawn.items() if len(ids) <= longest}


def float32_model(name, attention="eager", experts="batched_mm"):
    """The model to export: `experts` is how transformers spells a mixture."""
    config, tensors = read(name)
    model = load(config, tensors)
    model.set_attn_implementation(attention)
    if any(m.__class__.__name__.endswith("Experts") for m in model.modules()):
        model.set_experts_implementation(experts)
    return model


def with_weights(model, convert):
    """`model`, its weights converted; what it computes at its start stays, as where transformers reads a checkpoint"""
    for parameter in model.parameters():
        parameter.data = convert(parameter.data)
    return model


def float64_model(name, exported):
    """The reference: the same weights as `exported` holds, which quantisation may have rounded."""
    config, tensors = read(name)
    model = load(config, tensors, torch.float64)
    weights = dict(exported.named_parameters())
    for key, parameter in model.named_parameters():
        parameter.data = weights[key].data.double()
    return model
