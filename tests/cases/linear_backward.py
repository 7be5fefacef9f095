#!/usr/bin/env python3
"""Makes the cases of linear attention's backward pass beside it: `tests/cases/linear_backward.py`. Outputs straight from the formula, in
decimal arithmetic of 60 digits, and gradients by central differences of these, so that no formula of a gradient is in it. The same files
come out each time.

    o_i = sum_j w_ij v_j / (sum_j w_ij + epsilon),  w_ij = phi(q_i).phi(k_j) exp(sum of decay_t, j < t <= i + offset)
over the keys j <= i + offset that exist, query head h reading key/value head h / (H / Hkv); with `normalise 0` sum_j w_ij v_j alone. A state S, z
adds phi(q_i) S and phi(q_i).z to the two sums, times exp(sum of decay_t, t <= i + offset).

Of 16 bits the backward pass is given o_i as it was rounded, r_i: so its gradients are those of sum_i (do_i.N_i - do_i.r_i n_i) / n_i, of the sums N_i and
n_i that are divided, where the n_i below stays what it is."""

import os
import random
import struct
from decimal import Decimal, getcontext

getcontext().prec = 60
FOLDER = os.path.dirname(os.path.abspath(__file__))
STEP = Decimal(10) ** -15  # leaves errors of 1e-30 of third derivatives, and of 1e-44 of what decimals round

CASES = {
    "backward_linear_decay": dict(query_length=6, key_length=8, offset=2, phi="elu1", normalise=1, epsilon=0.125, lengths=(8, 5), seed=3),
    "backward_linear_decay_plain": dict(query_length=7, key_length=7, offset=0, phi="identity", normalise=0, epsilon=0.0, lengths=None, seed=4),
    "backward_linear_decay_state": dict(query_length=5, key_length=6, offset=-1, phi="elu1", normalise=1, epsilon=0.0, lengths=None, seed=5, state=1),
    "bf16_backward_linear": dict(query_length=6, key_length=7, offset=1, phi="elu1", normalise=1, epsilon=0.0, lengths=(7, 4), seed=6, type="bf16"),
    "f16_backward_linear_state": dict(query_length=5, key_length=6, offset=0, phi="elu1", normalise=1, epsilon=0.25, lengths=None, seed=7, state=1, type="f16"),
}
SIZES = dict(batch=2, query_heads=4, kv_heads=2, head_dim=3, value_dim=4)


def rounded(number, kind):
    if kind == "bf16":
        bits = struct.unpack("<I", struct.pack("<f", number))[0]
        return struct.unpack("<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16))[0]
    kind = {"f32": "<f", "f16": "<e"}[kind]
    return struct.unpack(kind, struct.pack(kind, number))[0]


def draw(source, count, low, high, kind):
    return [rounded(source.uniform(low, high), kind) for _ in range(count)]


def phi(c, x):
    if c["phi"] == "identity":
        return x
    return x + 1 if x > 0 else x.exp()


def sums(c, b, h, i, at):
    """Of a row of the output: what is divided, and what by. at(tensor, n): element n of a tensor."""
    D, Dv, Tk, g = c["head_dim"], c["value_dim"], c["key_length"], h // (c["query_heads"] // c["kv_heads"])
    head, own = b * c["kv_heads"] + g, i + c["offset"]
    keys = c["lengths"][b] if c["lengths"] else Tk
    q = [phi(c, at("q", ((b * c["query_heads"] + h) * c["query_length"] + i) * D + d)) for d in range(D)]
    total, output, log = Decimal(c["epsilon"]), [Decimal(0)] * Dv, Decimal(0)
    for j in range(min(own, keys - 1), -1, -1):
        weight = sum((q[d] * phi(c, at("k", (head * Tk + j) * D + d)) for d in range(D)), Decimal(0)) * log.exp()
        total += weight
        output = [o + weight * at("v", (head * Tk + j) * Dv + e) for e, o in enumerate(output)]
        log += at("decay", head * Tk + j)
    for d in range(D if c.get("state") else 0):
        total += q[d] * log.exp() * at("state_sum", head * D + d)
        output = [o + q[d] * log.exp() * at("state", (head * D + d) * Dv + e) for e, o in enumerate(output)]
    return output, total


def row(c, b, h, i, at):
    output, total = sums(c, b, h, i, at)
    return [o / total for o in output] if c["normalise"] else output


def loss(c, b, g, at):
    """Of the query heads that read a key/value head."""
    group, Tq, Dv, sum_of = c["query_heads"] // c["kv_heads"], c["query_length"], c["value_dim"], Decimal(0)
    for h in range(g * group, (g + 1) * group):
        for i in range(Tq):
            first = ((b * c["query_heads"] + h) * Tq + i) * Dv
            grad = [at("output_grad", first + e) for e in range(Dv)]
            if c["type"] == "f32" or not c["normalise"]:
                sum_of += sum((o * grad[e] for e, o in enumerate(row(c, b, h, i, at))), Decimal(0))
                continue
            output, total = sums(c, b, h, i, at)
            delta = sum((Decimal(c["given"][first + e]) * grad[e] for e in range(Dv)), Decimal(0))
            sum_of += (sum((o * grad[e] for e, o in enumerate(output)), Decimal(0)) - delta * total) / c["totals"][first // Dv]
    return sum_of


def gradient(c, tensor, n):
    heads = c["query_heads"] if tensor == "q" else c["kv_heads"]
    head = n // (len(c[tensor]) // (c["batch"] * heads))
    b, g = head // heads, head % heads // (heads // c["kv_heads"])

    def moved(by):
        return loss(c, b, g, lambda name, m: Decimal(c[name][m]) + (by if name == tensor and m == n else 0))

    return float((moved(STEP) - moved(-STEP)) / (2 * STEP))


def write(folder, name, kind, numbers):
    if kind == "bf16":
        numbers = [struct.unpack("<I", struct.pack("<f", number))[0] >> 16 for number in numbers]
    kind = {"f32": "f", "f16": "e", "bf16": "H", "f64": "d", "i32": "i"}[kind]
    with open(os.path.join(folder, name), "wb") as out:
        out.write(struct.pack("<%d%s" % (len(numbers), kind), *numbers))


def make(name, about):
    c = {"type": "f32", **SIZES, **about}
    source, folder = random.Random(c["seed"]), os.path.join(FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    B, H, Hkv, Tq, Tk, D, Dv = (c[n] for n in ("batch", "query_heads", "kv_heads", "query_length", "key_length", "head_dim", "value_dim"))
    counts = {"q": B * H * Tq * D, "k": B * Hkv * Tk * D, "v": B * Hkv * Tk * Dv, "decay": B * Hkv * Tk, "output_grad": B * H * Tq * Dv}
    if c.get("state"):
        counts.update(state=B * Hkv * D * Dv, state_sum=B * Hkv * D)
    for tensor, count in counts.items():
        kind = "f32" if tensor in ("decay", "state", "state_sum") else c["type"]
        c[tensor] = draw(source, count, {"state_sum": 1}.get(tensor, -1), {"decay": 0, "state_sum": 4}.get(tensor, 1), kind)
        write(folder, tensor + "." + kind, kind, c[tensor])
    if c["lengths"]:
        write(folder, "lengths.i32", "i32", c["lengths"])
    places = [(b, h, i) for b in range(B) for h in range(H) for i in range(Tq)]
    rows = [row(c, *place, lambda n, m: Decimal(c[n][m])) for place in places]
    c["totals"] = [sums(c, *place, lambda n, m: Decimal(c[n][m]))[1] for place in places]
    c["given"] = [rounded(float(o), c["type"]) for r in rows for o in r]
    write(folder, "output.f64", "f64", [float(o) for r in rows for o in r])
    for tensor, file in (("q", "query_grad"), ("k", "key_grad"), ("v", "value_grad"), *((n, n + "_grad") for n in ("decay", "state", "state_sum") if n in c and n in counts)):
        write(folder, file + ".f64", "f64", [gradient(c, tensor, n) for n in range(counts[tensor])])
    words = {
        "function": "linear", **{n: c[n] for n in ("batch", "query_heads", "kv_heads", "query_length", "key_length", "head_dim", "value_dim")},
        "scale": 1.0, "left": -1, "right": 0, "offset": c["offset"], "softcap": 0.0, "epsilon": c["epsilon"], "type": c["type"], "phi": c["phi"],
        "normalise": c["normalise"], "pass": "backward", "has_mask": 0, "has_bias": 0, "has_lengths": int(bool(c["lengths"])),
    }
    with open(os.path.join(folder, "case.txt"), "w") as out:
        out.writelines(f"{key} {value}\n" for key, value in words.items())


if __name__ == "__main__":
    for case, described in CASES.items():
        make(case, described)
