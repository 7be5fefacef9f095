"""Whole layers: inputs, and outputs from numpy held to the reference."""

import numpy as np
import pytest

import attnbench
from kernels import attention


class Inner:
    """What is left of a layer when it has been projected."""

    def __init__(self, x, q, k, v):
        self.q, self.k, self.v, self.inputs = q, k, v, x

    def __getattr__(self, name):
        return getattr(self.inputs, name)


def projected(rows, weights, biases):
    """As torch.nn.Linear."""
    return rows @ weights.T + (0 if biases is None else biases)


def heads(rows, count):
    return rows.reshape(*rows.shape[:2], count, -1).swapaxes(1, 2)


def layer(x):
    memory = x.q if x.k is None else x.k
    q = heads(projected(x.q, x.w_q, x.b_q), x.query_heads)
    k, v = (heads(projected(memory, w, b), x.kv_heads) for w, b in ((x.w_k, x.b_k), (x.w_v, x.b_v)))
    output = attention(Inner(x, q, k, v))[0].swapaxes(1, 2)
    return projected(output.reshape(*output.shape[:2], -1), x.w_o, x.b_o)


LINES = [
    "layer/full/B:2/H:4/D:8/T:20",
    "layer/causal/B:2/H:4/Hkv:2/D:8/Dv:6/M:30/T:20/biases",
    "layer/full/B:2/H:4/D:8/M:20/Tq:7/Tk:30/biases/lengths:30,11/sink",
    "layer/full/B:1/H:2/D:4/M:9/T:12/memory/mask:q/bias:hq/softcap:2/layout:padded",
    "layer/full/B:2/H:2/D:4/M:9/T:12/layout:bthd/see:local:3,0+first:2",
]


@pytest.mark.parametrize("line", LINES)
def test_layers_are_given_and_judged(line):
    x = attnbench.inputs(line)
    H, Hkv, D, Dv, M = x.query_heads, x.kv_heads, x.head_dim, x.value_dim, x.model_dim
    assert x.q.shape == (x.batch, x.query_length, M) and x.v is None
    assert (x.w_q.shape, x.w_k.shape, x.w_v.shape, x.w_o.shape) == ((H * D, M), (Hkv * D, M), (Hkv * Dv, M), (M, H * Dv))
    assert (x.k is None) == ("memory" not in line and "Tk" not in line)
    assert (x.b_o is None) == ("biases" not in line)
    output = layer(x)
    attnbench.judge(x, output=output).assert_close()
    attnbench.judge(line, output=output.astype(np.float64)).assert_close()
    verdict = attnbench.judge(x, output=np.where(np.arange(M) == 1, output[..., ::-1], output))
    assert not verdict and verdict.tensor == "output" and verdict.where["e"] == 1


def test_weights_of_ones_own_are_judged():
    line = LINES[1]
    x = attnbench.inputs(line)
    own = {name: np.asarray(array) for name, array in x.items()}
    own["w_v"] = own["w_v"][::-1].copy()
    own["b_k"] = own["b_k"] * 2
    mine = attnbench.inputs(line)
    mine._arrays.update(own)
    attnbench.judge(line, output=layer(mine), w_v=own["w_v"], b_k=own["b_k"]).assert_close()
    assert not attnbench.judge(line, output=layer(mine))


def test_arrays_of_other_shapes_are_refused():
    x = attnbench.inputs(LINES[0])
    output = layer(x)
    with pytest.raises(ValueError, match="output has shape"):
        attnbench.judge(x, output=output[:, None])
    with pytest.raises(ValueError, match="w_q has shape"):
        attnbench.judge(x, output=output, w_q=x.w_q[None])
    with pytest.raises(ValueError, match="no k: it has q, output, w_q"):
        attnbench.judge(x, output=output, k=x.q)
    with pytest.raises(ValueError, match="no v: it has"):
        attnbench.judge(x, output=output, v=x.q)
