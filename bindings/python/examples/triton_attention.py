"""Attention in Triton, after FlashAttention-2 (Dao 2023, algorithm 1), told from the formula.

A row of attention is  o_i = sum_j exp(s_ij) v_j / sum_j exp(s_ij)  with  s_ij = scale q_i . k_j. A program
takes BLOCK_M rows of one head and goes past the keys BLOCK_N at a time. The scores of a block never leave
the chip; what it has seen so far is kept in three things for each row:

    largest   the largest score so far, in base 2
    total     sum of 2^(score - largest)
    output    sum of 2^(score - largest) v

When a block brings a larger score, total and output are multiplied by 2^(old largest - new largest), so that
all terms stand relative to the same number: that is all of "online softmax" (Milakov and Gimelshein 2018).
At the end output / total is the answer, and (largest + log2 total) ln 2 the log-sum-exp.

Weights are summed as float32 and rounded to the type of the values afterwards, for the product with them:
summed after they were rounded, the log-sum-exp would be off by what they all lost.

Without a GPU Triton's interpreter runs it: TRITON_INTERPRET=1. That of Triton 3.9.0 multiplies the bits of bfloat16 as
if they were integers, and cuts floats to bfloat16 where the language says that they are rounded (docs/findings.md). Under
it (EMULATE) they are rounded here, and multiplied as float32.
"""

from __future__ import annotations

import os

import torch
import triton
import triton.language as tl


@triton.jit
def _nearest_bfloat16(x):
    """The nearest bfloat16, ties to even, as float32. NaN stays NaN: an infinity is no more than the largest number
    and half a unit."""
    bits = x.to(tl.uint32, bitcast=True)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return tl.where(x == x, rounded.to(tl.float32, bitcast=True), x)


@triton.jit
def _attention(
    Q, K, V, O, L,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    heads, group, queries, keys, offset, scale_log2e,
    LEFT: tl.constexpr, RIGHT: tl.constexpr,  # -1: no limit on that side
    D: tl.constexpr, DV: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_DV: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EMULATE: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    b, h = tl.program_id(1) // heads, tl.program_id(1) % heads
    d, e = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_DV)
    q_at = Q + b * q_batch + h * q_head + rows[:, None] * q_row + d[None, :]
    query = tl.load(q_at, mask=(rows[:, None] < queries) & (d[None, :] < D), other=0.0)
    K += b * k_batch + (h // group) * k_head
    V += b * v_batch + (h // group) * v_head

    largest = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    output = tl.zeros([BLOCK_M, BLOCK_DV], tl.float32)
    for first in range(0, keys, BLOCK_N):
        columns = first + tl.arange(0, BLOCK_N)
        exists = columns < keys
        key = tl.load(K + columns[None, :] * k_row + d[:, None], mask=exists[None, :] & (d[:, None] < D), other=0.0)
        value = tl.load(V + columns[:, None] * v_row + e[None, :], mask=exists[:, None] & (e[None, :] < DV), other=0.0)
        if EMULATE:
            key = key.to(tl.float32)
        score = tl.dot(query.to(key.dtype), key, input_precision="ieee") * scale_log2e

        # Query i stands at i + offset: LEFT and RIGHT are counted from there.
        distance = columns[None, :] - (rows[:, None] + offset)
        seen = tl.broadcast_to(exists[None, :], score.shape)
        if LEFT >= 0:
            seen = seen & (distance >= -LEFT)
        if RIGHT >= 0:
            seen = seen & (distance <= RIGHT)
        score = tl.where(seen, score, float("-inf"))

        new = tl.maximum(largest, tl.max(score, 1))
        base = tl.where(new == float("-inf"), 0.0, new)  # a row that has seen nothing: -inf - -inf is NaN
        weight = tl.exp2(score - base[:, None])
        shrink = tl.exp2(largest - base)
        total = total * shrink + tl.sum(weight, 1)
        if EMULATE:
            weight, value = _nearest_bfloat16(weight), value.to(tl.float32)
        weight = weight.to(value.dtype)
        output = output * shrink[:, None] + tl.dot(weight, value, input_precision="ieee")
        largest = new

    nothing = total == 0.0
    output = tl.where(nothing[:, None], 0.0, output / tl.where(nothing, 1.0, total)[:, None])
    if EMULATE:
        output = _nearest_bfloat16(output)
    o_at = O + b * o_batch + h * o_head + rows[:, None] * o_row + e[None, :]
    tl.store(o_at, output.to(O.dtype.element_ty), mask=(rows[:, None] < queries) & (e[None, :] < DV))
    lse = tl.where(nothing, float("-inf"), (largest + tl.log2(tl.where(nothing, 1.0, total))) * 0.6931471805599453)
    tl.store(L + (b * heads + h) * queries + rows, lse, mask=rows < queries)


def attention(query, key, value, scale=None, left=None, right=None, offset=0):
    """query [B, H, Tq, D], key [B, Hkv, Tk, D], value [B, Hkv, Tk, Dv] -> output [B, H, Tq, Dv] and the
    log-sum-exp [B, H, Tq]. Query i sees key j when i + offset - left <= j <= i + offset + right."""
    batch, heads, queries, width = query.shape
    keys, value_width = key.shape[2], value.shape[3]
    output = torch.empty(batch, heads, queries, value_width, dtype=query.dtype, device=query.device)
    lse = torch.empty(batch, heads, queries, dtype=torch.float32, device=query.device)
    scale = width**-0.5 if scale is None else scale
    block = 32
    grid = (triton.cdiv(queries, block), batch * heads)
    if 0 in (batch, heads, queries):
        return output, lse
    _attention[grid](
        query, key, value, output, lse,
        *query.stride()[:3], *key.stride()[:3], *value.stride()[:3], *output.stride()[:3],
        heads, heads // key.shape[1], queries, keys, offset, scale * 1.4426950408889634,
        -1 if left is None else left, -1 if right is None else right,
        width, value_width, max(16, triton.next_power_of_2(width)), max(16, triton.next_power_of_2(value_width)),
        block, block, query.dtype == torch.bfloat16 and os.environ.get("TRITON_INTERPRET") == "1",
    )  # fmt: skip
    return output, lse
