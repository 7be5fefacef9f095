"""A right kernel in numpy, and wrong ones, for the tests."""

import numpy as np

import attnbench

EVERYTHING = ["band", "gqa", "offset", "key_lengths", "mask", "bias", "softcap", "sink", "lse", "weights"]


def attention(call, heads=np.repeat, scale=None):
    """The formula of variants/attention.h in float32, as one writes it with numpy."""
    q, k, v = (attnbench.to_float32(x) for x in (call.q, call.k, call.v))
    k, v = (heads(x, call.groups, axis=1) for x in (k, v))
    with np.errstate(all="ignore"):
        scores = np.float32(call.scale if scale is None else scale) * (q @ k.swapaxes(2, 3))
        if call.softcap:
            scores = np.float32(call.softcap) * np.tanh(scores / np.float32(call.softcap))
        if call.bias is not None:
            scores = scores + attnbench.to_float32(call.bias)
        visible = call.visible()
        if visible is not None:
            scores = np.where(visible, scores, np.float32(-np.inf))
        largest = scores.max(axis=3, initial=-np.inf, keepdims=True)
        if call.sink is not None:
            largest = np.maximum(largest, call.sink[None, :, None, None])
        base = np.where(np.isneginf(largest), np.float32(0), largest)
        weights = np.exp(scores - base)
        total = weights.sum(axis=3, keepdims=True)
        if call.sink is not None:
            total = total + np.exp(call.sink[None, :, None, None] - base)
        weights = weights / np.where(total > 0, total, np.float32(1))
        lse = np.log(total)[..., 0] + base[..., 0]
        output = weights @ v
    return output, lse, weights


def rounded(call, array, tensor):
    """To the type of that output."""
    kind = call.problem.types.get(tensor)
    if kind == "bf16":
        return attnbench.to_bfloat16(array)
    return array.astype(np.float16) if kind == "f16" else array


@attnbench.variant(features=EVERYTHING, finite=True)
def right(call):
    """The formula in numpy."""
    return attention(call)


@attnbench.variant(features=EVERYTHING, dtypes=["f32", "bf16", "f16"], finite=True)
def right_in_each_type(call):
    output, lse, weights = attention(call)
    return rounded(call, output, "output"), lse, rounded(call, weights, "weights")


@attnbench.variant(features=EVERYTHING, finite=True)
def wrong_heads(call):
    """Query head h reads key/value head h % Hkv."""
    return attention(call, heads=lambda x, groups, axis: np.tile(x, (1, groups, 1, 1)))


@attnbench.variant(features=EVERYTHING, finite=True)
def no_scale(call):
    return attention(call, scale=1)
