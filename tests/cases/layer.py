#!/usr/bin/env python3
"""Makes the cases of whole layers beside it: `tests/cases/layer.py`. Straight from the formula, in decimal arithmetic of 60 digits, and of
nothing that attnbench itself is made of. The same files come out each time.

With x [B, Tq, M] and a memory m [B, Tk, M], x itself where k.f32 is not there:
    q_h = W_Q,h x + b_Q,h,  k_g = W_K,g m + b_K,g,  v_g = W_V,g m + b_V,g,  y = W_O [o_1 ... o_H] + b_O
with o_h of softmax attention, query head h reading key/value head h / (H / Hkv)."""

import os
import random
import struct
from decimal import Decimal, getcontext

getcontext().prec = 60
FOLDER = os.path.dirname(os.path.abspath(__file__))


def as_float32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def draw(source, count, size=1.0):
    """Floats of 32 bits, uniform in [-size, size]."""
    return [as_float32(source.uniform(-size, size)) for _ in range(count)]


def product(weights, row, width, n):
    return sum((Decimal(weights[n * width + m]) * row[m] for m in range(width)), Decimal(0))


def project(weights, biases, rows, width, features):
    return [[product(weights, row, width, d) + (Decimal(biases[d]) if biases else 0) for d in range(features)] for row in rows]


def tanh(x):
    e = (-2 * abs(x)).exp()
    return (1 - e) / (1 + e) * (1 if x >= 0 else -1)


def sees(c, b, i, j):
    p = i + c["offset"]
    if c["left"] >= 0 and j < p - c["left"] or c["right"] >= 0 and j > p + c["right"]:
        return False
    if c.get("lengths") and j >= c["lengths"][b]:
        return False
    return not c.get("mask") or c["mask"][(b * c["query_length"] + i) * c["key_length"] + j] != 0


def score(c, h, i, j, q, k):
    s = Decimal(c["scale"]) * sum((a * b for a, b in zip(q, k)), Decimal(0))
    if c["softcap"] > 0:
        s = Decimal(c["softcap"]) * tanh(s / Decimal(c["softcap"]))
    if c.get("bias"):
        s += Decimal(c["bias"][(h * c["query_length"] + i) * c["key_length"] + j])
    if c.get("alibi"):
        s -= Decimal(c["alibi"][h]) * abs(j - (i + c["offset"]))
    return s


def attend(c, b, h, i, q, keys, values):
    scores = {j: score(c, h, i, j, q, keys[j]) for j in range(c["key_length"]) if sees(c, b, i, j)}
    if not scores:
        return [Decimal(0)] * c["value_dim"]
    total = sum((s.exp() for s in scores.values()), Decimal(0))
    if c.get("sink"):
        total += Decimal(c["sink"][h]).exp()
    return [sum((s.exp() * values[j][e] for j, s in scores.items()), Decimal(0)) / total for e in range(c["value_dim"])]


def rows_of(data, b, length, width):
    return [[Decimal(x) for x in data[(b * length + i) * width:(b * length + i + 1) * width]] for i in range(length)]


def solve(c, t):
    H, K, D, V, M = c["query_heads"], c["kv_heads"], c["head_dim"], c["value_dim"], c["model_dim"]
    output = []
    for b in range(c["batch"]):
        x = rows_of(t["q"], b, c["query_length"], M)
        memory = rows_of(t["k"], b, c["key_length"], M) if "k" in t else x
        q = project(t["w_q"], t.get("b_q"), x, M, H * D)
        k = project(t["w_k"], t.get("b_k"), memory, M, K * D)
        v = project(t["w_v"], t.get("b_v"), memory, M, K * V)
        heads = []
        for i in range(c["query_length"]):
            row = []
            for h in range(H):
                g = h // (H // K)
                row += attend(c, b, h, i, q[i][h * D:(h + 1) * D], [r[g * D:(g + 1) * D] for r in k],
                              [r[g * V:(g + 1) * V] for r in v])
            heads.append(row)
        for row in project(t["w_o"], t.get("b_o"), heads, H * V, M):
            output += [float(y) for y in row]
    return output


def write(folder, name, code, data):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(struct.pack("<%d%s" % (len(data), code), *data))


def make(name, seed, biases=False, memory=False, **words):
    source = random.Random(seed)
    c = {"batch": 1, "kv_heads": words["query_heads"], "left": -1, "right": -1, "offset": 0, "softcap": 0.0}
    c.update(words)
    c.setdefault("value_dim", c["head_dim"])
    c.setdefault("scale", c["head_dim"] ** -0.5)
    B, H, K, D, V, M = (c[key] for key in ("batch", "query_heads", "kv_heads", "head_dim", "value_dim", "model_dim"))
    Tq, Tk = c["query_length"], c["key_length"]
    t = {"q": draw(source, B * Tq * M), "w_q": draw(source, H * D * M), "w_k": draw(source, K * D * M),
         "w_v": draw(source, K * V * M), "w_o": draw(source, M * H * V)}
    if memory:
        t["k"] = draw(source, B * Tk * M)
    if biases:
        t.update(b_q=draw(source, H * D), b_k=draw(source, K * D), b_v=draw(source, K * V), b_o=draw(source, M))
    for key, count, size in (("bias", H * Tq * Tk, 2), ("sink", H, 1), ("alibi", H, 0.5)):
        if c.get(key):
            c[key] = [abs(x) if key == "alibi" else x for x in draw(source, count, size)]
    if c.get("mask"):
        c["mask"] = [int(source.random() < 0.6) for _ in range(B * Tq * Tk)]

    folder = os.path.join(FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    lines = ["function layer"]
    for key in ("batch", "query_heads", "kv_heads", "query_length", "key_length", "head_dim", "value_dim", "model_dim", "scale",
                "left", "right", "offset", "softcap"):
        lines.append("%s %r" % (key, c[key]))
    lines.append("epsilon 0.0")
    for key in ("mask", "bias", "lengths"):
        lines.append("has_%s %d" % (key, 1 if c.get(key) else 0))
    with open(os.path.join(folder, "case.txt"), "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
    for key, data in t.items():
        write(folder, key + ".f32", "f", data)
    for key in ("bias", "sink", "alibi"):
        if c.get(key):
            write(folder, key + ".f32", "f", c[key])
    if c.get("mask"):
        write(folder, "mask.u8", "B", c["mask"])
    if c.get("lengths"):
        write(folder, "lengths.i32", "i", c["lengths"])
    write(folder, "output.f64", "d", solve(c, t))


make("layer", 1, batch=2, query_heads=2, query_length=7, key_length=7, head_dim=4, model_dim=8)
make("layer_causal_biases", 2, biases=True, query_heads=3, kv_heads=1, query_length=9, key_length=9, head_dim=5, value_dim=3,
     model_dim=7, right=0)
make("layer_memory_lengths_sink", 3, biases=True, memory=True, batch=2, query_heads=4, kv_heads=2, query_length=5, key_length=8,
     head_dim=3, value_dim=6, model_dim=10, lengths=[8, 5], sink=True)
make("layer_no_key", 4, biases=True, memory=True, batch=2, query_heads=2, query_length=4, key_length=6, head_dim=4, model_dim=5,
     lengths=[0, 3], right=0, offset=-2)
make("layer_memory_mask", 5, memory=True, batch=2, query_heads=2, query_length=6, key_length=6, head_dim=4, value_dim=2,
     model_dim=3, mask=True)
make("layer_window_softcap_bias", 6, biases=True, query_heads=2, query_length=10, key_length=10, head_dim=3, model_dim=13, left=3,
     right=1, softcap=1.5, bias=True, alibi=True, scale=1.25)
