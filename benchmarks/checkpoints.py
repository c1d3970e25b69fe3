"""Mid-size checkpoints for measuring: published layouts, random bf16 weights, a byte-level tokenizer of 32,000 ids.

The sizes are small enough for any machine and large enough that no cache holds the weights: 0.9 GB each.
usage: checkpoints.py dsv3|qwen3moe|olmoe|llama FOLDER [--small | --wide] [--skewed SHARE]
--small: a few thousand times smaller, for tests
--wide: small, but with heads and MLPs so wide that tensor-parallel ranks divide them: contractions over them have two
    leaves to eight
--skewed: routers that choose the same experts together, the more the closer SHARE is to 1, and some more often
"""
import argparse
import functools
import json
import os
import random
import struct

COMMON = {"hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 16, "vocab_size": 32000,
          "hidden_act": "silu", "attention_bias": False, "tie_word_embeddings": False, "num_experts_per_tok": 4,
          "rope_theta": 10000.0, "max_position_embeddings": 16384, "bos_token_id": 0, "eos_token_id": 1,
          "torch_dtype": "bfloat16"}
CONFIGS = {
    "dsv3": {"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "rms_norm_eps": 1e-6,
             "intermediate_size": 2816, "moe_intermediate_size": 512, "num_key_value_heads": 16,
             "n_routed_experts": 32, "n_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 4, "topk_group": 2,
             "norm_topk_prob": True, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
             "topk_method": "noaux_tc", "q_lora_rank": 384, "kv_lora_rank": 512, "qk_nope_head_dim": 64,
             "qk_rope_head_dim": 32, "v_head_dim": 64, "num_nextn_predict_layers": 0},
    "qwen3moe": {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "rms_norm_eps": 1e-6,
                 "intermediate_size": 2816, "moe_intermediate_size": 512, "num_key_value_heads": 4, "head_dim": 64,
                 "num_experts": 32, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []},
    "olmoe": {"model_type": "olmoe", "architectures": ["OlmoeForCausalLM"], "rms_norm_eps": 1e-5,
              "intermediate_size": 512, "num_key_value_heads": 16, "num_experts": 32, "norm_topk_prob": False,
              "clip_qkv": None},
    "llama": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "rms_norm_eps": 1e-5,
              "intermediate_size": 2816, "num_key_value_heads": 8, "mlp_bias": False, "rope_scaling": None},
}
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 320,
         "num_experts_per_tok": 2, "max_position_embeddings": 256, "num_key_value_heads": 4, "intermediate_size": 96,
         "moe_intermediate_size": 32, "head_dim": 16, "n_routed_experts": 8, "num_experts": 8, "q_lora_rank": 24,
         "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16}
WIDE = {**SMALL, "hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 32, "intermediate_size": 1024,
        "moe_intermediate_size": 1024, "head_dim": 64, "qk_nope_head_dim": 64, "v_head_dim": 64}
BF16_ONE = b"\x80\x3f"
LONGER = 0.3  # by so much, rows of a skewed router


def config_of(kind, size):
    config = {**COMMON, **CONFIGS[kind]}
    config.update({key: value for key, value in size.items() if key in config})
    if kind == "llama":
        del config["num_experts_per_tok"]
    if "kv_lora_rank" in config:
        config["num_key_value_heads"] = config["num_attention_heads"]
    elif size is WIDE:  # heads are wider together than a row; llama's have eight leaves, twice as many as halves would
        config["head_dim"] = 256 if kind == "llama" else WIDE["head_dim"]
    return config


def matrices(prefix, rows):
    """Tensor name -> shape of (name, output, input) rows; one number alone is a norm."""
    return {f"{prefix}{name}.weight": list(shape) for name, *shape in rows}


def gated(prefix, hidden, inner):
    return matrices(prefix, [("gate_proj", inner, hidden), ("up_proj", inner, hidden), ("down_proj", hidden, inner)])


def latent_attention(c):
    heads, hidden, latent, rope = (c[key] for key in ("num_attention_heads", "hidden_size", "kv_lora_rank",
                                                      "qk_rope_head_dim"))
    nope, value, rank = c["qk_nope_head_dim"], c["v_head_dim"], c["q_lora_rank"]
    return [("q_a_proj", rank, hidden), ("q_a_layernorm", rank), ("q_b_proj", heads * (nope + rope), rank),
            ("kv_a_proj_with_mqa", latent + rope, hidden), ("kv_a_layernorm", latent),
            ("kv_b_proj", heads * (nope + value), latent), ("o_proj", hidden, heads * value)]


def grouped_attention(c):
    hidden, heads, kv = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"]
    size = c.get("head_dim", hidden // heads)
    found = [("q_proj", heads * size, hidden), ("k_proj", kv * size, hidden), ("v_proj", kv * size, hidden),
             ("o_proj", hidden, heads * size)]
    if c["model_type"] == "llama":
        return found
    whole = c["model_type"] == "olmoe"  # its norms span all heads
    return found + [("q_norm", heads * size if whole else size), ("k_norm", kv * size if whole else size)]


def layer_tensors(c, layer):
    prefix, hidden = f"model.layers.{layer}.", c["hidden_size"]
    latent = "kv_lora_rank" in c
    found = matrices(prefix, [("input_layernorm", hidden), ("post_attention_layernorm", hidden)])
    found.update(matrices(prefix + "self_attn.", latent_attention(c) if latent else grouped_attention(c)))
    if c["model_type"] == "llama" or layer < c.get("first_k_dense_replace", 0):
        found.update(gated(prefix + "mlp.", hidden, c["intermediate_size"]))
        return found
    experts, inner = c.get("n_routed_experts") or c["num_experts"], c.get("moe_intermediate_size",
                                                                          c["intermediate_size"])
    found[prefix + "mlp.gate.weight"] = [experts, hidden]
    if latent:
        found[prefix + "mlp.gate.e_score_correction_bias"] = [experts]
        found.update(gated(prefix + "mlp.shared_experts.", hidden, inner * c["n_shared_experts"]))
    for expert in range(experts):
        found.update(gated(f"{prefix}mlp.experts.{expert}.", hidden, inner))
    return found


def tensors(c):
    """Tensor name -> shape, in the order of the file."""
    hidden, vocab = c["hidden_size"], c["vocab_size"]
    found = {"model.embed_tokens.weight": [vocab, hidden]}
    for layer in range(c["num_hidden_layers"]):
        found.update(layer_tensors(c, layer))
    return {**found, "model.norm.weight": [hidden], "lm_head.weight": [vocab, hidden]}


def count_of(shape):
    return shape[0] if len(shape) == 1 else shape[0] * shape[1]


def elements(name, shape, rng):
    """Norms are ones, the bias of the choice zeros, matrices random of either sign, magnitudes from 1/64 to 1/32."""
    count = count_of(shape)
    if name.endswith("bias"):
        return bytes(2 * count)
    if len(shape) == 1:
        return BF16_ONE * count
    exponent = 127 - 6
    numbers = bytearray(rng.randbytes(2 * count))
    numbers[0::2] = numbers[0::2].translate(bytes(low & 0x7f | (exponent & 1) << 7 for low in range(256)))
    numbers[1::2] = numbers[1::2].translate(bytes(high & 0x80 | exponent >> 1 for high in range(256)))
    return bytes(numbers)


def skewed_router(top, share, _, shape, rng):
    """Experts in sets of as many as a token chooses, the members of a set far apart: in the order of ids, each is among
    others. `share` of the variance of a row is that of its set, so a token that chooses one chooses others of the set;
    rows of the last set are longer by LONGER than those of the first, and are chosen more often."""
    experts, hidden = shape
    sets = experts // top
    common = [[rng.gauss(0, share ** 0.5) for _ in range(hidden)] for _ in range(sets)]
    numbers = bytearray()
    for expert in range(experts):
        length = (1 + LONGER * (expert % sets) / max(1, sets - 1)) / 42  # as long as rows that are not skewed
        for value in common[expert % sets]:
            number = length * (value + rng.gauss(0, (1 - share) ** 0.5))
            numbers += struct.pack("<f", number)[2:]
    return bytes(numbers)


def write_weights(path, shapes, progress, router=elements):
    rng, header, offset = random.Random(1), {}, 0
    for name, shape in shapes.items():
        end = offset + 2 * count_of(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for done, (name, shape) in enumerate(shapes.items()):
            file.write((router if name.endswith("mlp.gate.weight") else elements)(name, shape, rng))
            progress(done + 1, len(shapes))


def printable_bytes():
    """The character that stands for each byte in byte-level tokenizers: itself, or one from 256 on."""
    plain = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    return [chr(byte) for byte in plain] + [chr(256 + i) for i in range(256 - len(plain))]


def tokenizer(vocab_size):
    """Two special ids, the bytes, then pairs of bytes."""
    special, alphabet = ["<s>", "</s>"], sorted(printable_bytes())
    pairs = [(a, b) for a in alphabet for b in alphabet][:max(0, vocab_size - len(special) - len(alphabet))]
    words = special + alphabet + [a + b for a, b in pairs]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": i, "content": word, "single_word": False, "lstrip": False, "rstrip": False,
                              "normalized": False, "special": True} for i, word in enumerate(special)],
            "normalizer": None, "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": {word: i for i, word in enumerate(words)},
                      "merges": [f"{a} {b}" for a, b in pairs]}}


def write(kind, folder, size=None, skewed=None, progress=lambda done, total: None):
    """The checkpoint `kind` in `folder`. Its config.json comes last: a folder that has one is whole."""
    config = config_of(kind, size or {})
    os.makedirs(folder, exist_ok=True)
    router = functools.partial(skewed_router, config["num_experts_per_tok"], skewed) if skewed else elements
    write_weights(os.path.join(folder, "model.safetensors"), tensors(config), progress, router)
    for name, document in [
            ("tokenizer.json", tokenizer(config["vocab_size"])),
            ("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>",
                                       "eos_token": "</s>"}),
            ("generation_config.json", {"bos_token_id": 0, "eos_token_id": 1}), ("config.json", config)]:
        with open(os.path.join(folder, name), "w", encoding="utf8") as file:
            json.dump(document, file, indent=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("kind", choices=sorted(CONFIGS))
    parser.add_argument("folder")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--small", dest="size", action="store_const", const=SMALL)
    sizes.add_argument("--wide", dest="size", action="store_const", const=WIDE)
    parser.add_argument("--skewed", type=float, metavar="SHARE")
    args = parser.parse_args()
    if args.skewed and args.kind == "llama":
        parser.error("--skewed: llama has no routers")
    write(args.kind, args.folder, args.size, args.skewed)
