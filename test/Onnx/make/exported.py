"""Models written by PyTorch's exporters and by the one of transformers, from a transformers model.

PyTorch's newer exporter (`dynamo`) captures the model with torch.export, its older one (`script`) traces it. Both see
a module of plain tensors: a cache goes in and out as keys and values of each layer. transformers' exporter takes the
model itself, and can fuse the result into ONNX Runtime's operators.
"""
import copy
import logging
import warnings

import torch
from torch import nn
from transformers import DynamicCache

from make import unrolled
from make.checkpoints import float32_model, with_weights

BATCH, TOKENS, PAST = 2, 5, 3  # sizes of the examples; every one of them is dynamic in the file
BATCH_NAME, TOKENS_NAME, PAST_NAME, TOTAL_NAME = (
    "batch_size", "sequence_length", "past_sequence_length", "total_sequence_length")


class Whole(nn.Module):
    """A prompt to the logits of all its positions."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask=None, position_ids=None):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
                          use_cache=False).logits


class Cached(nn.Module):
    """New tokens and a cache to logits and the longer cache; `past` is key and value of each layer in turns."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, position_ids, *past):
        cache = DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
                         past_key_values=cache, use_cache=True)
        present = [part for layer in out.past_key_values.layers for part in (layer.keys, layer.values)]
        return (out.logits, *present)


def tokens(count):
    return torch.arange(3, 3 + BATCH * count).reshape(BATCH, count)


def example_cache(model):
    with torch.no_grad():
        cache = model(input_ids=tokens(PAST), use_cache=True).past_key_values
    return [part for layer in cache.layers for part in (layer.keys, layer.values)]


def signature(model, past, mask):
    """(module, example inputs, their names, names of the outputs, name -> names of its dynamic axes)"""
    ids, two = tokens(TOKENS), {0: BATCH_NAME, 1: TOKENS_NAME}
    before = PAST if past else 0
    positions = torch.arange(before, before + TOKENS).expand(BATCH, TOKENS).contiguous()
    inputs = {"input_ids": ids}
    axes = {"input_ids": two, "logits": two}
    if mask or past:
        inputs.update(attention_mask=torch.ones(BATCH, before + TOKENS, dtype=torch.long), position_ids=positions)
        axes.update(attention_mask={0: BATCH_NAME, 1: TOTAL_NAME if past else TOKENS_NAME}, position_ids=two)
    if not past:
        return Whole(model).eval(), inputs, ["logits"], axes
    outputs = ["logits"]
    for i, part in enumerate(example_cache(model)):
        label = f"{i // 2}.{('key', 'value')[i % 2]}"
        inputs[f"past_key_values.{label}"] = part
        outputs.append(f"present.{label}")
        axes[f"past_key_values.{label}"] = {0: BATCH_NAME, 2: PAST_NAME}
        axes[f"present.{label}"] = {0: BATCH_NAME, 2: TOTAL_NAME}
    return Cached(model).eval(), inputs, outputs, axes


def prepared(name, attention, unroll, dtype=None):
    """(the model in float32, what is exported of it): the same, or a copy of another type or with mixtures unrolled"""
    model = float32_model(name, attention)
    if dtype:
        model = with_weights(model, lambda weight: weight.to(dtype).float())
        return model, with_weights(copy.deepcopy(model), lambda weight: weight.to(dtype))
    return model, unrolled.unroll(copy.deepcopy(model), getattr(unrolled, unroll)) if unroll else model


def quiet():
    warnings.filterwarnings("ignore")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    logging.getLogger("torch.export").setLevel(logging.ERROR)


def dynamo(folder, name, past=False, mask=False, attention="sdpa", opset=None, unroll=None, optimise=True,
           external=False, dtype=None):
    """torch.onnx.export(dynamo=True)"""
    quiet()
    model, shown = prepared(name, attention, unroll, dtype)
    module, inputs, outputs, axes = signature(shown, past, mask)
    shapes = [axes[key] for key in inputs]
    if past:
        shapes = [*shapes[:3], tuple(shapes[3:])]
    program = torch.onnx.export(module, tuple(inputs.values()), dynamo=True, dynamic_shapes=tuple(shapes),
                                input_names=list(inputs), output_names=outputs, opset_version=opset, verbose=False,
                                optimize=optimise)
    program.save(str(folder / "model.onnx"), external_data=external)
    return model


def script(folder, name, past=False, attention="eager", opset=17, unroll=None):
    """torch.onnx.export(dynamo=False), with a mask and positions as tools of that time had them"""
    quiet()
    model, shown = prepared(name, attention, unroll)
    module, inputs, outputs, axes = signature(shown, past, True)
    torch.onnx.export(module, tuple(inputs.values()), str(folder / "model.onnx"), dynamo=False, opset_version=opset,
                      input_names=list(inputs), output_names=outputs, dynamic_axes=axes)
    return model


def transformers_exporter(folder, name, past=False, fusions=None):
    """transformers.exporters.OnnxExporter, whose files keep their weights beside the graph"""
    from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter
    quiet()
    model = float32_model(name, "sdpa")
    inputs = {"input_ids": tokens(TOKENS),
              "attention_mask": torch.ones(BATCH, TOKENS + (PAST if past else 0), dtype=torch.long)}
    model.config.use_cache = past
    if past:
        with torch.no_grad():
            inputs["past_key_values"] = model(input_ids=tokens(PAST), use_cache=True).past_key_values
    exported = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True, ort_fusions=fusions))
    exported.save_pretrained(str(folder))
    for extra in ("config.json", "export.json"):
        (folder / extra).unlink(missing_ok=True)
    return model
