"""Problems, their inputs, and the verdict on arrays."""

import re
import sys
import types

import numpy as np
import pytest
from kernels import attention, right, right_in_each_type, wrong_heads

import attnbench
from attnbench._variant import Call

LINE = "causal/B:2/H:4/Hkv:2/D:16/T:33"


def solved(line):
    """Inputs, and what the right kernel gives for them."""
    x = attnbench.inputs(line)
    return x, attention(Call(x.problem, dict(x), 1, "numpy", None))


def test_inputs_are_named_arrays_of_the_problem():
    x = attnbench.inputs("full/B:2/H:4/Hkv:2/D:16/Dv:8/Tq:5/Tk:7/mask:q/bias:h/sink")
    shapes = {name: array.shape for name, array in x.items()}
    assert shapes == {
        "q": (2, 4, 5, 16),
        "k": (2, 2, 7, 16),
        "v": (2, 2, 7, 8),
        "mask": (1, 1, 5, 7),
        "bias": (1, 4, 1, 7),
        "sink": (4,),
    }
    assert x.mask is x["mask"] and x.mask.dtype == np.bool_ and x.q.dtype == np.float32
    assert attnbench.inputs(LINE).mask is None


def test_masks_are_bools_of_0_and_1():
    x = attnbench.inputs("full/B:1/H:2/D:8/T:40/mask:bhq/dropout:0.3/blocks:4,4,0.5/layout:padded")
    for array in (x.mask, x.keep, x.blocks):
        assert array.dtype == np.bool_ and set(np.unique(array.view(np.uint8))) == {0, 1}


def test_the_same_seed_draws_the_same_numbers():
    assert np.array_equal(attnbench.inputs(LINE).q, attnbench.inputs(LINE, seed=1).q)
    assert not np.array_equal(attnbench.inputs(LINE).q, attnbench.inputs(LINE, seed=2).q)
    assert attnbench.inputs(LINE, seed=2).problem.line.endswith("/seed:2")


def test_layouts_are_strides():
    x = attnbench.inputs(LINE + "/layout:bthd")
    assert x.q.shape == (2, 4, 33, 16) and x.q.transpose(0, 2, 1, 3).flags.c_contiguous
    assert np.array_equal(x.q, attnbench.inputs(LINE).q)


def test_bfloat16_is_float32_rounded():
    narrow, wide = attnbench.inputs(LINE + "/bf16").k, attnbench.inputs(LINE).k
    assert np.array_equal(narrow.view(np.uint16), attnbench.to_bfloat16(wide).view(np.uint16))
    bits = np.array([0x3F80, 0xC000, 0x7F80], np.uint16)
    assert attnbench.to_float32(bits).tolist() == [1, -2, np.inf]
    halfway = np.array([1 + 2**-8, 1 + 3 * 2**-8, np.nan, 3.4e38], np.float32)
    assert attnbench.to_float32(attnbench.to_bfloat16(halfway))[:2].tolist() == [1, 1 + 2**-6]
    assert np.isnan(attnbench.to_float32(attnbench.to_bfloat16(halfway))[2])


def test_a_right_output_is_right_in_three_lines():
    x, (output, lse, weights) = solved(LINE + "/lse/weights")
    verdict = attnbench.judge(x, output=output, lse=lse, weights=weights)
    assert verdict and verdict.ok and 0 < verdict.worst_share < 1
    assert len(str(verdict).splitlines()) == 3
    verdict.assert_close()


def test_a_wrong_output_says_where_and_how_to_see_it_again():
    verdict = attnbench.run(wrong_heads, LINE)
    assert not verdict and verdict.worst_share > 1000 and set(verdict.where) == set("bhie")
    assert abs(verdict.computed - verdict.expected) > verdict.bound
    with pytest.raises(AssertionError) as raised:
        verdict.assert_close("of layer 3")
    said = str(raised.value)
    assert said.startswith("of layer 3\nWRONG: ") and f"attnbench.inputs('{verdict.problem}')" in said
    x = attnbench.inputs(LINE)
    with pytest.raises(AssertionError) as raised:
        attnbench.judge(LINE, output=x.q, q=x.q).assert_close()
    said = str(raised.value)
    assert "attnbench.inputs(" not in said and said.endswith(", output=..., q=...)")


def test_a_mask_is_seen_though_others_alone_were_drawn():
    whole = attnbench.inputs("causal/B:1/H:1/D:4/T:5/mask:bq")
    assert np.array_equal(attnbench.inputs(whole.problem, names=("q",)).visible(), whole.visible())
    assert not np.array_equal(whole.visible(), attnbench.inputs("causal/B:1/H:1/D:4/T:5").visible())


def test_each_output_is_judged():
    x, (output, lse, weights) = solved(LINE + "/lse/weights")
    assert not attnbench.judge(x, output=output, lse=lse / np.log(2), weights=weights)
    weights = weights.copy()
    weights[1, 2, 20, 3] *= 1.001
    wrong = attnbench.judge(x, output=output, weights=weights)
    assert not wrong and wrong.tensor == "weights" and wrong.where == {"b": 1, "h": 2, "i": 20, "e": 3}


def test_a_nan_is_wrong_and_no_error():
    x, (output, _, _) = solved(LINE)
    output[0, 1, 2, 3] = np.nan
    verdict = attnbench.judge(x, output=output)
    assert not verdict and np.isnan(verdict.computed)


def test_arrays_may_lie_as_they_like():
    _, (output, _, _) = solved(LINE)
    as_bthd = np.ascontiguousarray(output.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    padded = np.zeros((2, 4, 33, 20), np.float32)[..., 2:18]
    padded[...] = output
    backwards = output[:, ::-1].copy()[:, ::-1]
    for array in (as_bthd, padded, backwards, output.astype(np.float64)):
        assert attnbench.judge(LINE, output=array)
    assert not attnbench.judge(LINE, output=output[:, ::-1])


def test_numbers_of_ones_own_replace_what_is_drawn():
    x = attnbench.inputs(LINE)
    scaled = {"q": 2 * x.q, "k": x.k + 1, "v": x.v}
    output = attention(Call(x.problem, scaled, 1, "numpy", None))[0]
    assert attnbench.judge(LINE, output=output, **scaled)
    assert not attnbench.judge(LINE, output=output)


def test_inputs_that_were_changed_are_told():
    x, (output, _, _) = solved(LINE)
    x.k[0, 0, 0, 0] += 1
    with pytest.raises(ValueError, match="k was changed since it was drawn"):
        attnbench.judge(x, output=output)


def test_every_type_runs_over_the_grid():
    for line in attnbench.problems(right_in_each_type, count=40):
        attnbench.run(right_in_each_type, line).assert_close()


def test_problems_are_those_that_a_function_takes():
    lines = attnbench.problems(count=30, features=["causal"], dtypes=["bf16"])
    assert len(lines) == len(set(lines)) == 30
    for line in lines:
        asked = attnbench.parse(line)
        assert asked.type == "bf16" and (asked.left, asked.right) in ((None, None), (None, 0)) and asked.groups == 1
        assert not {"mask", "bias", "lse"} & set(asked.types)
    assert attnbench.problems(right, count=5) != attnbench.problems(count=5)


def test_a_part_that_was_not_declared_is_refused():
    x = attnbench.inputs("causal/B:1/H:1/D:8/T:40/see:first:4+local:3,0")
    with pytest.raises(ValueError, match="right takes no pattern"):
        attnbench.run(right, x)
    assert attnbench.parse("full/T:9/qlengths:3").others == ("query lengths",)
    known = "causal/B:1/H:4/Hkv:2/D:8/T:9/lengths:7/offsets:1/softcap:3/mask:q/bias:h/sink/lse/weights"
    assert attnbench.parse(known).others == () and right.refusal(attnbench.parse(known)) is None


def test_lists_go_to_every_framework(monkeypatch):
    """A framework that is not installed, as far as its arrays are made: one that gives numpy's."""
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(asarray=np.asarray))
    call = Call(attnbench.parse("causal/B:2/H:1/D:4/T:9/offsets:1,2/lengths:7,9"), {}, 1, "cupy", None)
    assert call.offsets.tolist() == [1, 2] and call.lengths.tolist() == [7, 9]


def test_an_interface_of_arrays_is_enough():
    class Foreign:
        def __init__(self, array):
            self.__array_interface__, self._kept = array.__array_interface__, array

    class ByDlpack:
        def __init__(self, array):
            self._array = array

        def __dlpack__(self, **options):
            return self._array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self._array.__dlpack_device__()

    _, (output, _, _) = solved(LINE)
    assert attnbench.judge(LINE, output=Foreign(output))
    assert attnbench.judge(LINE, output=ByDlpack(output))


def test_a_mask_of_all_axes_is_taken_where_it_is_the_same_along_them():
    x = attnbench.inputs("full/B:1/H:2/D:16/T:20/mask:q")
    _, (output, _, _) = solved("full/B:1/H:2/D:16/T:20/mask:q")
    assert attnbench.judge(x.problem, output=output, mask=np.ascontiguousarray(np.broadcast_to(x.mask, (1, 2, 20, 20))))


def test_the_order_of_bytes_is_the_arrays_own():
    _, (output, _, _) = solved(LINE)
    assert attnbench.judge(LINE, output=output.astype(">f4"))
    assert attnbench.judge(LINE, output=output.astype(">f8"))


GOOD = np.zeros((2, 4, 33, 16), np.float32)
BAD = [
    (lambda: attnbench.inputs("diagonal/B:2"), "diagonal"),
    (lambda: attnbench.inputs("causal/B:2/Z:3"), "unknown part 'Z:3'"),
    (lambda: attnbench.inputs("full/H:3/Hkv:2"), "3"),
    (lambda: attnbench.inputs(7), "a problem is a line"),
    (lambda: attnbench.inputs(LINE, seed=-1), "a seed is a whole number"),
    (lambda: attnbench.inputs(LINE, names=("query",)), "unknown input 'query': inputs are q, k, v"),
    (lambda: attnbench.judge(LINE, output=GOOD.astype(np.int64)), "elements of type int64: float32, .* int32 and bool can be read"),
    (lambda: attnbench.inputs(LINE).to("tensorflow"), "a framework is numpy, torch"),
    (lambda: attnbench.judge(LINE), "judge takes an output"),
    (lambda: attnbench.judge(LINE, output=[1.0]), "output is of type list, not an array"),
    (lambda: attnbench.judge(LINE, output=GOOD[:1]), r"output has shape \[1, 4, 33, 16\], and this problem's has \[2, 4, 33, 16\]"),
    (lambda: attnbench.judge(LINE, output=GOOD.astype(np.int32)), "elements of type int32"),
    (lambda: attnbench.judge(LINE, output=GOOD.astype(np.float16)), "output"),
    (lambda: attnbench.judge(LINE, output=GOOD, lse=GOOD), "lse has shape"),
    (lambda: attnbench.judge(LINE, output=GOOD, mask=GOOD), "this problem has no mask: it has q, k, v"),
    (lambda: attnbench.judge(LINE, output=GOOD, q=GOOD[..., :8]), "q has shape"),
    (lambda: attnbench.judge(LINE, output=np.ma.masked_array(GOOD, mask=True)), "output is a masked array"),
    (lambda: attnbench.judge(LINE + "\0/junk", output=GOOD), "has a NUL in it"),
    (lambda: attnbench.judge("full/B:1/H:2/D:16/T:20/mask:q", output=GOOD[:1, :2, :20], mask=np.arange(800).reshape(1, 2, 20, 20) % 3 > 0), "mask differs along h, which"),
    (lambda: attnbench.judge("full/B:3/H:1/D:16/T:20/bias:q", output=np.zeros((3, 1, 20, 16), np.float32), bias=np.random.rand(3, 1, 20, 20).astype(np.float32)), "bias differs along b, which"),
    (lambda: attnbench.problems(features=["flash"]), "unknown feature 'flash': features are causal, gqa, band"),
    (lambda: attnbench.problems(dtypes=["fp8"]), "unknown type 'fp8': types are f32, bf16, f16"),
    (lambda: attnbench.problems(features="causal"), "features are a list"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input_is_one_sentence(number):
    call, words = BAD[number]
    with pytest.raises(ValueError, match=words) as raised:
        call()
    assert "\n" not in str(raised.value) and not re.search(r"\bNone\b", str(raised.value))


def gradients(x):
    """Of softmax attention without a band, as the formula has them, in double precision."""
    p, up = x.problem, lambda a: np.repeat(a.astype(np.float64), x.problem.groups, axis=1)
    q, k, v, o, do = x.q.astype(np.float64), up(x.k), up(x.v), x.output.astype(np.float64), x.output_grad.astype(np.float64)
    weights = np.exp(p.scale * q @ k.swapaxes(2, 3) + (x.bias if "bias" in x else 0) - x.lse[..., None])
    scores = weights * (do @ v.swapaxes(2, 3) - (do * o).sum(-1, keepdims=True))

    def shared(a):
        return a.reshape(p.batch, p.kv_heads, p.groups, *a.shape[2:]).sum(2)

    found = {
        "query_grad": p.scale * scores @ k,
        "key_grad": shared(p.scale * scores.swapaxes(2, 3) @ q),
        "value_grad": shared(weights.swapaxes(2, 3) @ do),
    }
    if "bias" in x:  # one row for all queries of a head
        found["bias_grad"] = scores.sum((0, 2), keepdims=True)
    return {name: a.astype(np.float32) for name, a in found.items()}


def test_gradients_are_judged():
    for line in ("backward/full/B:2/H:4/Hkv:2/D:8/Dv:5/Tq:9/Tk:13", "backward/full/B:2/H:2/D:8/T:11/bias:h"):
        x = attnbench.inputs(line)
        assert list(x)[-3:] == ["output", "lse", "output_grad"]
        found = gradients(x)
        verdict = attnbench.judge(x, **found)
        assert verdict and verdict.worst_share < 0.5, verdict
        found["key_grad"] = found["key_grad"] * np.float32(1.001)
        verdict = attnbench.judge(line, **found)
        assert not verdict and verdict.tensor == "key_grad" and "rows of gradients" in verdict.pattern
        del found["key_grad"]
        with pytest.raises(ValueError, match="the gradient of the keys is not given"):
            attnbench.judge(line, **found)


def test_gradients_of_16_bits_are_judged():
    line = "backward/full/B:2/H:4/Hkv:2/D:8/Dv:5/Tq:9/Tk:13/f16"
    found = {name: a.astype(np.float16) for name, a in gradients(attnbench.inputs(line)).items()}
    assert attnbench.judge(line, **found)
    found["value_grad"] = found["value_grad"] * np.float16(1.01)
    verdict = attnbench.judge(line, **found)
    assert not verdict and verdict.tensor == "value_grad"


def test_gradients_are_of_the_output_that_is_given():
    line = "backward/full/B:1/H:2/D:8/T:9"
    x = attnbench.inputs(line)
    right = gradients(x)
    x._arrays["output"] = x.output + np.float32(0.25)
    assert not attnbench.judge(line, output=x.output, **right)
    assert attnbench.judge(line, output=x.output, **gradients(x))


@pytest.mark.parametrize("decay, state, kind", [("", "", ""), ("/decay", "", ""), ("", "/state", ""), ("/decay", "/state", ""), ("/decay", "/state", "/f16")])
def test_gradients_of_linear_attention_are_judged(decay, state, kind):
    def phi(t):
        return np.where(t > 0, t + 1, np.exp(np.minimum(t, 0)))

    line = "linear_backward/causal/B:2/H:3/D:8/Dv:5/T:11/epsilon:0.5" + decay + state + kind
    x = attnbench.inputs(line)
    assert list(x)[-2:] == ["output", "output_grad"]
    q, k, v, o, do = (np.asarray(t, np.float64) for t in (x.q, x.k, x.v, x.output, x.output_grad))
    sums = np.cumsum(np.asarray(x.decay, np.float64), -1) if decay else np.zeros((2, 3, 11))
    seen = np.tri(11) * np.exp(np.minimum(sums[..., :, None] - sums[..., None, :], 0))
    weights = phi(q) @ np.swapaxes(phi(k), -1, -2) * seen
    normaliser = weights.sum(-1, keepdims=True) + 0.5
    delta = (do * o).sum(-1, keepdims=True)
    faded = np.exp(sums)[..., None] * phi(q)  # what a query sees of a state
    if state:
        normaliser += faded @ np.asarray(x.state_sum, np.float64)[..., None]
    grads = seen * (do @ np.swapaxes(v, -1, -2) - delta) / normaliser
    found = {
        "query_grad": grads @ phi(k) * np.minimum(phi(q), 1),
        "key_grad": np.swapaxes(grads, -1, -2) @ phi(q) * np.minimum(phi(k), 1),
        "value_grad": np.swapaxes(weights / normaliser, -1, -2) @ do,
    }
    if decay:
        pairs = grads / np.where(seen > 0, seen, 1) * weights
        found["decay_grad"] = np.stack([pairs[..., t:, :t].sum((-2, -1)) for t in range(11)], -1)
    if state:
        of_state = (do @ np.swapaxes(x.state, -1, -2) - delta * x.state_sum[:, :, None]) / normaliser
        found["query_grad"] += np.exp(sums)[..., None] * of_state * np.minimum(phi(q), 1)
        found["state_grad"] = np.swapaxes(faded / normaliser, -1, -2) @ do
        found["state_sum_grad"] = -(faded / normaliser * delta).sum(-2)
    if state and decay:
        found["decay_grad"] += np.stack([(faded * of_state)[..., t:, :].sum((-2, -1)) for t in range(11)], -1)
    found = {name: gradient.astype(x.q.dtype if name in ("query_grad", "key_grad", "value_grad") else np.float32) for name, gradient in found.items()}
    assert attnbench.judge(line, **found)
    found["key_grad"] = (np.swapaxes(grads, -1, -2) @ phi(q)).astype(x.k.dtype)
    verdict = attnbench.judge(line, **found)
    assert not verdict and verdict.tensor == "key_grad"
