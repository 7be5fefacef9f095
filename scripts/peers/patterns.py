"""Patterns: each as a part of the suite's line, and as the rule that PyTorch's FlexAttention takes as its mask_mod. A rule is written
once for the arrays of numpy and of PyTorch alike, so that libraries without patterns get it as a mask of all pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from options import SPARSE

# Of entry, head, query and key, as arrays of whole numbers that broadcast, who is seen.
Rule = Callable[[Any, Any, Any, Any], Any]
# Tensors of the inputs by their names, and arrays of numpy, as the library has them.
Has = Callable[[Any], Any]


@dataclass(frozen=True)
class Pattern:
    band: str
    part: str
    rule: Callable[[int, Has], Rule]  # of a length


def _strided(length: int, has: Has) -> Rule:
    root = math.isqrt(length - 1) + 1
    return lambda b, h, q, k: (q >= k) & ((q - k <= root) | ((q - k) % root == 0))


def _random_blocks(length: int, block: int, count: int) -> np.ndarray:
    """Which blocks of keys a row of blocks draws: `random:count,block` as `attnbench help problem` has it."""
    rows = -(-length // block)
    table, most = np.zeros((rows, rows), bool), (1 << 64) - 1
    for row in range(rows):
        for n in range(count):
            x = (row * 0xD1342543DE82EF95 + n * 0xAF251AF3B0F025B5) & most
            x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & most
            x = ((x ^ x >> 27) * 0x94D049BB133111EB) & most
            table[row, (x ^ x >> 31) % rows] = True
    return table


def _bigbird(length: int, has: Has) -> Rule:
    drawn = has(_random_blocks(length, 64, 3))
    return lambda b, h, q, k: (abs(q - k) <= 96) | (k < 128) | (q < 128) | drawn[q // 64, k // 64]


def _documents(length: int, has: Has) -> Rule:
    query, key = has("docs_q"), has("docs_k")
    return lambda b, h, q, k: (q >= k) & (query[b, q] == key[b, k])


def _blocks(length: int, has: Has) -> Rule:
    shown = has("blocks")
    return lambda b, h, q, k: shown[0, 0, q // 128, k // 128] != 0


PATTERNS = {
    "strided": Pattern("causal", "see:local:sqrt,0+strided:sqrt", _strided),
    "fixed": Pattern(
        "causal",
        "see:fixed:128,8",
        lambda length, has: lambda b, h, q, k: (q >= k) & ((q // 128 == k // 128) | (k % 128 >= 120)),
    ),
    "longformer": Pattern(
        "full",
        "see:local:256,256+global:1",
        lambda length, has: lambda b, h, q, k: (abs(q - k) <= 256) | (k < 1) | (q < 1),
    ),
    "bigbird": Pattern("full", "see:local:96,96+global:128+random:3,64", _bigbird),
    "streaming-llm": Pattern(
        "causal",
        "see:local:1019,0+first:4",
        lambda length, has: lambda b, h, q, k: (q >= k) & ((q - k <= 1019) | (k < 4)),
    ),
    "documents": Pattern("causal", "docs:1024", _documents),
    "blocks": Pattern("full", "blocks:128,128,0.1", _blocks),
}
assert tuple(PATTERNS) == SPARSE
