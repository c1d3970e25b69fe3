"""Mixtures as older exporters write them: every expert is its own set of nodes.

`Masked` computes all experts of all tokens and adds each with a weight that is zero where the router did not choose it.
`Gathered` is the loop of earlier transformers traced expert by expert: the tokens of an expert are found with NonZero,
gathered, and added back where they came from.
"""
import torch
from torch import nn


class Expert(nn.Module):
    """One gated MLP with matrices of its own."""

    def __init__(self, gate_up, down, activation):
        super().__init__()
        half = gate_up.shape[0] // 2
        self.w1, self.w3, self.w2 = (nn.Parameter(t.clone()) for t in (gate_up[:half], gate_up[half:], down))
        self.activation = activation

    def forward(self, rows):
        hidden = self.activation(nn.functional.linear(rows, self.w1)) * nn.functional.linear(rows, self.w3)
        return nn.functional.linear(hidden, self.w2)


class Unrolled(nn.Module):
    """Stands where transformers' experts stand: (rows, chosen experts, their weights) -> rows."""

    def __init__(self, experts):
        super().__init__()
        pairs = zip(experts.gate_up_proj.data, experts.down_proj.data)
        self.experts = nn.ModuleList([Expert(*pair, experts.act_fn) for pair in pairs])


class Masked(Unrolled):
    def forward(self, rows, chosen, weights):
        total = torch.zeros_like(rows)
        for number, expert in enumerate(self.experts):
            mine = torch.where(chosen == number, weights, torch.zeros_like(weights)).sum(-1, keepdim=True)
            total = total + expert(rows) * mine
        return total


class Gathered(Unrolled):
    def forward(self, rows, chosen, weights):
        total = torch.zeros_like(rows)
        mask = nn.functional.one_hot(chosen, len(self.experts)).permute(2, 1, 0)
        for number, expert in enumerate(self.experts):
            place, token = torch.where(mask[number])
            made = expert(rows[None, token].reshape(-1, rows.shape[-1])) * weights[token, place, None]
            total.index_add_(0, token, made.to(rows.dtype))
        return total


def unroll(model, kind):
    """Replaces every mixture of `model` by `kind`."""
    for layer in model.model.layers:
        if hasattr(layer.mlp, "experts"):
            layer.mlp.experts = kind(layer.mlp.experts)
    return model
