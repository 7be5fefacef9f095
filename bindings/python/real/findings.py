#!/usr/bin/env python3
"""Reproduces docs/findings.md: where a library does other than its documentation says, or than the silence of its documentation
lets a caller hope.

    findings.py             all that the installed libraries allow; 1 where one does no longer hold
    findings.py NAME...     these

A finding that does not hold any more is good news, and its entry in docs/findings.md is then wrong."""

import importlib.util
import os
import sys
import warnings
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.append(str(Path(__file__).resolve().parents[1]))  # attnbench of this checkout, where none is installed
warnings.filterwarnings("ignore")

import attnbench
import numpy as np

FINDINGS = {}
LARGEST = np.finfo(np.float32).max


def finding(*needs):
    def keep(function):
        FINDINGS[function.__name__.replace("_", "-")] = (needs, function)
        return function

    return keep


@finding("jax")
def jax_hidden_keys_under_a_low_bias():
    """Keys 3 and 4 are hidden; keys 0 to 2 may be seen and have a bias of -inf, or near float32's end."""
    import jax.numpy as jnp
    from conventions_jax import attend

    line = "mask:1/bias:1/B:1/H:1/D:8/Tq:2/Tk:5"
    inputs = attnbench.inputs(line)
    mask = np.array([[[[1, 1, 1, 0, 0]]]], bool)
    words, holds = [], True
    for low in (-np.inf, -LARGEST):
        bias = np.array([[[[low] * 3 + [0, 0]]]], np.float32)
        output = attend(inputs, mask=jnp.asarray(mask), bias=jnp.asarray(bias))
        own = {"q": inputs.q, "k": inputs.k, "v": inputs.v, "mask": mask, "bias": bias}
        verdict = attnbench.judge(line, output=np.ascontiguousarray(output), **own)
        holds &= np.allclose(output[0, 0], inputs.v[0, 0, 3:].mean(0), atol=1e-6)
        words.append(f"{low:.3g}: {verdict.worst_share:.2g} of the bound")
    return holds, f"the output is the mean of the two hidden values; bias {', '.join(words)}"


@finding("jax")
def jax_entry_of_length_zero():
    import jax.numpy as jnp
    from conventions_jax import attend

    line = "lengths:3,0/B:2/H:2/D:8/T:5"
    inputs = attnbench.inputs(line)
    output, lse = attend(inputs, key_value_seq_lengths=jnp.array([3, 0], jnp.int32), return_residual=True)
    verdict = attnbench.judge(inputs, output=np.ascontiguousarray(output))
    of_padding = np.allclose(output[1, 0], inputs.v[1, 0].mean(0), atol=1e-6)
    return not verdict and of_padding, f"the mean of the padding, log-sum-exp {lse[1, 0, 0]:.3g}; expected 0 and -inf"


@finding("jax")
def jax_residual_of_bfloat16():
    import jax
    import jax.numpy as jnp

    line = "lse/B:1/H:2/D:64/T:256/bf16"
    inputs = attnbench.inputs(line).to("jax")
    swapped = [jnp.swapaxes(inputs[name], 1, 2) for name in "qkv"]
    output, lse = jax.nn.dot_product_attention(*swapped, return_residual=True)
    output = jnp.swapaxes(output, 1, 2)
    lse = np.ascontiguousarray(np.swapaxes(np.asarray(lse, np.float32), 1, 2))
    alone = attnbench.judge("B:1/H:2/D:64/T:256/bf16", output=output)
    verdict = attnbench.judge(line, output=output, lse=lse)
    return bool(alone) and not verdict, f"the output fits; the log-sum-exp is off by {verdict.worst_share:.3g} of the bound"


@finding("jax")
def jax_denormals_are_zeros():
    from conventions_jax import attend

    inputs = attnbench.inputs("B:1/H:1/D:8/Tq:2/Tk:5/fill:denormal")
    output = np.ascontiguousarray(attend(inputs))
    verdict = attnbench.judge(inputs, output=output)
    return not verdict and not output.any(), f"an output of {verdict.expected:.3g} becomes 0: {verdict.worst_share:.2g} of the bound"


@finding("torch")
def torch_flex_rounds_weights_after_their_sum():
    """The exact probe: weights are powers of two until they are divided by their sum."""
    import torch
    from torch.nn.attention.flex_attention import flex_attention

    shares = {}
    for kind in ("bf16", "f16"):
        inputs = attnbench.inputs(f"B:1/H:4/D:64/T:256/{kind}/fill:exact")
        with torch.no_grad():
            scale = inputs.problem.scale
            for name, function in (("flex", flex_attention), ("sdpa", torch.nn.functional.scaled_dot_product_attention)):
                output = function(*inputs.torch().values(), scale=scale)
                shares[f"{name} {kind}"] = attnbench.judge(inputs, output=output).worst_share
    words = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
    return shares["flex bf16"] > 1 and shares["sdpa bf16"] <= 1, f"of the bound in the exact probe: {words}"


@finding("torch")
def torch_sdpa_in_the_exact_probe_of_float16():
    import torch

    shares = []
    for seed in range(1, 7):
        inputs = attnbench.inputs("B:1/H:2/D:64/T:256/f16/fill:exact", seed=seed)
        with torch.no_grad():
            output = torch.nn.functional.scaled_dot_product_attention(*inputs.torch().values(), scale=inputs.problem.scale)
        shares.append(attnbench.judge(inputs, output=output, hint=False).worst_share)
    return 1 < max(shares) < 1.1, f"{max(shares):.3f} of the bound in the exact probe, the worst of six seeds"


@finding("torch")
def torch_sdpa_causal_of_a_scale_not_above_0():
    """is_causal against the same triangle as a mask, which is right."""
    import torch

    attend = torch.nn.functional.scaled_dot_product_attention
    holds, words = True, []
    for scale, kind, length in ((0, "f32", 33), (-0.25, "f32", 33), (-0.25, "bf16", 200)):
        x = attnbench.inputs(f"causal/B:1/H:1/D:16/T:{length}/scale:{scale}/{kind}").torch()
        triangle = torch.ones(length, length, dtype=torch.bool).tril()
        output = attend(x.q, x.k, x.v, is_causal=True, scale=scale)
        masked = attend(x.q, x.k, x.v, triangle, scale=scale)
        holds &= not attnbench.judge(x.problem, output=output) and bool(attnbench.judge(x.problem, output=masked))
        share = f"{int(output.isnan().sum())} of {output.numel()} NaN"
        if not output.isnan().any():
            share = f"{attnbench.judge(x.problem, output=output).worst_share:.3g} of the bound and no NaN"
        words.append(f"scale {scale}, {kind}, T {length}: {share}")
    return holds, "; ".join(words)


@finding("torch")
def torch_rows_that_see_nothing():
    """The formula of the documentation against the function, and the lower right CausalBias with more queries than keys."""
    import torch
    from conventions_torch import SDPBackend, sdpa, sdpa_kernel
    from torch.nn.attention.bias import causal_lower_right

    q, k, v = attnbench.inputs("B:1/H:1/D:8/Tq:5/Tk:3").torch().values()
    seen = torch.ones(5, 3, dtype=torch.bool).tril(-2)  # what the lower right variant lets be seen
    bias = torch.zeros(5, 3).masked_fill(~seen, -torch.inf)
    documented = torch.softmax(q @ k.transpose(-2, -1) / 8**0.5 + bias, -1) @ v
    rows = []
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(backend):
            rows += [sdpa(q, k, v, attn_mask=mask)[0, 0, 0] for mask in (seen, bias, causal_lower_right(5, 3))]
    zeros = all((row == 0).all() for row in rows)
    return bool(documented[0, 0, 0].isnan().all()) and zeros, "the documented formula gives NaN, the function zeros"


@finding("onnx", "onnxruntime")
def onnxruntime_masks_that_broadcast():
    """Shapes that the specification allows, which onnx's own reference takes."""
    from conventions_onnx import attend, refused

    inputs = attnbench.inputs("B:2/H:2/D:8/Tq:3/Tk:5")
    refusals = []
    for shape in ((1, 1, 1, 5), (1, 2, 1, 5), (1, 5), (3, 1), (2, 1, 1, 1), (3, 3)):
        mask = np.ones(shape, bool)
        attend(inputs, opset=24, reference=True, mask=mask)
        if refused(inputs, opset=24, mask=mask):
            refusals.append(list(shape))
    return len(refusals) == 6, f"refused: {refusals}"


@finding("onnx", "onnxruntime")
def onnxruntime_lowest_mask():
    """Query 1 is padding; onnx's own reference, and a number just above the lowest."""
    from conventions_onnx import attend

    line = "B:1/H:1/D:8/Tq:3/Tk:5/bias:q"
    inputs, found = attnbench.inputs(line), []
    for low, reference in ((-LARGEST, False), (-LARGEST, True), (np.nextafter(-LARGEST, np.float32(0)), False)):
        bias = np.zeros((1, 1, 3, 5), np.float32)
        bias[0, 0, 1] = low
        output = np.ascontiguousarray(attend(inputs, reference=reference, mask=bias[0, 0]))
        verdict = attnbench.judge(line, output=output, q=inputs.q, k=inputs.k, v=inputs.v, bias=bias)
        found.append((verdict.worst_share, bool(np.all(output[0, 0, 1] == 0))))
    shares = "; ".join(f"{share:.2g}" for share, _ in found)
    return [zeros for _, zeros in found] == [True, False, False], f"of the bound, its zeros, onnx's reference, the next number: {shares}"


@finding("onnx", "onnxruntime")
def onnx_scores_of_float16():
    from conventions_onnx import attend

    shares = []
    for fill in ("normal", "heavy", "saturated"):
        inputs = attnbench.inputs(f"B:1/H:2/D:64/T:256/f16/fill:{fill}")
        for asked in ({}, {"softmax_precision": 1}, {"reference": True}):
            output = np.ascontiguousarray(attend(inputs, **asked))
            shares.append(attnbench.judge(inputs, output=output).worst_share)
    words = "; ".join(f"{share:.3g}" for share in shares)
    return min(shares) > 1, f"of the bound, fill normal, heavy, saturated, each plain, softmax_precision 1, onnx's reference: {words}"


def triton_kernels():
    import torch
    import triton
    import triton.language as tl

    # The names that the kernels' text uses are looked up where they are compiled.
    globals().update(tl=tl)

    @triton.jit
    def dot(a, b, c, N: tl.constexpr):
        r = tl.arange(0, N)
        at = r[:, None] * N + r[None, :]
        tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))

    @triton.jit
    def cast(a, b, N: tl.constexpr, TYPE: tl.constexpr):
        r = tl.arange(0, N)
        tl.store(b + r, tl.load(a + r).to(TYPE, fp_downcast_rounding="rtne"))

    return torch, tl, dot, cast


@finding("triton", "torch")
def triton_interpreter_dot_of_bfloat16():
    torch, _, dot, _ = triton_kernels()
    c = torch.zeros(16, 16)
    dot[(1,)](torch.eye(16, dtype=torch.bfloat16), torch.ones(16, 16, dtype=torch.bfloat16), c, 16)
    return float(c[0, 0]) == 0x3F80**2, f"1 · 1 is {float(c[0, 0]):.0f}: 0x3F80 · 0x3F80, the bits as integers"


def casts(type_of_torch, name, numbers):
    torch, tl, _, cast = triton_kernels()
    given = torch.tensor(numbers, dtype=torch.float32)
    output = torch.zeros(len(numbers), dtype=type_of_torch(torch))
    cast[(1,)](given, output, len(numbers), getattr(tl, name))
    return output.float().tolist(), given.to(output.dtype).float().tolist()


@finding("triton", "torch")
def triton_interpreter_cast_to_bfloat16():
    got, right = casts(lambda torch: torch.bfloat16, "bfloat16", [1 + 0x180 * 2.0**-16, 1.99999])
    return got != right and got[1] < 1.99999, f"1.005859375 and 1.99999 become {got}, to nearest even {right}"


@finding("triton", "torch")
def triton_interpreter_cast_to_float8():
    got, right = casts(lambda torch: torch.float8_e5m2, "float8e5", [1.125, 1.875])
    return got == [1.25, 1.0] and right == [1.0, 2.0], f"1.125 (a tie) and 1.875 become {got}, to nearest even {right}"


def main(names):
    unknown = [name for name in names if name not in FINDINGS]
    if unknown:
        print(f"there is no finding {unknown[0]}: {', '.join(FINDINGS)}", file=sys.stderr)
        return 2
    wrong = 0
    for name in names or FINDINGS:
        needs, reproduce = FINDINGS[name]
        missing = [needed for needed in needs if importlib.util.find_spec(needed) is None]
        if missing:
            print(f"{'left out':9} {name}: no {', '.join(missing)} here")
            continue
        holds, words = reproduce()
        wrong += not holds
        print(f"{'holds' if holds else 'DOES NOT':9} {name}: {words}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
