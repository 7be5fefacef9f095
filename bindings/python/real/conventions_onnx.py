"""The Attention operator of ONNX, by ONNX Runtime and by the reference that comes with onnx, held to docs/conventions.md."""

import attnbench
import numpy as np
import onnx
import onnxruntime
from conventions_cases import CROSS, GROUPED, HIDDEN, MASK, SQUARE, Answers, heads_of, hidden_row, judge
from conventions_cases import near_equal_weights, poisoned, rounded_weights, scale_of, sense_of
from onnx.reference import ReferenceEvaluator

VERSION = f"onnx {onnx.__version__}, ONNX Runtime {onnxruntime.__version__}"
ONNX = "ONNX Attention"
CASES = {}
BASE = "full/" + CROSS
TALL = "B:1/H:2/D:8/Tq:5/Tk:3"


def case(question, number=0):
    def keep(function):
        CASES[ONNX, question, number] = function
        return function

    return keep


def attend(inputs, opset=24, reference=False, mask=None, past=None, lengths=None, **attributes):
    """One node in a model; past: how many of the keys are given as past_key."""
    cut = past or 0
    feeds = {"q": inputs["q"], "k": inputs["k"][:, :, cut:], "v": inputs["v"][:, :, cut:], "mask": mask}
    feeds["past_k"] = inputs["k"][:, :, :cut] if past else None
    feeds["past_v"] = inputs["v"][:, :, :cut] if past else None
    feeds["lengths"] = None if lengths is None else np.array(lengths, np.int64)
    names = [name if array is not None else "" for name, array in feeds.items()]
    while not names[-1]:
        names.pop()
    feeds = {name: np.ascontiguousarray(array) for name, array in feeds.items() if array is not None}
    kinds = {name: onnx.helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in feeds.items()}
    outputs = ["o", "present_k", "present_v"] if past else ["o"]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Attention", names, outputs, **attributes)],
        "attention",
        [onnx.helper.make_tensor_value_info(name, kinds[name], feeds[name].shape) for name in feeds],
        [onnx.helper.make_tensor_value_info(name, kinds["q"], None) for name in outputs],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=11)
    if reference:
        return ReferenceEvaluator(model).run(None, feeds)[0]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def alignment(**asked):
    """One answer for more keys than queries and for fewer."""
    answers = {}
    for sizes in (CROSS, TALL):
        inputs = attnbench.inputs("full/" + sizes)
        lines = {"top left": "causal/" + sizes, "bottom right": "causal_bottom_right/" + sizes}
        for answer, verdict in Answers(inputs, attend(inputs, is_causal=1, **asked), lines).items():
            answers[answer] = verdict if answers.get(answer, True) else answers[answer]
    return answers


def refused(inputs, **asked):
    """Whether ONNX Runtime does not take it."""
    try:
        attend(inputs, **asked)
    except Exception:  # its own exceptions have no base of their own
        return True
    return False


@case("causal", 0)
def _():
    return alignment()


@case("causal", 1)
def _():
    inputs = attnbench.inputs(BASE)
    lines = {"bottom right": "causal_bottom_right/" + CROSS, "top left": "causal/" + CROSS}
    return Answers(inputs, attend(inputs, past=2, is_causal=1), lines)


@case("window")
def _():
    inputs = attnbench.inputs("full/" + SQUARE)
    lines = {f"band:{left},{right}": f"band:{left},{right},0/{SQUARE}" for left, right in ((2, 1), (1, 1), (2, 0), (1, 2))}
    output = attend(inputs, opset=25, reference=True, left_window_size=2, right_window_size=1)
    answers = Answers(inputs, output.astype(np.float32), lines)
    answers["band:2,1"] = answers["band:2,1"] if refused(inputs, opset=25, left_window_size=2) else False
    return answers


@case("softcap")
def _():
    """After the bias a softcap would bend it: a problem whose scores are all in the bias says what would come then."""
    line = f"softcap:0.5/scale:2/bias:q/{CROSS}"
    inputs = attnbench.inputs(line)
    bias = np.ascontiguousarray(inputs.bias * np.float32(4))
    output = attend(inputs, mask=bias[0, 0], softcap=0.5, scale=2.0)
    scores = 2 * inputs.q.astype(np.float64) @ np.swapaxes(inputs.k, 2, 3).astype(np.float64) + bias
    capped = (0.5 * np.tanh(scores / 0.5)).astype(np.float32)
    return {
        "before the bias": judge(line, inputs, output, bias=bias),
        "after the bias": judge(f"bias:hq/{CROSS}", inputs, output, q=np.zeros_like(inputs.q), bias=capped),
    }


@case("hidden")
def _():
    inputs = attnbench.inputs(BASE)
    return hidden_row(attend(inputs, mask=HIDDEN)[0, 0, 1], inputs.v[0, 0])


@case("lengths")
def _():
    inputs = attnbench.inputs("full/" + SQUARE)
    lines = {"bottom right": f"band:inf,0,0/offsets:-6,-2/lengths:3,7/{SQUARE}", "top left": f"causal/lengths:3,7/{SQUARE}"}
    return Answers(inputs, attend(inputs, lengths=[3, 7], is_causal=1), lines)


@case("scale")
def _():
    inputs = attnbench.inputs(BASE)
    answers = scale_of(inputs, attend(inputs))
    answers["1/sqrt(D)"] = answers["1/sqrt(D)"] if all(refused(inputs, scale=x) for x in (0.0, -0.5)) else False
    return answers


@case("heads")
def _():
    inputs = attnbench.inputs("full/" + GROUPED)
    return heads_of(inputs, attend(inputs))


@case("sense")
def _():
    inputs = attnbench.inputs(BASE)
    return sense_of(inputs, attend(inputs, mask=MASK), MASK)


@case("poison")
def _():
    inputs = dict(attnbench.inputs(BASE))
    seen = np.ones((3, 5), bool)
    seen[:, 4] = False
    outputs = []
    for name in "kv":
        changed = {**inputs, name: inputs[name].copy()}
        changed[name][:, :, 4] = np.nan
        outputs.append(attend(changed, mask=seen))
    return poisoned(*outputs)


@case("weights")
def _():
    q, k, v, exact = near_equal_weights(np.float16, 2.0**-14)
    arrays = {name: array.astype(np.float16) for name, array in zip("qkv", (q, k, v))}
    return rounded_weights(attend(arrays, scale=1.0), exact)
