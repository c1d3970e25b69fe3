"""The reference: transformers' model of a family in float32, float64 or bfloat16, and what happens inside."""
import json
import re
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from torch.overrides import TorchFunctionMode

transformers.utils.logging.disable_progress_bar()
UNUSED = ("rotary_emb.inv_freq", ".eh_proj.", ".enorm.", ".hnorm.", ".shared_head.")
NAME = f"transformers {transformers.__version__}, eager, torch {torch.__version__}"


class InFloat64(TorchFunctionMode):
    """Every float32 that the model's code names (norms, softmax, router, rotary angles) becomes float64."""

    def __init__(self, refuse=False):
        super().__init__()
        self.refuse = refuse

    def __torch_function__(self, func, types, args=(), kwargs=None):
        wider = lambda v: torch.float64 if v is torch.float32 else v
        func = torch.Tensor.double if func is torch.Tensor.float else func
        result = func(*map(wider, args), **{k: wider(v) for k, v in (kwargs or {}).items()})
        if self.refuse and isinstance(result, torch.Tensor) and result.dtype == torch.float32:
            raise RuntimeError(f"{func} computes in float32")
        return result


class KeptFloat32(TorchFunctionMode):
    """bfloat16 rows meet float32 weights: the product is summed in float32 and rounded to bfloat16 once."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.nn.functional.linear and args[0].dtype == torch.bfloat16 and args[1].dtype == torch.float32:
            bias = args[2].float() if len(args) > 2 and args[2] is not None else None
            return func(args[0].float(), args[1], bias).bfloat16()
        return func(*args, **(kwargs or {}))


@contextmanager
def default_dtype(dtype):
    saved = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(saved)


@contextmanager
def alternating_layers(config):
    """transformers' DeepSeek V3 does not read moe_layer_freq: layers that are no multiple of it get their dense MLP."""
    from transformers.models.deepseek_v3 import modeling_deepseek_v3 as v3

    original, every = v3.DeepseekV3DecoderLayer.__init__, config.get("moe_layer_freq", 1)

    def init(self, model_config, layer):
        original(self, model_config, layer)
        if layer % every:
            self.mlp = v3.DeepseekV3MLP(model_config)

    v3.DeepseekV3DecoderLayer.__init__ = init
    try:
        yield
    finally:
        v3.DeepseekV3DecoderLayer.__init__ = original


def load(config, tensors, dtype=torch.float32):
    """The family's model through transformers' own weight mapping, with eager attention and experts."""
    config = {k: v for k, v in config.items() if k not in ("quantization_config", "torch_dtype")}
    kind = config["model_type"]
    if kind == "kimi_k2":
        config["model_type"] = "deepseek_v3"
    with tempfile.TemporaryDirectory() as tmp, alternating_layers(config):
        Path(tmp, "config.json").write_text(json.dumps(config))
        stored = {n: t.contiguous() for n, t in tensors.items()}
        save_file(stored, Path(tmp, "model.safetensors"), metadata={"format": "pt"})
        cls = getattr(transformers, config["architectures"][0])
        wide = InFloat64() if dtype == torch.float64 else nullcontext()
        with wide, default_dtype(dtype if dtype == torch.float64 else torch.float32):
            model, info = cls.from_pretrained(tmp, dtype=dtype, attn_implementation="eager",
                                              experts_implementation="eager", output_loading_info=True)
    extra_layer = f"model.layers.{config.get('num_hidden_layers')}."
    ignored = lambda name: name.startswith(extra_layer) or any(u in name for u in UNUSED)
    unexpected = [k for k in info["unexpected_keys"] if not ignored(k)]
    missing = [k for k in info["missing_keys"] if ".shared_experts." not in k or config.get("n_shared_experts")]
    if missing or unexpected or info["mismatched_keys"]:
        raise RuntimeError(f"{kind}: loading: missing {missing}, unexpected {unexpected}, {info['mismatched_keys']}")
    return model.eval()


def keep_float32(model, exact):
    """Weights (selection biases among them) of the bfloat16 `model` that bfloat16 cannot hold stay as they are in
    `exact`; their names."""
    weights = lambda m: {**dict(m.named_parameters()), **dict(m.named_buffers())}
    kept, values = [], weights(exact)
    for name, weight in weights(model).items():
        if not torch.equal(weight.float(), values[name]):
            weight.data = values[name].data
            kept.append(name)
    owners = {name.rsplit(".", 1)[0] for name in kept}
    for name, module in model.named_modules():
        if name in owners:  # a norm or an embedding: the result has the type of the activations
            module.register_forward_hook(
                lambda m, args, out: out.bfloat16() if isinstance(out, torch.Tensor) else out)
    return kept


class Runner:
    """Uniform access to a reference: prefill, cached steps, what happened inside, and forced routes."""

    def __init__(self, config, tensors, dtype=torch.float32):
        self.config, self.dtype, self.events, self.forced, self.kept = config, dtype, None, None, []
        self.model = load(config, tensors, dtype)
        if dtype == torch.bfloat16:
            self.kept = keep_float32(self.model, load(config, tensors))
        for name, module in self.model.named_modules():
            self.observe(name, module)

    def observe(self, name, module):
        number = re.search(r"\.layers\.(\d+)", name)
        layer = number.group(1) if number else None
        if name.endswith(".experts"):
            module.register_forward_pre_hook(lambda m, args, key=layer: self.route(key, args))
        elif re.fullmatch(r".*\.layers\.\d+", name):
            first = lambda out: out[0] if isinstance(out, tuple) else out
            module.register_forward_hook(
                lambda m, args, out, key=f"layer{layer}": self.note("hidden", key, first(out)))
        elif name.endswith("embed_tokens"):
            module.register_forward_hook(lambda m, args, out: self.note("hidden", "layer-1", out))

    def note(self, kind, key, *values):
        if self.events is not None:
            self.events.append((kind, key, *[v.detach().clone() for v in values]))

    def route(self, layer, args):
        """Notes the experts and weights of each token; replaces them when routes are forced."""
        self.note("route", layer, args[1], args[2])
        if self.forced is None:
            return None
        routes = self.forced[layer]
        weights = torch.tensor(routes["weights"], dtype=torch.float32).to(args[2].dtype)
        return (args[0], torch.tensor(routes["experts"]), weights, *args[3:])

    @contextmanager
    def recording(self):
        self.events = []
        try:
            yield self.events
        finally:
            self.events = None

    @contextmanager
    def forcing(self, routes):
        self.forced = routes
        try:
            yield
        finally:
            self.forced = None

    def arithmetic(self):
        """The arithmetic of a run beside what the parameters' types say."""
        if self.dtype == torch.float64:
            return InFloat64(refuse=True)
        return KeptFloat32() if self.kept else nullcontext()

    @torch.no_grad()
    def call(self, **arguments):
        with self.arithmetic(), default_dtype(torch.float64 if self.dtype == torch.float64 else torch.float32):
            return self.model(**arguments)

    def start(self, ids):
        """Logits of every position of these prompt rows, and a state to continue from."""
        out = self.call(input_ids=ids, use_cache=True)
        return out.logits, out.past_key_values

    def step(self, token, state):
        out = self.call(input_ids=token, past_key_values=state, use_cache=True)
        return out.logits, out.past_key_values

    def recompute(self, ids, generated):
        """Last logits with no cache: the whole sequence at once."""
        full = torch.cat([ids, torch.tensor([generated], dtype=ids.dtype)], 1)
        return self.call(input_ids=full, use_cache=False).logits[0, -1]

    def greedy(self, ids, count):
        logits, state = self.start(ids)
        tokens, margins = [], []
        for _ in range(count):
            best = logits[0, -1].topk(2)
            tokens.append(int(best.indices[0]))
            margins.append(float(best.values[0] - best.values[1]))
            logits, state = self.step(torch.tensor([[tokens[-1]]]), state)
        return tokens, margins

    def greedy_without_cache(self, ids, count):
        tokens = []
        for _ in range(count):
            tokens.append(int(self.recompute(ids, tokens).argmax()))
        return tokens
