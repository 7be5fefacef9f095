"""Problems whose tensors say who sees whom, or what positions add: what is drawn, and the verdict on numpy's attention of them."""

import numpy as np
import pytest
from kernels import attention, right

import attnbench

SIZES = "full/B:2/H:4/Hkv:2/D:8/Tq:30/Tk:30"


class Seen:
    """A call of `attention` whose keys are seen as this file says, and whose scores have something added."""

    def __init__(self, x, visible, added=None):
        self._x, self._visible, self.bias = x, visible, added

    def __getattr__(self, name):
        return getattr(self._x, name)

    def visible(self):
        return self._visible


def by_documents(x):
    return (x.docs_q[:, :, None] == x.docs_k[:, None, :])[:, None]


def by_blocks(x):
    rows, keys = np.arange(x.query_length) // x.block[0], np.arange(x.key_length) // x.block[1]
    return np.broadcast_to(x.blocks[:, :, rows][..., keys], x.problem.shape("weights"))


def by_topk(x):
    listed = np.broadcast_to(x.topk, x.problem.shape("topk"))
    return (listed[..., None, :] == np.arange(x.key_length)[:, None]).any(axis=-1)


def by_query_lengths(x):
    exists = np.arange(x.query_length) < np.array(x.query_lengths)[:, None]
    return np.broadcast_to(exists[:, None, :, None], x.problem.shape("weights"))


def by_terms(x):
    i, j = np.arange(x.query_length)[:, None], np.arange(x.key_length)
    shows = {"local": lambda left, right: (i - j <= left) & (j - i <= right), "first": lambda count: (j < count) | (i < 0)}
    return np.logical_or.reduce([shows[term](*numbers) for term, *numbers in x.terms])[None, None]


# A problem of each, and who sees whom there, from the arrays alone.
PATTERNS = [
    (SIZES + "/docs:7", by_documents),
    (SIZES + "/docs:7,shuffled", by_documents),
    (SIZES + "/blocks:4,8", by_blocks),
    (SIZES + "/blocks:8,4,0.3,bh", by_blocks),
    (SIZES + "/topk:5", by_topk),
    (SIZES + "/qlengths:30,11", by_query_lengths),
    (SIZES + "/see:first:4+local:3,1", by_terms),
]


@pytest.mark.parametrize("line, sees", PATTERNS)
def test_the_inputs_have_all_that_a_kernel_needs(line, sees):
    x = attnbench.inputs(line)
    visible = sees(x)
    output, lse, _ = attention(Seen(x, visible))
    attnbench.judge(x, output=output).assert_close()
    attnbench.judge(x.problem, output=output, lse=lse).assert_close()
    assert np.array_equal(np.broadcast_to(visible, x.problem.shape("weights")), x.visible())


@pytest.mark.parametrize("line, sees", PATTERNS)
def test_who_ignores_the_pattern_is_wrong(line, sees):
    x = attnbench.inputs(line)
    verdict = attnbench.judge(x, output=attention(Seen(x, None))[0])
    assert not verdict and verdict.worst_share > 100
    visible = np.broadcast_to(sees(x), x.problem.shape("weights")).copy()
    visible[1, 2, 3, np.flatnonzero(visible[1, 2, 3])[0]] = False  # one key of one row
    assert not attnbench.judge(x, output=attention(Seen(x, visible))[0])


def test_slopes_are_given():
    x = attnbench.inputs(SIZES + "/alibi/offsets:2,-1")
    position = np.arange(x.query_length) + np.array(x.offsets)[:, None]
    distance = np.abs(np.arange(x.key_length) - position[..., None])[:, None].astype(np.float32)
    added = -x.alibi[:, None, None] * distance
    assert x.alibi.shape == (4,) and x.alibi.dtype == np.float32
    attnbench.judge(x, output=attention(Seen(x, None, added))[0]).assert_close()
    assert not attnbench.judge(x, output=attention(Seen(x, None))[0])
    assert not attnbench.judge(x, output=attention(Seen(x, None, added[:, ::-1]))[0])


def test_relative_tables_are_given():
    x = attnbench.inputs(SIZES + "/relative:4/offsets:2,-1")
    position = np.arange(x.query_length) + np.array(x.offsets)[:, None]
    distance = np.arange(x.key_length) - position[..., None]
    added = x.rel[:, np.clip(distance, -4, 4) + 4].swapaxes(0, 1)
    assert x.rel.shape == (4, 9) and x.rel.dtype == np.float32 and x.relative_distance == 4
    attnbench.judge(x, output=attention(Seen(x, None, added))[0]).assert_close()
    assert not attnbench.judge(x, output=attention(Seen(x, None))[0])
    assert not attnbench.judge(x, output=attention(Seen(x, None, added[:, ::-1]))[0])
    own = np.zeros((4, 9), np.float32)
    attnbench.judge(x, output=attention(Seen(x, None))[0], rel=own).assert_close()
    with pytest.raises(ValueError, match="rel has shape"):
        attnbench.judge(x, output=attention(Seen(x, None))[0], rel=own[:, 1:])


def t5_bucket(r, buckets, most, both):
    """As T5's own sources have it; with logarithms of two, of which those of powers are whole."""
    own, start, n = buckets, 0, np.maximum(-r, 0)
    if both:
        own, start, n = buckets // 2, np.where(r > 0, buckets // 2, 0), np.abs(r)
    exact = own // 2
    steps = np.log2(np.maximum(n, 1) / exact) / np.log2(most / exact) * (own - exact)
    return start + np.where(n < exact, n, np.minimum(exact + np.maximum(steps, 0).astype(int), own - 1))


@pytest.mark.parametrize("part, both", [("t5:16,32", True), ("t5:8,16,one", False)])
def test_t5_buckets_are_given(part, both):
    x = attnbench.inputs(f"{SIZES}/{part}/offsets:2,-1")
    position = np.arange(x.query_length) + np.array(x.offsets)[:, None]
    buckets = t5_bucket(np.arange(x.key_length) - position[..., None], x.t5_buckets, x.t5_distance, both)
    added = x.t5[:, buckets].swapaxes(0, 1)
    assert x.t5.shape == (4, x.t5_buckets) and x.t5_both == both
    attnbench.judge(x, output=attention(Seen(x, None, added))[0]).assert_close()
    assert not attnbench.judge(x, output=attention(Seen(x, None))[0])
    assert not attnbench.judge(x, output=attention(Seen(x, None, added[:, ::-1]))[0])


def test_matrices_of_general_scores_are_given():
    x = attnbench.inputs(f"{SIZES}/general")
    assert x.general.shape == (4, 8, 8)
    turned = Seen(x, None)
    turned.q = x.q @ x.general
    attnbench.judge(x, output=attention(turned)[0]).assert_close()
    turned.q = x.q @ x.general.swapaxes(1, 2)
    assert not attnbench.judge(x, output=attention(turned)[0])


def test_weights_of_additive_scores_are_given():
    x = attnbench.inputs(f"{SIZES}/additive")
    assert x.additive.shape == (4, 8)
    k = np.repeat(x.k, 2, axis=1)
    apart = x.q[:, :, :, None].astype(np.float64) + k[:, :, None]
    scores = x.scale * (np.tanh(apart) * x.additive[:, None, None]).sum(axis=-1)
    asked = Seen(x, None, scores)
    asked.q = np.zeros_like(x.q)
    attnbench.judge(x, output=attention(asked)[0]).assert_close()
    asked.bias = scores[:, ::-1]
    assert not attnbench.judge(x, output=attention(asked)[0])


def test_keep_masks_are_given():
    x = attnbench.inputs(f"{SIZES}/dropout:0.25,hq")
    output, _, weights = attention(Seen(x, None))
    assert x.keep.shape == (1, 4, 30, 30) and x.dropout_p == 0.25
    met = weights * np.where(x.keep != 0, 1 / 0.75, 0)
    attnbench.judge(x, output=met @ np.repeat(x.v, 2, axis=1)).assert_close()
    assert not attnbench.judge(x, output=output)


class Turned(Seen):
    """The inputs with queries and keys that a rotary embedding has turned, in double precision."""

    def __init__(self, x, positions):
        super().__init__(x, None)
        self.q, self.k = turn(x, x.q, positions), turn(x, x.k, np.arange(x.key_length)[None])


def turn(x, rows, positions):
    R, half = x.rope_features, x.rope_features // 2
    first = slice(0, R, 2) if x.rope_interleaved else slice(0, half)
    second = slice(1, R, 2) if x.rope_interleaved else slice(half, R)
    cos, sin = (table[positions][:, None].astype(np.float64) for table in (x.cos, x.sin))
    turned = rows.astype(np.float64)
    a, b = turned[..., first].copy(), turned[..., second].copy()
    turned[..., first], turned[..., second] = a * cos - b * sin, b * cos + a * sin
    return turned


@pytest.mark.parametrize("part", ["rope:half", "rope:interleaved", "rope:half,4", "rope:interleaved,2"])
def test_cosines_and_sines_are_given(part):
    x = attnbench.inputs(f"{SIZES}/{part}/offsets:2,5")
    position = np.arange(x.query_length) + np.array(x.offsets)[:, None]
    assert x.cos.shape == x.sin.shape == (x.rope_positions, x.rope_features // 2) and x.cos.dtype == np.float32
    assert np.allclose(x.cos[:, 0], np.cos(np.arange(x.rope_positions)), atol=1e-6)
    attnbench.judge(x, output=attention(Turned(x, position))[0]).assert_close()
    assert not attnbench.judge(x, output=attention(Turned(x, position - 1))[0])
    assert not attnbench.judge(x, output=attention(Seen(x, None))[0])
    still = np.ones_like(x.cos)
    attnbench.judge(x, output=attention(Seen(x, None))[0], cos=still, sin=still * 0).assert_close()


def test_a_mask_and_a_band_hide_beside_a_pattern():
    x = attnbench.inputs("causal/B:2/H:2/D:8/T:20/docs:6/mask:q/lengths:20,9")
    future = np.tri(20, dtype=bool) & (np.arange(20) < np.array(x.key_lengths)[:, None, None, None])
    visible = by_documents(x) & future & x.mask
    assert np.array_equal(np.broadcast_to(visible, x.problem.shape("weights")), x.visible())
    attnbench.judge(x, output=attention(Seen(x, visible))[0]).assert_close()
    with pytest.raises(ValueError, match="visible\\(mask\\) is"):
        x.problem.visible()


def test_arrays_are_named_and_shaped_as_in_a_dump():
    x = attnbench.inputs(SIZES + "/docs:7/blocks:4,8,0.5,h/topk:5/alibi")
    shapes = {name: array.shape for name, array in x.items() if name not in "qkv"}
    assert shapes == {"docs_q": (2, 30), "docs_k": (2, 30), "blocks": (1, 4, 8, 4), "topk": (2, 4, 30, 5), "alibi": (4,)}
    assert x.docs_q.dtype == x.topk.dtype == np.int32 and x.blocks.dtype == np.bool_ and x.block == (4, 8)
    assert attnbench.inputs(SIZES).docs_q is None


def test_a_pattern_of_ones_own_is_judged_and_a_bad_one_refused():
    x = attnbench.inputs(SIZES + "/docs:7")
    own = np.sort(np.arange(60, dtype=np.int32).reshape(2, 30) % 4)
    output = attention(Seen(x, (own[:, :, None] == own[:, None, :])[:, None]))[0]
    assert attnbench.judge(x.problem, output=output, docs_q=own, docs_k=own)
    assert not attnbench.judge(x, output=output)
    with pytest.raises(ValueError, match="docs_q has shape"):
        attnbench.judge(x, output=output, docs_q=own[:, :7])
    with pytest.raises(ValueError, match="float32, and the problem says int32"):
        attnbench.judge(x, output=output, docs_q=own.astype(np.float32))
    x = attnbench.inputs(SIZES + "/topk:5")
    beyond = np.full(x.problem.shape("topk"), 30, np.int32)
    with pytest.raises(ValueError, match="30"):
        attnbench.judge(x, output=output, topk=beyond)


@pytest.mark.parametrize("part", ["docs:7", "blocks:4,8", "topk:5", "qlengths:30,11", "see:local:3,1", "alibi", "relative:3", "t5:8,20", "dropout:0.1", "general", "additive", "rope:half"])
def test_a_variant_is_given_no_part_that_it_has_not_declared(part):
    with pytest.raises(ValueError, match="right takes no "):
        attnbench.run(right, f"{SIZES}/{part}")


@pytest.mark.parametrize("part", ["phi:relu", "phi:identity/unnormalised", "decay", "decay/unnormalised"])
def test_linear_attention_has_a_map_a_normaliser_and_a_decay(part):
    x = attnbench.inputs(f"linear/causal/B:2/H:4/Hkv:2/D:8/T:40/{part}")
    phi = {"elu1": lambda a: np.where(a > 0, a + 1, np.exp(np.minimum(a, 0))), "relu": lambda a: np.maximum(a, 0), "identity": lambda a: a}[x.phi]
    q, k, v = (np.repeat(np.asarray(a, np.float64), 4 // a.shape[1], 1) for a in (x.q, x.k, x.v))
    weights = phi(q) @ phi(k).swapaxes(-1, -2)
    if "decay" in part:
        sums = np.repeat(np.cumsum(np.asarray(x.decay, np.float64), -1), 2, 1)
        weights = weights * np.exp(np.minimum(sums[..., :, None] - sums[..., None, :], 0))
    weights = weights * np.tri(40)
    output = weights @ v
    if x.normalised:
        output = output / (weights.sum(-1, keepdims=True) + x.epsilon)
    attnbench.judge(x, output=output).assert_close()
    assert not attnbench.judge(x, output=output[:, ::-1])


def test_a_state_is_handed_over():
    def elu1(a):
        a = np.asarray(a, np.float64)
        return np.where(a > 0, a + 1, np.exp(np.minimum(a, 0)))

    x = attnbench.inputs("linear/causal/B:2/H:4/Hkv:2/D:8/Dv:5/T:40/state/final_state")
    assert x.state.shape == (2, 2, 8, 5) and x.state_sum.shape == (2, 2, 8)
    q, k, v = elu1(x.q), elu1(x.k), np.asarray(x.v, np.float64)
    repeated = lambda a: np.repeat(np.asarray(a, np.float64), 2, 1)
    weights = q @ repeated(k).swapaxes(-1, -2) * np.tri(40)
    sums = weights.sum(-1, keepdims=True) + q @ repeated(x.state_sum)[..., None] + x.epsilon
    output = (weights @ repeated(v) + q @ repeated(x.state)) / sums
    state, state_sum = x.state + k.swapaxes(-1, -2) @ v, x.state_sum + k.sum(-2)
    attnbench.judge(x, output=output, final_state=state, final_state_sum=state_sum).assert_close()
    wrong = attnbench.judge(x, output=output, final_state=state - x.state, final_state_sum=state_sum)
    assert not wrong and "final_state" in str(wrong)
    with pytest.raises(ValueError, match="the final state is not given"):
        attnbench.judge(x, output=output)
