"""What the runs of conventions_torch.py, conventions_jax.py and conventions_onnx.py share: inputs, verdicts, and the
problems on which the possible answers differ."""

import attnbench
import numpy as np

# Few enough rows to read, and no two of the numbers alike.
CROSS = "B:1/H:2/D:8/Tq:3/Tk:5"
SQUARE = "B:2/H:2/D:8/T:9"
GROUPED = "B:1/H:4/Hkv:2/D:8/T:5"


class Answers(dict):
    """Outputs held to problem lines: the same inputs, another line for each possible answer."""

    def __init__(self, inputs, output, lines, lse=None, **own):
        super().__init__()
        for answer, line in lines.items():
            self[answer] = judge(line, inputs, output, lse, **own)


def judge(line, inputs, output, lse=None, **own):
    given = {**dict(inputs), **own}
    takes = attnbench.inputs(line)
    arrays = {name: np.ascontiguousarray(array) for name, array in given.items() if name in takes}
    lse = None if lse is None else np.ascontiguousarray(lse)
    return attnbench.judge(line, output=np.ascontiguousarray(output), lse=lse, **arrays)


def base_of(inputs, output, lse, line):
    """Natural or base 2: the same output, the log-sum-exp as it is and as a logarithm to base 2 would be."""
    natural = np.asarray(lse, np.float32)
    return {
        "natural": judge(line, inputs, output, natural),
        "base 2": judge(line, inputs, output, natural * np.float32(np.log(2))),
    }


def heads_of(inputs, output):
    """Query head h reads key/value head h / (H / Hkv), or h modulo Hkv."""
    modulo = np.arange(4) % 2
    return {
        "h / (H / Hkv)": judge("full/" + GROUPED, inputs, output),
        "h mod Hkv": judge("full/B:1/H:4/D:8/T:5", inputs, output, k=inputs["k"][:, modulo], v=inputs["v"][:, modulo]),
    }


def scale_of(inputs, output):
    return Answers(inputs, output, {"1/sqrt(D)": "full/" + CROSS, "1": "full/scale:1/" + CROSS})


def sense_of(inputs, output, mask):
    """True lets a key be seen, or hides it."""
    return {
        "True is seen": judge("full/mask:q/" + CROSS, inputs, output, mask=mask[None, None]),
        "True is hidden": judge("full/mask:q/" + CROSS, inputs, output, mask=~mask[None, None]),
    }


MASK = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 0]], bool)
# A row that sees nothing between two that see all.
HIDDEN = np.array([[1] * 5, [0] * 5, [1] * 5], bool)


def hidden_row(output, values):
    """What stands in row 1 of head 0: values are [Tk, Dv] of that head."""
    row = np.asarray(output, np.float64)
    mean = np.asarray(values, np.float64).mean(0)
    return {
        "zeros": bool((row == 0).all()),
        "NaN": bool(np.isnan(row).all()),
        "mean of all values": bool(np.allclose(row, mean, rtol=0, atol=1e-6)),
    }


def poisoned(of_key, of_value):
    """Whether NaN in a key, or in a value, that no query sees reaches the output."""
    reached = {name for name, output in (("key", of_key), ("value", of_value)) if np.isnan(np.asarray(output)).any()}
    return {
        "neither": reached == set(),
        "value": reached == {"value"},
        "key": reached == {"key"},
        "key and value": reached == {"key", "value"},
    }


def near_equal_weights(kind, step):
    """q, k, v of one query and three keys, and the exact output: two weights so near each other that they are one number of
    the type, with values 1 and -1. A kernel that rounds weights to the type gives 0. step: between neighbours at 0.1."""
    first = np.asarray([0.0999755859375], kind).astype(np.float64)[0]
    k = np.zeros((1, 1, 3, 8))
    k[0, 0, 1, 0], k[0, 0, 2, 0] = -first, -(first + step)
    q, v = np.zeros((1, 1, 1, 8)), np.zeros((1, 1, 3, 8))
    q[..., 0] = 1
    v[0, 0, 1], v[0, 0, 2] = 1, -1
    weights = np.exp(k[0, 0, :, 0])
    exact = (weights[1] - weights[2]) / weights.sum()
    return q, k, v, exact


def rounded_weights(output, exact):
    """Weights as they met the values, by the output of near_equal_weights."""
    computed = float(np.asarray(output, np.float64).ravel()[0])
    return {"float32": abs(computed - exact) < 0.05 * exact, "rounded": computed == 0}
