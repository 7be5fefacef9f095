"""PyTorch's scaled_dot_product_attention and FlexAttention, on the processor, held to docs/conventions.md."""

import math
import warnings

import attnbench
import numpy as np
import torch
from conventions_cases import CROSS, GROUPED, HIDDEN, MASK, SQUARE, Answers, base_of, heads_of, hidden_row, judge
from conventions_cases import near_equal_weights, poisoned, rounded_weights, scale_of, sense_of
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention as sdpa

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
VERSION = f"PyTorch {torch.__version__}"
SDPA, FLEX = "PyTorch SDPA", "FlexAttention"
CASES = {}
BASE = "full/" + CROSS
TALL = "B:1/H:2/D:8/Tq:5/Tk:3"


def case(library, question, number=0):
    def keep(function):
        CASES[library, question, number] = function
        return function

    return keep


def drawn(line):
    inputs = attnbench.inputs(line)
    return inputs, inputs.torch()


def both_backends(solve):
    """The same answer of both kernels that a processor has, or none."""
    answers = []
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(backend):
            answers.append(solve())
    return {answer: verdict if answers[0][answer] else answers[0][answer] for answer, verdict in answers[1].items()}


def alignment(solve):
    lines = {"top left": "causal/", "bottom right": "causal_bottom_right/"}
    wide, tensors = drawn(BASE)
    tall, tall_tensors = drawn("full/" + TALL)
    first = Answers(wide, solve(tensors, 3, 5), {answer: line + CROSS for answer, line in lines.items()})
    second = Answers(tall, solve(tall_tensors, 5, 3), {answer: line + TALL for answer, line in lines.items()})
    return {answer: verdict if second[answer] else second[answer] for answer, verdict in first.items()}


@case(SDPA, "causal", 0)
def _():
    return both_backends(lambda: alignment(lambda t, Tq, Tk: sdpa(t.q, t.k, t.v, is_causal=True)))


@case(SDPA, "causal", 1)
def _():
    return alignment(lambda t, Tq, Tk: sdpa(t.q, t.k, t.v, attn_mask=causal_lower_right(Tq, Tk)))


@case(SDPA, "hidden", 0)
def _():
    _, t = drawn(BASE)
    mask = torch.from_numpy(HIDDEN)
    added = torch.zeros(3, 5).masked_fill(~mask, -math.inf)

    def solve():
        of_bool, of_float = (hidden_row(sdpa(t.q, t.k, t.v, attn_mask=m)[0, 0, 1], t.v[0, 0]) for m in (mask, added))
        return {answer: of_bool[answer] and of_float[answer] for answer in of_bool}

    return both_backends(solve)


@case(SDPA, "hidden", 1)
def _():
    _, t = drawn(BASE)
    mask = torch.zeros(3, 5).masked_fill(~torch.from_numpy(HIDDEN), torch.finfo(torch.float32).min)
    return both_backends(lambda: hidden_row(sdpa(t.q, t.k, t.v, attn_mask=mask)[0, 0, 1], t.v[0, 0]))


@case(SDPA, "lse")
def _():
    inputs, t = drawn(BASE)
    solve = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    output, lse = solve(t.q, t.k, t.v)
    answers = base_of(inputs, output, lse, "full/lse/" + CROSS)
    hidden = torch.zeros(1, 2, 3, 5).masked_fill(~torch.from_numpy(HIDDEN), -math.inf)
    of_hidden = solve(t.q, t.k, t.v, attn_mask=hidden)[1][:, :, 1]
    return {**answers, "natural": answers["natural"] if (of_hidden == 0).all() else False}


@case(SDPA, "scale")
def _():
    inputs, t = drawn(BASE)
    return both_backends(lambda: scale_of(inputs, sdpa(t.q, t.k, t.v)))


@case(SDPA, "heads")
def _():
    inputs, t = drawn("full/" + GROUPED)
    return both_backends(lambda: heads_of(inputs, sdpa(t.q, t.k, t.v, enable_gqa=True)))


@case(SDPA, "sense")
def _():
    inputs, t = drawn(BASE)
    return both_backends(lambda: sense_of(inputs, sdpa(t.q, t.k, t.v, attn_mask=torch.from_numpy(MASK)), MASK))


def last_key_poisoned(solve):
    """No query sees the last key."""
    _, t = drawn(BASE)
    key, value = t.k.clone(), t.v.clone()
    key[:, :, 4], value[:, :, 4] = math.nan, math.nan
    return poisoned(solve(t.q, key, t.v), solve(t.q, t.k, value))


@case(SDPA, "poison")
def _():
    seen = torch.ones(3, 5, dtype=torch.bool)
    seen[:, 4] = False
    return both_backends(lambda: last_key_poisoned(lambda q, k, v: sdpa(q, k, v, attn_mask=seen)))


def bfloat16_weights(solve):
    *arrays, exact = near_equal_weights(np.float32, 2.0**-11)
    return rounded_weights(solve(*(torch.tensor(array, dtype=torch.bfloat16) for array in arrays)).float(), exact)


@case(SDPA, "weights", 0)
def _():
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return bfloat16_weights(lambda q, k, v: sdpa(q, k, v, scale=1.0))


@case(SDPA, "weights", 1)
def _():
    with sdpa_kernel(SDPBackend.MATH):
        return bfloat16_weights(lambda q, k, v: sdpa(q, k, v, scale=1.0))


def mask_of(see, Tq, Tk):
    return create_block_mask(lambda b, h, q, k: see(q, k), None, None, Tq, Tk, device="cpu")


@case(FLEX, "causal", 0)
def _():
    return alignment(lambda t, Tq, Tk: flex_attention(t.q, t.k, t.v, block_mask=mask_of(lambda q, k: q >= k, Tq, Tk)))


@case(FLEX, "causal", 1)
def _():
    return alignment(
        lambda t, Tq, Tk: flex_attention(t.q, t.k, t.v, block_mask=mask_of(lambda q, k: q + (Tk - Tq) >= k, Tq, Tk))
    )


@case(FLEX, "window")
def _():
    inputs, t = drawn("full/" + SQUARE)
    output = flex_attention(t.q, t.k, t.v, block_mask=mask_of(lambda q, k: (q >= k) & (q - k <= 3), 9, 9))
    return Answers(inputs, output, {f"window:{W}": f"window:{W}/{SQUARE}" for W in (2, 3, 4)})


@case(FLEX, "softcap")
def _():
    inputs, t = drawn(f"softcap:0.5/scale:2/bias:q/{CROSS}")
    bias = 4 * t.bias[0, 0]
    output = flex_attention(
        t.q, t.k, t.v, scale=2.0, score_mod=lambda s, b, h, q, k: 0.5 * torch.tanh(s / 0.5) + bias[q, k]
    )
    return {
        "scaled scores": judge(f"softcap:0.5/scale:2/bias:q/{CROSS}", inputs, output, bias=bias[None, None]),
        "scores without scale": judge(
            f"softcap:0.5/scale:1/bias:q/{CROSS}", inputs, output, bias=bias[None, None]
        ),
    }


@case(FLEX, "sinks")
def _():
    inputs, t = drawn(f"sink/{CROSS}")
    output, aux = flex_attention(t.q, t.k, t.v, return_aux=AuxRequest(lse=True))
    with_sinks = output * torch.sigmoid(aux.lse - t.sink[:, None])[..., None]
    return Answers(inputs, with_sinks, {"sink": f"sink/{CROSS}", "no sink": BASE})


@case(FLEX, "lse")
def _():
    inputs, t = drawn(BASE)
    output, aux = flex_attention(t.q, t.k, t.v, return_aux=AuxRequest(lse=True))
    return base_of(inputs, output, aux.lse, "full/lse/" + CROSS)


@case(FLEX, "hidden")
def _():
    _, t = drawn(BASE)
    output, aux = flex_attention(
        t.q, t.k, t.v, block_mask=mask_of(lambda q, k: q != 1, 3, 5), return_aux=AuxRequest(lse=True)
    )
    answers = hidden_row(output[0, 0, 1], t.v[0, 0])
    answers["zeros"] = answers["zeros"] and bool((aux.lse[:, :, 1] == -math.inf).all())
    return answers


@case(FLEX, "scale")
def _():
    inputs, t = drawn(BASE)
    return scale_of(inputs, flex_attention(t.q, t.k, t.v))


@case(FLEX, "heads")
def _():
    inputs, t = drawn("full/" + GROUPED)
    return heads_of(inputs, flex_attention(t.q, t.k, t.v, enable_gqa=True))


@case(FLEX, "sense")
def _():
    inputs, t = drawn(BASE)
    mask = torch.from_numpy(MASK)
    return sense_of(inputs, flex_attention(t.q, t.k, t.v, block_mask=mask_of(lambda q, k: mask[q, k], 3, 5)), MASK)


@case(FLEX, "poison")
def _():
    seen = mask_of(lambda q, k: k < 4, 3, 5)
    return last_key_poisoned(lambda q, k, v: flex_attention(q, k, v, block_mask=seen))


@case(FLEX, "weights")
def _():
    return bfloat16_weights(lambda q, k, v: flex_attention(q, k, v, scale=1.0))
