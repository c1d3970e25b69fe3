"""Random weights: each tensor from a stream keyed by (seed, name), so one does not depend on the others."""
import math
import zlib

import numpy as np
import torch

FP8_BLOCK = 128
# Size of activations that a norm follows: small enough that the norm's epsilon shows in the results.
SMALL = 0.02


class Weights:
    """The tensors of one checkpoint: name -> float32 tensor, in the published naming."""

    def __init__(self, seed, dtype):
        self.seed, self.dtype = seed, dtype
        self.tensors = {}
        self.keep_f32 = set()

    def put(self, name, values, keep_f32=False):
        t = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))
        if keep_f32:
            self.keep_f32.add(name)
        elif self.dtype == "bf16":
            t = t.bfloat16().float()
        self.tensors[name] = t
        return t

    def normal(self, name, shape, std, mean=0.0, keep_f32=False):
        rng = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
        return self.put(name, mean + std * rng.standard_normal(shape), keep_f32)

    def linear(self, name, rows, cols, gain=1.0):
        """A [rows, cols] = [out, in] matrix that scales a unit-variance input by `gain`."""
        return self.normal(name, (rows, cols), gain / math.sqrt(cols))

    def norm(self, name, size, mean=1.0):
        return self.normal(name, (size,), 0.15 * mean, mean)


def spread_blocks(scale, rows, cols):
    """One scale per 128x128 tile -> one scale per element; the last tile of a row or column is partial."""
    return scale.repeat_interleave(FP8_BLOCK, 0)[:rows].repeat_interleave(FP8_BLOCK, 1)[:, :cols]


def fp8_quantise(w, power_of_two=False):
    """w -> (float8_e4m3fn weight, float32 weight_scale_inv), w ~= weight * weight_scale_inv per tile."""
    rows, cols = w.shape
    br, bc = -(-rows // FP8_BLOCK), -(-cols // FP8_BLOCK)
    padded = torch.zeros(br * FP8_BLOCK, bc * FP8_BLOCK)
    padded[:rows, :cols] = w
    amax = padded.view(br, FP8_BLOCK, bc, FP8_BLOCK).abs().amax(dim=(1, 3)).clamp_min(1e-4)
    scale = amax / 448.0
    if power_of_two:
        scale = torch.exp2(torch.ceil(torch.log2(scale)))
    q = (w / spread_blocks(scale, rows, cols)).clamp(-448, 448).to(torch.float8_e4m3fn)
    return q, scale


def fp8_dequantise(q, scale):
    return q.float() * spread_blocks(scale.float(), *q.shape)
