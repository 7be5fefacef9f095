"""JAX's dot_product_attention, implementation xla on the processor, held to docs/conventions.md."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import attnbench
import jax
import jax.numpy as jnp
import numpy as np
from conventions_cases import CROSS, GROUPED, HIDDEN, MASK, SQUARE, Answers, base_of, heads_of, hidden_row
from conventions_cases import near_equal_weights, poisoned, rounded_weights, scale_of, sense_of

VERSION = f"JAX {jax.__version__}"
JAX = "JAX"
CASES = {}
BASE = "full/" + CROSS
PADDED = jnp.array([3, 0], jnp.int32)


def case(question, number=0):
    def keep(function):
        CASES[JAX, question, number] = function
        return function

    return keep


def swapped(array):
    """Between our [B, H, T, D] and JAX's [B, T, H, D]."""
    return np.swapaxes(np.asarray(array), 1, 2)


def attend(inputs, **options):
    options = {"key_value_seq_lengths": None, **options}
    result = jax.nn.dot_product_attention(*(jnp.asarray(swapped(inputs[name])) for name in "qkv"), **options)
    return tuple(map(swapped, result)) if options.get("return_residual") else swapped(result)


@case("causal")
def _():
    inputs = attnbench.inputs(BASE)
    return Answers(
        inputs,
        attend(inputs, is_causal=True),
        {"top left": "causal/" + CROSS, "bottom right": "causal_bottom_right/" + CROSS},
    )


@case("window", 0)
def _():
    inputs = attnbench.inputs("full/" + SQUARE)
    lines = {f"band:{left},{right}": f"band:{left},{right},0/{SQUARE}" for left, right in ((2, 1), (1, 1), (2, 0), (1, 2))}
    return Answers(inputs, attend(inputs, local_window_size=(2, 1)), lines)


@case("window", 1)
def _():
    inputs = attnbench.inputs("full/" + SQUARE)
    lines = {"band:W,W": f"band:2,2,0/{SQUARE}", "window:W": f"window:2/{SQUARE}", "band:W-1,W-1": f"band:1,1,0/{SQUARE}"}
    return Answers(inputs, attend(inputs, local_window_size=2), lines)


@case("window", 2)
def _():
    inputs = attnbench.inputs(BASE)
    lines = {"top left": f"band:1,0,0/{CROSS}", "bottom right": f"band:1,0,2/{CROSS}"}
    return Answers(inputs, attend(inputs, local_window_size=(1, 0)), lines)


@case("lse")
def _():
    inputs = attnbench.inputs(BASE)
    output, lse = attend(inputs, return_residual=True)
    answers = base_of(inputs, output, lse, "full/lse/" + CROSS)
    halves = {name: np.asarray(jnp.asarray(inputs[name], jnp.bfloat16)) for name in "qkv"}
    of_halves = attend(halves, return_residual=True)[1]
    return {**answers, "natural": answers["natural"] if of_halves.dtype == jnp.bfloat16 else False}


@case("hidden", 0)
def _():
    inputs = attnbench.inputs(BASE)
    output, lse = attend(inputs, mask=jnp.asarray(HIDDEN[None, None]), return_residual=True)
    answers = hidden_row(output[0, 0, 1], inputs.v[0, 0])
    answers["mean of all values"] &= bool(np.allclose(lse[:, :, 1], -2.382e38, rtol=1e-3))
    return answers


@case("lengths", 0)
def _():
    inputs = attnbench.inputs("full/" + SQUARE)
    lengths = jnp.array([3, 7], jnp.int32)
    lines = {"top left": f"causal/lengths:3,7/{SQUARE}", "bottom right": f"band:inf,0,0/offsets:-6,-2/lengths:3,7/{SQUARE}"}
    return Answers(inputs, attend(inputs, key_value_seq_lengths=lengths, is_causal=True), lines)


@case("lengths", 1)
def _():
    inputs = attnbench.inputs("full/" + SQUARE)
    output = attend(inputs, key_value_seq_lengths=PADDED)
    return hidden_row(output[1, 0, 0], inputs.v[1, 0])


@case("scale")
def _():
    inputs = attnbench.inputs(BASE)
    return scale_of(inputs, attend(inputs))


@case("heads")
def _():
    inputs = attnbench.inputs("full/" + GROUPED)
    return heads_of(inputs, attend(inputs))


@case("sense")
def _():
    inputs = attnbench.inputs(BASE)
    return sense_of(inputs, attend(inputs, mask=jnp.asarray(MASK[None, None])), MASK)


@case("poison")
def _():
    inputs = dict(attnbench.inputs("full/" + SQUARE))
    outputs = []
    for name in "kv":
        changed = {**inputs, name: inputs[name].copy()}
        changed[name][:, :, 8] = np.nan
        outputs.append(attend(changed, key_value_seq_lengths=jnp.array([8, 8], jnp.int32)))
    return poisoned(*outputs)


@case("weights")
def _():
    q, k, v, exact = near_equal_weights(np.float32, 2.0**-11)
    arrays = [jnp.asarray(np.swapaxes(array, 1, 2), jnp.bfloat16) for array in (q, k, v)]
    return rounded_weights(jax.nn.dot_product_attention(*arrays, scale=1.0).astype(jnp.float32), exact)
