"""The families: a builder fills `w` with tensors in the published naming and returns the config; `d` holds sizes."""
import math

import numpy as np

from recipe.toy_tokenizer import special_ids
from recipe.weights import SMALL


class Dims(dict):
    __getattr__ = dict.__getitem__


def common_config(d, **more):
    return {
        "bos_token_id": special_ids(d.vocab)["bos"],
        "eos_token_id": special_ids(d.vocab)["eos"],
        "initializer_range": 0.02,
        "tie_word_embeddings": False,
        "use_cache": True,
        "vocab_size": d.vocab,
        **more,
    }


def gated_mlp(w, prefix, hidden, inter, names=("gate_proj", "up_proj", "down_proj")):
    gate, up, down = names
    w.linear(f"{prefix}.{gate}.weight", inter, hidden, 1.6)
    w.linear(f"{prefix}.{up}.weight", inter, hidden, 1.4)
    w.linear(f"{prefix}.{down}.weight", hidden, inter, 1.6)


def embeddings(w, d):
    w.normal("model.embed_tokens.weight", (d.vocab, d.hidden), SMALL)
    w.norm("model.norm.weight", d.hidden)
    w.linear("lm_head.weight", d.vocab, d.hidden, 3.0)


def mla_layer(w, d, i):
    a = f"model.layers.{i}.self_attn"
    qk = d.nope + d.rope
    if d.q_lora:
        w.linear(f"{a}.q_a_proj.weight", d.q_lora, d.hidden, SMALL)
        w.norm(f"{a}.q_a_layernorm.weight", d.q_lora)
        w.linear(f"{a}.q_b_proj.weight", d.heads * qk, d.q_lora, 1.5)
    else:
        w.linear(f"{a}.q_proj.weight", d.heads * qk, d.hidden, 1.5)
    gains = np.repeat([SMALL, 1.3], [d.kv_lora, d.rope])[:, None]  # the latent rows are normed, the RoPE rows are not
    w.linear(f"{a}.kv_a_proj_with_mqa.weight", d.kv_lora + d.rope, d.hidden, gains)
    w.norm(f"{a}.kv_a_layernorm.weight", d.kv_lora)
    w.linear(f"{a}.kv_b_proj.weight", d.heads * (d.nope + d.v_dim), d.kv_lora, 1.3)
    w.linear(f"{a}.o_proj.weight", d.hidden, d.heads * d.v_dim, 1.3)


def deepseek_layer(w, d, i, dense, bias):
    p = f"model.layers.{i}"
    w.norm(f"{p}.input_layernorm.weight", d.hidden)
    mla_layer(w, d, i)
    w.norm(f"{p}.post_attention_layernorm.weight", d.hidden)
    if dense:
        gated_mlp(w, f"{p}.mlp", d.hidden, d.inter)
        return
    w.linear(f"{p}.mlp.gate.weight", d.experts, d.hidden, 2.0)
    if bias:
        w.normal(f"{p}.mlp.gate.e_score_correction_bias", (d.experts,), 0.15, keep_f32=True)
    for e in range(d.experts):
        gated_mlp(w, f"{p}.mlp.experts.{e}", d.hidden, d.moe_inter)
    gated_mlp(w, f"{p}.mlp.shared_experts", d.hidden, d.moe_inter * d.shared)


def yarn_config(d, mscale):
    return {
        "beta_fast": d.beta_fast,
        "beta_slow": 1,
        "factor": d.factor,
        "mscale": mscale,
        "mscale_all_dim": mscale,
        "original_max_position_embeddings": d.original_len,
        "type": "yarn",
    }


def deepseek_config(d, model_type, arch, **more):
    return common_config(
        d,
        architectures=[arch],
        model_type=model_type,
        attention_bias=False,
        attention_dropout=0.0,
        ep_size=1,
        first_k_dense_replace=d.dense_layers,
        hidden_act="silu",
        hidden_size=d.hidden,
        intermediate_size=d.inter,
        kv_lora_rank=d.kv_lora,
        max_position_embeddings=int(d.original_len * d.factor),
        moe_intermediate_size=d.moe_inter,
        moe_layer_freq=d.get("layer_freq", 1),
        n_group=d.groups,
        n_routed_experts=d.experts,
        n_shared_experts=d.shared,
        num_attention_heads=d.heads,
        num_experts_per_tok=d.top_k,
        num_hidden_layers=d.layers,
        num_key_value_heads=d.heads,
        pretraining_tp=1,
        q_lora_rank=d.q_lora,
        qk_nope_head_dim=d.nope,
        qk_rope_head_dim=d.rope,
        rms_norm_eps=d.eps,
        routed_scaling_factor=d.route_scale,
        topk_group=d.top_groups,
        v_head_dim=d.v_dim,
        **more,
    )


def deepseek_layers(w, d, bias):
    embeddings(w, d)
    for i in range(d.layers):
        deepseek_layer(w, d, i, dense=i < d.dense_layers or i % d.get("layer_freq", 1) != 0, bias=bias)


def build_deepseek_v3(d, w):
    deepseek_layers(w, d, bias=True)
    if d.mtp:  # multi-token prediction module: shipped as one more layer; plain decoding ignores it
        p = f"model.layers.{d.layers}"
        deepseek_layer(w, d, d.layers, dense=False, bias=True)
        w.linear(f"{p}.eh_proj.weight", d.hidden, 2 * d.hidden)
        for n in ("enorm", "hnorm", "shared_head.norm"):
            w.norm(f"{p}.{n}.weight", d.hidden)
        w.tensors[f"{p}.embed_tokens.weight"] = w.tensors["model.embed_tokens.weight"].clone()
        w.tensors[f"{p}.shared_head.head.weight"] = w.tensors["lm_head.weight"].clone()
    return deepseek_config(
        d, "deepseek_v3", "DeepseekV3ForCausalLM",
        norm_topk_prob=True, num_nextn_predict_layers=d.mtp, rope_scaling=yarn_config(d, 1.0), rope_theta=10000,
        scoring_func="sigmoid", topk_method="noaux_tc",
    )


def build_kimi_k2(d, w):
    deepseek_layers(w, d, bias=True)
    for i in range(d.layers):
        # A buffer some published files carry; it must be ignored (YaRN frequencies are not these).
        freq = 50000.0 ** -(np.arange(0, d.rope, 2) / d.rope)
        w.put(f"model.layers.{i}.self_attn.rotary_emb.inv_freq", freq, keep_f32=True)
    return deepseek_config(
        d, "kimi_k2", "DeepseekV3ForCausalLM",
        aux_loss_alpha=0.001, norm_topk_prob=True, num_nextn_predict_layers=0, rope_scaling=yarn_config(d, 1.0),
        rope_theta=50000.0, scoring_func="sigmoid", seq_aux=True, topk_method="noaux_tc",
    )


def build_deepseek_v2(d, w):
    deepseek_layers(w, d, bias=False)
    return deepseek_config(
        d, "deepseek_v2", "DeepseekV2ForCausalLM",
        aux_loss_alpha=0.001, norm_topk_prob=False, rope_scaling=yarn_config(d, d.mscale), rope_theta=10000,
        scoring_func="softmax", seq_aux=True,
        topk_method="group_limited_greedy" if d.groups > 1 else "greedy",
    )


def gqa(w, prefix, d, head_dim, q_gain=1.5):
    w.linear(f"{prefix}.q_proj.weight", d.heads * head_dim, d.hidden, q_gain)
    w.linear(f"{prefix}.k_proj.weight", d.kv_heads * head_dim, d.hidden, q_gain)
    w.linear(f"{prefix}.v_proj.weight", d.kv_heads * head_dim, d.hidden, 1.2)
    w.linear(f"{prefix}.o_proj.weight", d.hidden, d.heads * head_dim, 1.4)


def gqa_config(d, **more):
    return common_config(
        d, attention_dropout=0.0, hidden_act="silu", hidden_size=d.hidden, num_attention_heads=d.heads,
        num_hidden_layers=d.layers, num_key_value_heads=d.kv_heads, **more,
    )


def build_llama(d, w):
    embeddings(w, d)
    for i in range(d.layers):
        p = f"model.layers.{i}"
        w.norm(f"{p}.input_layernorm.weight", d.hidden)
        gqa(w, f"{p}.self_attn", d, d.hidden // d.heads)
        w.norm(f"{p}.post_attention_layernorm.weight", d.hidden)
        gated_mlp(w, f"{p}.mlp", d.hidden, d.inter)
    config = gqa_config(
        d, architectures=["LlamaForCausalLM"], model_type="llama", attention_bias=False, mlp_bias=False,
        intermediate_size=d.inter, max_position_embeddings=d.get("context", 1024), pretraining_tp=1, rms_norm_eps=1e-5,
        rope_scaling={"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 128, "rope_type": "llama3"},
        rope_theta=500000.0,
    )
    config["eos_token_id"] = [config["eos_token_id"], special_ids(d.vocab)["pad"]]
    return config


def qwen_config(d, **more):
    return gqa_config(
        d, intermediate_size=d.inter, max_position_embeddings=40960, max_window_layers=d.layers, rms_norm_eps=1e-6,
        rope_scaling=None, rope_theta=1000000.0, sliding_window=None, use_sliding_window=False, **more,
    )


def build_qwen2(d, w):
    embeddings(w, d)
    head_dim = d.hidden // d.heads
    for i in range(d.layers):
        p = f"model.layers.{i}"
        w.norm(f"{p}.input_layernorm.weight", d.hidden)
        gqa(w, f"{p}.self_attn", d, head_dim)
        for name, heads in (("q", d.heads), ("k", d.kv_heads), ("v", d.kv_heads)):
            w.normal(f"{p}.self_attn.{name}_proj.bias", (heads * head_dim,), 0.5)
        w.norm(f"{p}.post_attention_layernorm.weight", d.hidden)
        gated_mlp(w, f"{p}.mlp", d.hidden, d.inter)
    return qwen_config(d, architectures=["Qwen2ForCausalLM"], model_type="qwen2")


def build_qwen3(d, w):
    embeddings(w, d)
    for i in range(d.layers):
        p = f"model.layers.{i}"
        w.norm(f"{p}.input_layernorm.weight", d.hidden)
        gqa(w, f"{p}.self_attn", d, d.head_dim, SMALL)
        w.norm(f"{p}.self_attn.q_norm.weight", d.head_dim, 1.3)
        w.norm(f"{p}.self_attn.k_norm.weight", d.head_dim, 1.3)
        w.norm(f"{p}.post_attention_layernorm.weight", d.hidden)
        gated_mlp(w, f"{p}.mlp", d.hidden, d.inter)
    return qwen_config(d, architectures=["Qwen3ForCausalLM"], model_type="qwen3", attention_bias=False,
                       head_dim=d.head_dim)


def build_smollm3(d, w):
    embeddings(w, d)
    for i in range(d.layers):
        p = f"model.layers.{i}"
        w.norm(f"{p}.input_layernorm.weight", d.hidden)
        gqa(w, f"{p}.self_attn", d, d.hidden // d.heads)
        w.norm(f"{p}.post_attention_layernorm.weight", d.hidden)
        gated_mlp(w, f"{p}.mlp", d.hidden, d.inter)
    return gqa_config(
        d, architectures=["SmolLM3ForCausalLM"], model_type="smollm3", attention_bias=False, mlp_bias=False,
        intermediate_size=d.inter, layer_types=["full_attention"] * d.layers, max_position_embeddings=65536,
        no_rope_layer_interval=d.interval, no_rope_layers=[int((i + 1) % d.interval != 0) for i in range(d.layers)],
        pad_token_id=special_ids(d.vocab)["pad"],
        rms_norm_eps=1e-6, rope_scaling=None, rope_theta=5000000.0, sliding_window=None, use_sliding_window=False,
    )


def build_mixtral(d, w):
    embeddings(w, d)
    for i in range(d.layers):
        p = f"model.layers.{i}"
        w.norm(f"{p}.input_layernorm.weight", d.hidden)
        gqa(w, f"{p}.self_attn", d, d.hidden // d.heads)
        w.norm(f"{p}.post_attention_layernorm.weight", d.hidden)
        w.linear(f"{p}.block_sparse_moe.gate.weight", d.experts, d.hidden, 1.5)
        for e in range(d.experts):
            gated_mlp(w, f"{p}.block_sparse_moe.experts.{e}", d.hidden, d.inter, ("w1", "w3", "w2"))
    return gqa_config(
        d, architectures=["MixtralForCausalLM"], model_type="mixtral", intermediate_size=d.inter,
        max_position_embeddings=65536, num_experts_per_tok=d.top_k, num_local_experts=d.experts,
        output_router_logits=False, rms_norm_eps=1e-5, rope_theta=1000000.0, router_aux_loss_coef=0.001,
        sliding_window=None,
    )


def build_qwen3_moe(d, w):
    embeddings(w, d)
    for i in range(d.layers):
        p = f"model.layers.{i}"
        w.norm(f"{p}.input_layernorm.weight", d.hidden)
        gqa(w, f"{p}.self_attn", d, d.head_dim, SMALL)
        w.norm(f"{p}.self_attn.q_norm.weight", d.head_dim, 1.3)
        w.norm(f"{p}.self_attn.k_norm.weight", d.head_dim, 1.3)
        w.norm(f"{p}.post_attention_layernorm.weight", d.hidden)
        if i in d.mlp_only:
            gated_mlp(w, f"{p}.mlp", d.hidden, d.inter)
            continue
        w.linear(f"{p}.mlp.gate.weight", d.experts, d.hidden, 1.5)
        for e in range(d.experts):
            gated_mlp(w, f"{p}.mlp.experts.{e}", d.hidden, d.moe_inter)
    return gqa_config(
        d, architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", attention_bias=False, decoder_sparse_step=1,
        head_dim=d.head_dim, intermediate_size=d.inter, max_position_embeddings=40960, max_window_layers=d.layers,
        mlp_only_layers=d.mlp_only, moe_intermediate_size=d.moe_inter, norm_topk_prob=True, num_experts=d.experts,
        num_experts_per_tok=d.top_k, output_router_logits=False, rms_norm_eps=1e-6, rope_scaling=None,
        rope_theta=1000000.0, router_aux_loss_coef=0.001, sliding_window=None, use_sliding_window=False,
    )


def build_olmoe(d, w):
    embeddings(w, d)
    head_dim = d.hidden // d.heads
    for i in range(d.layers):
        p = f"model.layers.{i}"
        w.norm(f"{p}.input_layernorm.weight", d.hidden)
        gqa(w, f"{p}.self_attn", d, head_dim, SMALL)
        w.norm(f"{p}.self_attn.q_norm.weight", d.heads * head_dim, 1.3)
        w.norm(f"{p}.self_attn.k_norm.weight", d.kv_heads * head_dim, 1.3)
        w.norm(f"{p}.post_attention_layernorm.weight", d.hidden)
        w.linear(f"{p}.mlp.gate.weight", d.experts, d.hidden, 1.5)
        for e in range(d.experts):
            gated_mlp(w, f"{p}.mlp.experts.{e}", d.hidden, d.inter)
    return gqa_config(
        d, architectures=["OlmoeForCausalLM"], model_type="olmoe", attention_bias=False, clip_qkv=d.clip,
        intermediate_size=d.inter, max_position_embeddings=4096, norm_topk_prob=False, num_experts=d.experts,
        num_experts_per_tok=d.top_k, output_router_logits=False, pad_token_id=1, rms_norm_eps=1e-5, rope_scaling=None,
        rope_theta=10000.0, router_aux_loss_coef=0.01,
    )


def build_minimax_m2(d, w):
    embeddings(w, d)
    for i in range(d.layers):
        p = f"model.layers.{i}"
        w.norm(f"{p}.input_layernorm.weight", d.hidden)
        gqa(w, f"{p}.self_attn", d, d.head_dim, SMALL)
        w.norm(f"{p}.self_attn.q_norm.weight", d.heads * d.head_dim, 1.3)
        w.norm(f"{p}.self_attn.k_norm.weight", d.kv_heads * d.head_dim, 1.3)
        w.norm(f"{p}.post_attention_layernorm.weight", d.hidden)
        moe = f"{p}.block_sparse_moe"  # router and bias are published in float32
        w.normal(f"{moe}.gate.weight", (d.experts, d.hidden), 2.0 / math.sqrt(d.hidden), keep_f32=True)
        w.normal(f"{moe}.e_score_correction_bias", (d.experts,), 0.15, keep_f32=True)
        for e in range(d.experts):
            gated_mlp(w, f"{moe}.experts.{e}", d.hidden, d.inter, ("w1", "w3", "w2"))
    return gqa_config(
        d, architectures=["MiniMaxM2ForCausalLM"], model_type="minimax_m2", attn_type_list=[1] * d.layers,
        head_dim=d.head_dim, intermediate_size=d.inter, max_position_embeddings=4096, mtp_transformer_layers=1,
        num_experts_per_tok=d.top_k, num_local_experts=d.experts, num_mtp_modules=3, qk_norm_type="per_layer",
        rms_norm_eps=1e-6, rope_theta=5000000, rotary_dim=d.rope, scoring_func="sigmoid", shared_intermediate_size=0,
        sliding_window=None, use_mtp=True, use_qk_norm=True, use_routing_bias=True,
    )


def tie(w, d, config):
    """Embedding and head are one tensor; the final norm has both signs, or each token would predict itself."""
    del w.tensors["lm_head.weight"]
    w.normal("model.norm.weight", (d.hidden,), 5.0 / SMALL / math.sqrt(d.hidden))
    config["tie_word_embeddings"] = True


def loud(w, d, config):
    """A tied model whose logits reach 60: float32 is off by more where numbers are larger."""
    tie(w, d, config)
    w.normal("model.norm.weight", (d.hidden,), 20.0 / SMALL / math.sqrt(d.hidden))


def add_attention_biases(w, d, config):
    """What attention_bias adds: to the projections into heads (or into latents, which a norm follows) and out."""
    latent = config.get("kv_lora_rank")
    sizes = {"o_proj": d.hidden}
    if latent:
        sizes["kv_a_proj_with_mqa"] = d.kv_lora + d.rope
    else:
        sizes.update(q_proj=d.heads * d.head_dim, k_proj=d.kv_heads * d.head_dim, v_proj=d.kv_heads * d.head_dim)
    for i in range(d.layers):
        for name, size in sizes.items():
            std = 0.1 * (SMALL if name == "kv_a_proj_with_mqa" else 1.0)
            w.normal(f"model.layers.{i}.self_attn.{name}.bias", (size,), std)
    config["attention_bias"] = True


def drop_shared_experts(w, d, config):
    for name in [n for n in w.tensors if ".shared_experts." in n]:
        del w.tensors[name]
    config["n_shared_experts"] = 0
