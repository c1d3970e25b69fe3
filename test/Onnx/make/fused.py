"""Decoders in ONNX Runtime's own operators, in the layout that onnxruntime-genai's builder writes.

The builder has no class for Mixtral, Qwen3 MoE and OLMoE; a writer of such files would build them as it builds its own
mixtures: packed or normalised projections into GroupQueryAttention with rotary tables, SkipSimplifiedLayerNorm-
alization that hands the sum on, a router MatMul, and one MoE or QMoE node a layer. `FORMS` are the spellings of the
experts: three of SwiGLU (one matrix with rows of gate and up in turns, one with gate before up, two matrices), SiLU
with a third matrix as transformers' exporter writes, and integers of 8 or 4 bits with and without blocks and zeros.
"""
import numpy as np
import torch
from onnx import TensorProto, helper, numpy_helper

from make.checkpoints import float32_model
from make.quantise import SCHEMES, quantise, rounded

FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
MICROSOFT = "com.microsoft"
POSITIONS = 256  # rows of the rotary tables
FORMS = ("interleaved", "concatenated", "separate", "silu", "int8", "int4", "int4-zeros", "int4-columns")


def array(tensor):
    return np.ascontiguousarray(tensor.detach().float().numpy())


class Writer:
    """The nodes and initializers of one graph in the order of writing."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, name, values):
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def constant(self, name, values):
        """A Constant node, as the builder writes numbers."""
        tensor = numpy_helper.from_array(np.array(values, dtype=np.int64))
        self.nodes.append(helper.make_node("Constant", [], [name], name=name, value=tensor))
        return name

    def node(self, op, inputs, name, domain="", outputs=None, **attributes):
        """Adds a node and gives the name of its first output."""
        outputs = outputs or [f"{name}/output_0"]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=name, domain=domain, **attributes))
        return outputs[0]

    def linear(self, rows, weight, name, bias=None):
        out = self.node("MatMul", [rows, self.weight(f"{name[1:].replace('/', '.')}.MatMul.weight", weight.T)],
                        f"{name}/MatMul")
        if bias is None:
            return out
        return self.node("Add", [out, self.weight(f"{name[1:].replace('/', '.')}.Add.bias", bias)], f"{name}/Add")


class Decoder:
    """Writes the graph of one transformers model with grouped attention and experts behind a softmax router."""

    def __init__(self, model, form):
        self.model, self.config, self.form, self.out = model, model.config, form, Writer()
        attention = model.model.layers[0].self_attn
        self.head, self.heads = attention.head_dim, self.config.num_attention_heads
        self.kv_heads, self.epsilon = self.config.num_key_value_heads, self.config.rms_norm_eps

    def prologue(self):
        """seqlens_k and total_sequence_length of the mask, rotary tables, the embedded tokens."""
        out, prefix = self.out, "/model/attn_mask_reformat/attn_mask_subgraph"
        total = out.node("ReduceSum", ["attention_mask", out.constant("/model/constants/INT64/[1]", [1])],
                         f"{prefix}/ReduceSum", keepdims=0)
        less = out.node("Sub", [total, "/model/constants/INT64/[1]"], f"{prefix}/Sub")
        self.lengths = out.node("Cast", [less], f"{prefix}/Sub/Cast", to=INT32)
        shape = out.node("Shape", ["attention_mask"], f"{prefix}/Shape")
        width = out.node("Gather", [shape, out.constant("/model/constants/INT64/1", 1)], f"{prefix}/Gather", axis=0)
        self.total = out.node("Cast", [width], f"{prefix}/Gather/Cast", to=INT32)
        rotary = self.model.model.rotary_emb
        angles = np.arange(POSITIONS, dtype=np.float32)[:, None] * array(rotary.inv_freq)[None]
        out.weight("cos_cache", np.cos(angles) * np.float32(rotary.attention_scaling))
        out.weight("sin_cache", np.sin(angles) * np.float32(rotary.attention_scaling))
        table = out.weight("model.embed_tokens.weight", array(self.model.model.embed_tokens.weight))
        return out.node("Gather", [table, "input_ids"], "/model/embed_tokens/Gather")

    def norm(self, rows, module, name):
        return self.out.node("SimplifiedLayerNormalization",
                             [rows, self.out.weight(f"{name[1:].replace('/', '.')}.weight", array(module.weight))],
                             name, epsilon=self.epsilon, axis=-1, stash_type=1)

    def skip_norm(self, residual, rows, module, name, last=False):
        """The norm of residual + rows, and that sum."""
        outputs = [f"{name}/output_0"] + ([] if last else ["", "", f"{name}/output_3"])
        weight = self.out.weight(f"{name[1:].replace('/', '.')}.weight", array(module.weight))
        self.out.node("SkipSimplifiedLayerNormalization", [residual, rows, weight], name, MICROSOFT, outputs,
                      epsilon=self.epsilon)
        return outputs[0], outputs[-1]

    def head_norm(self, rows, module, width, name):
        """A norm over each head (Qwen3) or over all of them (OLMoE)."""
        if module.weight.shape[0] == width:
            return self.norm(rows, module, name)
        out, size = self.out, module.weight.shape[0]
        split = out.node("Reshape", [rows, out.constant(f"{name}/split", [0, -1, size])], f"{name}/Reshape_1")
        normed = self.norm(split, module, f"{name}/layernorm")
        return out.node("Reshape", [normed, out.constant(f"{name}/merge", [0, -1, width])], f"{name}/Reshape_2")

    def attention(self, layer, rows, index):
        out, name = self.out, f"/model/layers.{index}/attn"
        attention, shared = layer.self_attn, self.kv_heads * self.head
        widths = (self.heads * self.head, shared, shared)
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        packed = np.concatenate([array(p.weight) for p in projections])
        bias = None if projections[0].bias is None else np.concatenate([array(p.bias) for p in projections])
        query, key, value = out.linear(rows, packed, f"{name}/qkv_proj", bias), "", ""
        if hasattr(attention, "q_norm"):
            parts = [f"{name}/qkv_proj/Split/output_{i}" for i in range(3)]
            out.node("Split", [query, out.constant(f"{name}/qkv_proj/sizes", widths)], f"{name}/qkv_proj/Split",
                     outputs=parts, axis=-1)
            query = self.head_norm(parts[0], attention.q_norm, widths[0], f"{name}/q_norm")
            key = self.head_norm(parts[1], attention.k_norm, widths[1], f"{name}/k_norm")
            value = parts[2]
        past = [f"past_key_values.{index}.key", f"past_key_values.{index}.value"]
        present = [f"present.{index}.key", f"present.{index}.value"]
        rotary = ["cos_cache", "sin_cache", "", "", ""]
        mixed = out.node("GroupQueryAttention", [query, key, value, *past, self.lengths, self.total, *rotary],
                         f"{name}/GroupQueryAttention", MICROSOFT, [f"{name}/GroupQueryAttention/output_0", *present],
                         num_heads=self.heads, kv_num_heads=self.kv_heads, scale=float(attention.scaling),
                         local_window_size=-1, softcap=0.0, do_rotary=1, rotary_interleaved=0)
        proj = attention.o_proj
        return out.linear(mixed, array(proj.weight), f"{name}/o_proj", None if proj.bias is None else array(proj.bias))

    def experts(self, layer, rows, index):
        """The router and the one node of the experts."""
        out, name, block = self.out, f"/model/layers.{index}/moe", layer.mlp
        count = block.experts.num_experts
        scores = out.linear(rows, array(block.gate.weight), f"{name}/router")
        shape = out.constant(f"{name}/router/shape", [-1, count])
        scores = out.node("Reshape", [scores, shape], f"{name}/router/Reshape")
        attributes = dict(k=self.config.num_experts_per_tok, use_sparse_mixer=0, activation_alpha=1.0,
                          activation_beta=0.0, normalize_routing_weights=int(self.config.norm_topk_prob
                          if hasattr(self.config, "norm_topk_prob") else True))
        prefix = f"model.layers.{index}.moe.experts"
        if self.form in SCHEMES:
            return self.quantised(name, [rows, scores], prefix, block.experts, attributes)
        operands, more = float_experts(out, prefix, self.form, array(block.experts.gate_up_proj),
                                       array(block.experts.down_proj))
        return out.node("MoE", [rows, scores, *operands], f"{name}/MoE", MICROSOFT, **attributes, **more)

    def quantised(self, name, rows, prefix, experts, attributes):
        """A QMoE node, rows of gate and up in turns; the model's own weights become what the integers stand for."""
        scheme, operands, zeros = SCHEMES[self.form], [], []
        for part in ("gate_up_proj", "down_proj"):
            parameter = getattr(experts, part)
            values = array(parameter)
            codes, scales, zero = quantise(interleave(values) if part == "gate_up_proj" else values, scheme)
            parameter.data = torch.from_numpy(rounded(values, scheme))
            operands += [self.out.weight(f"{prefix}.{part}.qweight", codes),
                         self.out.weight(f"{prefix}.{part}.scales", scales), ""]
            zeros += [self.out.weight(f"{prefix}.{part}.zero_points", zero)] if zero is not None else [""]
        block = {"block_size": scheme.block} if scheme.block else {}
        return self.out.node("QMoE", [*rows, *operands, "", "", "", *zeros, ""], f"{name}/QMoE", MICROSOFT,
                             activation_type="swiglu", swiglu_fusion=1, expert_weight_bits=scheme.bits, **block,
                             **attributes)

    def model_proto(self):
        out, residual = self.out, self.prologue()
        layers = self.model.model.layers
        rows = self.norm(residual, layers[0].input_layernorm, "/model/layers.0/input_layernorm")
        for index, layer in enumerate(layers):
            name = f"/model/layers.{index}"
            mixed = self.attention(layer, rows, index)
            rows, residual = self.skip_norm(residual, mixed, layer.post_attention_layernorm,
                                            f"{name}/post_attention_layernorm")
            made = self.experts(layer, rows, index)
            final = index + 1 == len(layers)
            following = self.model.model.norm if final else layers[index + 1].input_layernorm
            label = "final_norm_layernorm" if final else "input_layernorm"
            rows, residual = self.skip_norm(residual, made, following, f"/model/layers.{index + 1}/{label}", final)
        head = out.weight("lm_head.MatMul.weight", array(self.model.lm_head.weight).T)
        out.node("MatMul", [rows, head], "/lm_head/MatMul", outputs=["logits"])
        return self.finish()

    def finish(self):
        value = helper.make_tensor_value_info
        cache = lambda name, kind, length: [
            value(f"{name}.{i}.{kind}", FLOAT, ["batch_size", self.kv_heads, length, self.head])
            for i in range(self.config.num_hidden_layers)]
        inputs = [value("input_ids", INT64, ["batch_size", "sequence_length"]),
                  value("attention_mask", INT64, ["batch_size", "total_sequence_length"])]
        outputs = [value("logits", FLOAT, ["batch_size", "sequence_length", self.config.vocab_size])]
        for kind in ("key", "value"):
            inputs += cache("past_key_values", kind, "past_sequence_length")
            outputs += cache("present", kind, "total_sequence_length")
        graph = helper.make_graph(self.out.nodes, "main_graph", inputs, outputs, self.out.weights)
        opsets = [helper.make_opsetid("", 22), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="k2c-make-models")


def interleave(gate_up):
    """Rows of gate and up in turns, from all of gate before all of up."""
    experts, rows, width = gate_up.shape
    return gate_up.reshape(experts, 2, rows // 2, width).transpose(0, 2, 1, 3).reshape(experts, rows, width)


def float_experts(out, prefix, form, gate_up, down):
    """The inputs of a MoE node after the scores, and its attributes."""
    half = gate_up.shape[1] // 2
    if form in ("interleaved", "concatenated"):
        first = interleave(gate_up) if form == "interleaved" else gate_up
        biases = ["", ""]
        if form == "interleaved":  # as the builder does for models that have none
            biases = [out.weight(f"{prefix}.gate_up_proj.bias", np.zeros(gate_up.shape[:2], np.float32)),
                      out.weight(f"{prefix}.down_proj.bias", np.zeros(down.shape[:2], np.float32))]
        return [out.weight(f"{prefix}.gate_up_proj.weight", first), biases[0],
                out.weight(f"{prefix}.down_proj.weight", down), biases[1]], \
            dict(activation_type="swiglu", swiglu_fusion=1 if form == "interleaved" else 2)
    gate, up = gate_up[:, :half], gate_up[:, half:]
    return [out.weight(f"{prefix}.gate_proj.weight", gate), "", out.weight(f"{prefix}.down_proj.weight", down), "",
            out.weight(f"{prefix}.up_proj.weight", up), ""], \
        dict(activation_type="swiglu" if form == "separate" else "silu", swiglu_fusion=0)


def fused(folder, name, form):
    """A decoder of ONNX Runtime's operators; gives the model whose weights the file stands for."""
    model = float32_model(name)
    onnx_model = Decoder(model, form).model_proto()
    (folder / "model.onnx").write_bytes(onnx_model.SerializeToString())
    return model
