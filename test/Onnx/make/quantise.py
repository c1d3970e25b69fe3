"""Integers of 8 and 4 bits in the layout of com.microsoft QMoE, and the weights that they stand for.

A weight is (code - zero) * scale, with zero 2^(bits-1) where none is stored, along blocks of the last axis or whole
rows. Scales have signs: the entry of a block that is largest in absolute value takes the lowest code exactly, as
ONNX Runtime's quantiser of MatMulNBits does. With stored zeros the codes span the block's range instead.
"""
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scheme:
    bits: int
    block: int = 32  # 0: one scale for a row
    zeros: bool = False


SCHEMES = {"int8": Scheme(8), "int4": Scheme(4), "int4-zeros": Scheme(4, zeros=True), "int4-columns": Scheme(4, 0)}


def pack(codes, bits):
    """Two codes of 4 bits share a byte, the first in its low half; a lone last one is padded."""
    if bits == 8:
        return codes.astype(np.uint8)
    if codes.shape[-1] % 2:
        codes = np.concatenate([codes, np.zeros_like(codes[..., :1])], -1)
    return (codes[..., 0::2] | codes[..., 1::2] << 4).astype(np.uint8)


def codes_of(values, scheme):
    """(codes, scales, zeros) of [.., blocks, block]."""
    top, middle = 2 ** scheme.bits - 1, 2 ** (scheme.bits - 1)
    if scheme.zeros:
        low, high = np.minimum(values.min(-1), 0), np.maximum(values.max(-1), 0)
        scales = ((high - low) / top).astype(np.float32)
        zeros = np.clip(np.rint(-low / np.where(scales == 0, 1, scales)), 0, top).astype(np.int64)
    else:
        extreme = np.take_along_axis(values, np.abs(values).argmax(-1)[..., None], -1)[..., 0]
        scales = (extreme / -middle).astype(np.float32)
        zeros = np.full(scales.shape, middle)
    steps = np.rint(values / np.where(scales == 0, 1, scales)[..., None])
    return np.clip(steps + zeros[..., None], 0, top).astype(np.int64), scales, zeros


def blocks_of(values, scheme):
    block = scheme.block or values.shape[-1]
    if values.shape[-1] % block:
        raise ValueError(f"rows of {values.shape[-1]} are no whole number of blocks of {block}")
    return values.reshape(*values.shape[:-1], -1, block)


def quantise(values, scheme):
    """(packed codes, scales, packed zeros or None) of [experts, rows, width] as QMoE stores them."""
    codes, scales, zeros = codes_of(blocks_of(values, scheme), scheme)
    packed = pack(codes.reshape(values.shape), scheme.bits)
    scales = scales if scheme.block else scales[..., 0]
    return packed, scales, pack(zeros, scheme.bits) if scheme.zeros else None


def rounded(values, scheme):
    """What the integers of `values` stand for."""
    codes, scales, zeros = codes_of(blocks_of(values, scheme), scheme)
    return ((codes - zeros[..., None]).astype(np.float32) * scales[..., None]).reshape(values.shape)


def unpack(packed, bits, count):
    """`count` codes of the last axis."""
    if bits == 8:
        return packed[..., :count].astype(np.int64)
    return np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)[..., :count].astype(np.int64)


def dequantise(packed, scales, zeros, bits, block):
    """The float32 weights [experts, rows, width] that codes, scales and zeros of a QMoE node stand for."""
    width = packed.shape[-1] * 8 // bits
    codes = unpack(packed, bits, width)
    scales = scales if block else scales[..., None]
    middle = 2 ** (bits - 1) if zeros is None else unpack(zeros, bits, scales.shape[-1])[..., None]
    blocks = codes.reshape(*scales.shape, -1)
    return ((blocks - middle).astype(np.float32) * scales[..., None]).reshape(codes.shape)
