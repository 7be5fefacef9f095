"""What is asked: a problem line and what it says, its inputs as arrays, and many of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _arrays, _native

# Optional parts of a problem, with the bits of variants/attention.h.
FEATURES = {
    "band": 1 << 0,
    "offset": 1 << 1,
    "key_lengths": 1 << 2,
    "mask": 1 << 3,
    "bias": 1 << 4,
    "softcap": 1 << 5,
    "lse": 1 << 6,
    "weights": 1 << 7,
    "sink": 1 << 8,
}
# Of Python's functions alone: a band that may only be causal, and query heads that share keys and values.
KINDS = ("causal", "gqa")
# As the suite names the parts above; functions of Python take no other ones yet.
WORDS = {"band", "offset", "key lengths", "mask", "bias", "softcap", "log-sum-exp", "weights", "sinks"}
TYPES = {"f32": 1, "bf16": 2, "f16": 3}
TYPE_CODES = {1: "f32", 2: "bf16", 3: "f16", 4: "u8"}
FUNCTIONS = ("softmax", "linear")
UNLIMITED = (1 << 63) - 1
# As the files of `attnbench dump` are called.
SHORT = {"query": "q", "key": "k", "value": "v", "query_documents": "docs_q", "key_documents": "docs_k", "relative": "rel", "rope_cos": "cos", "rope_sin": "sin"}
PATTERN = ("query_documents", "key_documents", "blocks", "topk")
# Of a layer, whose query is x, whose key a memory where there is one, and whose output have no heads.
WEIGHTS = ("w_q", "w_k", "w_v", "w_o")
BIASES = ("b_q", "b_k", "b_v", "b_o")
INPUTS = ("query", "key", "value", "mask", "bias", "sink", *PATTERN, "alibi", "relative", "t5", "decay", "general", "additive", "keep", "rope_cos", "rope_sin", "state", "state_sum", *WEIGHTS, *BIASES)
# Of the backward pass: what it is given beside these, and what it is to give.
GIVEN = ("output", "lse", "output_grad")
FINAL = ("final_state", "final_state_sum")  # what linear attention leaves
GRADIENTS = ("query_grad", "key_grad", "value_grad", "bias_grad", "sink_grad", "decay_grad", "state_grad", "state_sum_grad")
# Of [B, H, T, last] those that a tensor has, where it has not all.
AXES = {"lse": (0, 1, 2), "sink": (1,), "sink_grad": (1,), "alibi": (1,), "relative": (1, 3), "t5": (1, 3), "general": (1, 2, 3), "additive": (1, 3), "decay": (0, 1, 3), "decay_grad": (0, 1, 2), "state_sum": (0, 1, 3), "state_sum_grad": (0, 1, 3), "final_state_sum": (0, 1, 3), "rope_cos": (2, 3), "rope_sin": (2, 3), "query_documents": (0, 2), "key_documents": (0, 2), **dict.fromkeys(WEIGHTS, (2, 3)), **dict.fromkeys(BIASES, (3,))}
AXES_OF_LAYER = dict.fromkeys(("query", "key", "output"), (0, 2, 3))


def short(tensor: str) -> str:
    return SHORT.get(tensor, tensor)


@dataclass(frozen=True)
class Problem:
    """Sizes, numbers and band of a problem; left and right are None where the band has no limit on that side."""

    function: str
    batch: int
    query_heads: int
    kv_heads: int
    query_length: int
    key_length: int
    head_dim: int
    value_dim: int
    scale: float
    softcap: float
    epsilon: float
    left: int | None
    right: int | None
    offset: int
    offsets: list[int] | None
    key_lengths: list[int] | None
    types: dict[str, str]  # of each tensor that is there
    line: str = ""  # in words, where it is known
    flops: float = 0  # that count, of the forward pass
    strides: dict[str, tuple[int, int, int]] = field(default_factory=dict, repr=False)
    others: tuple[str, ...] = ()  # parts that functions wrapped as variants are not given
    query_lengths: list[int] | None = None
    terms: tuple[tuple, ...] = ()  # of the pattern, such as ("local", 3, 0); None: no limit on that side
    block: tuple[int, int] = (0, 0)  # queries and keys of a block of the mask `blocks`
    listed: int = 0  # keys that `topk` has for each query
    relative_distance: int = 0  # the greatest that `rel` tells apart
    t5_buckets: int = 0
    t5_distance: int = 0  # the greatest, from which on the bucket is the last
    t5_both: bool = False  # directions
    rope_features: int = 0  # that a rotary embedding turns, by rows of `cos` and `sin` for so many positions
    rope_positions: int = 0
    rope_interleaved: bool = False  # pairs are features 2n and 2n + 1, else n and n + rope_features / 2
    phi: str = "elu1"  # of linear attention, or relu or identity
    normalised: bool = True
    dropout_p: float = 0  # with the mask `keep`
    model_dim: int = 0  # M of a layer

    @property
    def inputs(self) -> tuple[str, ...]:
        """The tensors that a kernel is given."""
        return tuple(name for name in (*INPUTS, *(GIVEN if self.function.endswith("backward") else ())) if name in self.types)

    @property
    def groups(self) -> int:
        """Query heads that share a key/value head."""
        return self.query_heads // self.kv_heads if self.kv_heads else 1

    @property
    def causal(self) -> bool:
        """No query sees a later key, and every earlier one, with the diagonal at the top left."""
        return self.left is None and self.right == 0 and self.offset == 0 and self.offsets is None

    @property
    def type(self) -> str:
        return self.types["query"]

    def shape(self, tensor: str) -> tuple[int, ...]:
        """As arrays have it: [B, H, T, D], but [B, H, Tq] of the log-sum-exp, [H] of sinks and slopes, [B, T] of documents,
        [B, T, M] of what goes into a layer and comes out."""
        B, H, Hkv, Tq, Tk = self.batch, self.query_heads, self.kv_heads, self.query_length, self.key_length
        D, Dv, M = self.head_dim, self.value_dim, self.model_dim
        if self.function == "layer" and tensor in AXES_OF_LAYER:
            return (B, Tk if tensor == "key" else Tq, M)
        shapes = {
            "query": (B, H, Tq, D),
            "key": (B, Hkv, Tk, D),
            "value": (B, Hkv, Tk, Dv),
            "output": (B, H, Tq, Dv),
            "lse": (B, H, Tq),
            "sink": (H,),
            "output_grad": (B, H, Tq, Dv),
            "query_grad": (B, H, Tq, D),
            "key_grad": (B, Hkv, Tk, D),
            "value_grad": (B, Hkv, Tk, Dv),
            "sink_grad": (H,),
            "alibi": (H,),
            "relative": (H, 2 * self.relative_distance + 1),
            "t5": (H, self.t5_buckets),
            "general": (H, D, D),
            "additive": (H, D),
            "decay": (B, Hkv, Tk),
            "decay_grad": (B, Hkv, Tk),
            "state": (B, Hkv, D, Dv),
            "state_sum": (B, Hkv, D),
            "state_grad": (B, Hkv, D, Dv),
            "state_sum_grad": (B, Hkv, D),
            "final_state": (B, Hkv, D, Dv),
            "final_state_sum": (B, Hkv, D),
            "rope_cos": (self.rope_positions, self.rope_features // 2),
            "rope_sin": (self.rope_positions, self.rope_features // 2),
            "query_documents": (B, Tq),
            "key_documents": (B, Tk),
            "blocks": (B, H, *(-(-size // step) if step else 0 for size, step in zip((Tq, Tk), self.block))),
            "topk": (B, H, Tq, self.listed),
            "w_q": (H * D, M),
            "w_k": (Hkv * D, M),
            "w_v": (Hkv * Dv, M),
            "w_o": (M, H * Dv),
            "b_q": (H * D,),
            "b_k": (Hkv * D,),
            "b_v": (Hkv * Dv,),
            "b_o": (M,),
        }
        return shapes.get(tensor, (B, H, Tq, Tk))

    def stored_shape(self, tensor: str) -> tuple[int, ...]:
        """The same with 1 for each axis that the tensor does not vary over."""
        shape = self.shape(tensor)
        if tensor not in self.strides or tensor not in ("mask", "bias", "bias_grad", "keep", *PATTERN) or 0 in shape:
            return shape
        return tuple(1 if step == 0 and size > 1 else size for size, step in zip(shape, self.steps(tensor)))

    def axes(self, tensor: str) -> tuple[int, ...]:
        """Of [B, H, T, last] those that arrays have."""
        if self.function == "layer" and tensor in AXES_OF_LAYER:
            return AXES_OF_LAYER[tensor]
        return AXES.get(tensor, (0, 1, 2, 3))

    def steps(self, tensor: str) -> tuple[int, ...]:
        """From one element to the next along each axis that it has, in elements."""
        steps = (*self.strides[tensor], 1)
        return tuple(steps[axis] for axis in self.axes(tensor))

    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """First key and end of what each query sees by band and key lengths, [B, Tq] or [1, Tq] each."""
        offset = np.asarray(self.offsets if self.offsets is not None else [self.offset], np.int64)[:, None]
        length = np.asarray(self.key_lengths if self.key_lengths is not None else [self.key_length], np.int64)[:, None]
        centre = np.arange(self.query_length, dtype=np.int64)[None, :] + offset
        centre, length = np.broadcast_arrays(centre, length)
        first = np.zeros_like(centre) if self.left is None else np.maximum(centre - self.left, 0)
        end = length if self.right is None else np.minimum(centre + self.right + 1, length)
        return first, np.maximum(end, first)

    @property
    def every_query_sees_a_key(self) -> bool:
        """By band and key lengths; masks are not looked at."""
        first, end = self.ranges()
        return bool((end > first).all())

    def visible(self, mask: np.ndarray | None = None) -> np.ndarray | None:
        """Which keys each query sees, as bools that broadcast to [B, H, Tq, Tk]; None: all."""
        if self.others:
            return self._visible_in_others(mask)
        seen = None
        if self.left is not None or self.right is not None or self.key_lengths is not None:
            first, end = self.ranges()
            keys = np.arange(self.key_length)
            seen = ((keys >= first[..., None]) & (keys < end[..., None]))[:, None]
        if mask is None:
            return seen
        return mask if seen is None else seen & mask


    def _visible_in_others(self, mask: np.ndarray | None) -> np.ndarray:
        if "mask" in self.types and mask is None:
            raise ValueError("who sees whom by the pattern alone is not known of a problem with a mask: visible(mask) is")
        seen = np.empty(self.shape("weights"), np.bool_)
        _native.sees(self.line, seen.ctypes.data, seen.nbytes)
        return seen if mask is None else seen & mask


def _limit(limit: int | None) -> int | None:
    return None if limit is None or limit == UNLIMITED else limit


def parse(line: str, seed: int = 1) -> Problem:
    """What a line says; seed: where it names none."""
    return _problem(_native.describe(line, seed))


def _problem(said: dict) -> Problem:
    tensors = said["tensors"]
    same = {
        name: said[name]
        for name in (
            *("function", "batch", "query_heads", "kv_heads", "query_length", "key_length", "head_dim", "value_dim"),
            *("scale", "softcap", "epsilon", "left", "right", "offset", "offsets", "key_lengths"),
        )
    }
    return Problem(
        **same,
        types={name: tensor["type"] for name, tensor in tensors.items()},
        line=said["problem"],
        others=tuple(word for word in said["features"] if word not in WORDS),
        flops=said["flops"],
        strides={name: tuple(tensor["strides"]) for name, tensor in tensors.items()},
        query_lengths=said["query_lengths"],
        terms=tuple((term["term"], *term["numbers"]) for term in said["terms"]),
        block=tuple(said["block"]),
        listed=tensors["topk"]["shape"][3] if "topk" in tensors else 0,
        relative_distance=said["relative_distance"],
        t5_buckets=said["t5_buckets"],
        t5_distance=said["t5_distance"],
        t5_both=said["t5_both"],
        rope_features=said["rope_features"],
        rope_positions=said["rope_positions"],
        rope_interleaved=said["rope_interleaved"],
        phi=said["phi"],
        normalised=said["normalised"],
        dropout_p=said["dropout_p"],
        model_dim=said["model_dim"],
    )


def view(problem: Problem, tensor: str, memory: Any, at: int) -> np.ndarray:
    """A tensor of the problem that lies at a place of a buffer; of a mask a copy, for a bool of numpy is a byte of 0 or 1."""
    kind = _arrays.NUMPY[problem.types[tensor]]
    shape = problem.stored_shape(tensor)
    if 0 in shape:
        return np.empty(shape, kind)
    if kind == np.bool_:
        memory, at = np.frombuffer(memory, np.uint8, extent(problem, tensor), at) != 0, 0
    return np.ndarray(shape, kind, memory, at, tuple(step * kind.itemsize for step in problem.steps(tensor)))


def extent(problem: Problem, tensor: str) -> int:
    """Bytes from the first element to the last."""
    shape = problem.stored_shape(tensor)
    if 0 in shape:
        return 0
    return (1 + sum((size - 1) * step for size, step in zip(shape, problem.steps(tensor)))) * _arrays.NUMPY[problem.types[tensor]].itemsize


class Inputs(Mapping):
    """The inputs of a problem under their names, as attributes and as a mapping: q, k, v and, where there are such, mask,
    bias, sink, docs_q, docs_k, blocks, topk, alibi, rel, t5, decay, general, additive, keep, cos, sin, state and state_sum; of a backward pass output, lse (not of linear attention) and output_grad;
    of a layer x as q and its memory as k, weights w_q to w_o as torch.nn.Linear has them, and biases b_q to b_o."""

    def __init__(self, problem: Problem, arrays: dict[str, Any], framework: str = "numpy") -> None:
        self.problem, self.framework = problem, framework
        self._arrays = arrays

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._arrays:
            return self._arrays[name]
        if name in (*INPUTS, *GIVEN) or name in SHORT.values():
            return self._arrays.get(short(name))
        return getattr(self.problem, name)

    def __getitem__(self, name: str) -> Any:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        arrays = ", ".join(f"{name} {list(array.shape)}" for name, array in self._arrays.items())
        return f"<inputs of {self.problem.line}: {arrays}>"

    def to(self, framework: str, device: Any = None) -> Inputs:
        """The same in another framework; on the processor torch's tensors share the memory."""
        arrays = {
            name: _arrays.to_framework(_arrays.as_numpy(array, name)[0], framework, device)
            for name, array in self._arrays.items()
        }
        return Inputs(self.problem, arrays, framework)

    def visible(self) -> np.ndarray | None:
        """Which keys each query sees, of mask and pattern as they were drawn, as bools that broadcast to [B, H, Tq, Tk]; None: all."""
        mask = self._arrays.get("mask")
        if mask is None and "mask" in self.problem.types:
            mask = inputs(self.problem, names=("mask",))["mask"]
        return self.problem.visible(None if mask is None else _arrays.as_numpy(mask, "mask")[0])

    def torch(self, device: Any = None) -> Inputs:
        return self.to("torch", device)


def inputs(
    problem: str | Problem, seed: int = 1, framework: str = "numpy", device: Any = None, names: Iterable[str] | None = None
) -> Inputs:
    """Draws the inputs of a problem line. seed: where the line names none. device: of torch, where no framework is named.
    names: these alone, where the problem has them; output and lse of the backward pass take a forward pass of the reference."""
    asked = problem if isinstance(problem, Problem) else parse(problem, seed)
    for tensor in asked.types:
        if tensor not in (*INPUTS, *GIVEN, *GRADIENTS, *FINAL, "weights"):
            raise ValueError(f"this problem has {tensor}, which this package does not know")
    arrays = {}
    wanted = None if names is None else set(check_words(names, [short(name) for name in (*INPUTS, *GIVEN)], "input"))
    for tensor in asked.inputs:
        if wanted is not None and short(tensor) not in wanted:
            continue
        size = extent(asked, tensor)
        memory = np.empty(size, np.uint8)
        memory[:] = 0
        if size:
            _native.draw(asked.line, tensor, memory.ctypes.data, size)
        arrays[short(tensor)] = view(asked, tensor, memory, 0)
    drawn = Inputs(asked, arrays)
    if device is not None and framework == "numpy":
        framework = "torch"
    return drawn if framework == "numpy" else drawn.to(framework, device)


def check_words(words: Iterable[str], known: Iterable[str], what: str) -> list[str]:
    if isinstance(words, str):
        raise ValueError(f"{what}s are a list, such as ['{words}']")
    words = list(words)
    for word in words:
        if word not in known:
            raise ValueError(f"unknown {what} {word!r}: {what}s are {', '.join(known)}")
    return words


def refusal(asked: Problem, function: str, features: Iterable[str], dtypes: Iterable[str]) -> str | None:
    """Why a function with these does not take a problem."""
    uses = {tensor for tensor in asked.types if tensor in FEATURES}
    if asked.left is not None or asked.right is not None:
        uses.add("band")
    if asked.offset != 0 or asked.offsets is not None:
        uses.add("offset")
    if asked.key_lengths is not None:
        uses.add("key_lengths")
    if asked.softcap:
        uses.add("softcap")
    takes = set(features)
    if "causal" in takes and asked.left is None and asked.right == 0:
        uses.discard("band")
    if asked.function != function:
        return f"computes {function} attention"
    for word in (*asked.others, *sorted(uses - takes)):
        return f"takes no {word}"
    if asked.groups > 1 and "gqa" not in takes:
        return "takes as many key/value heads as query heads"
    for tensor, kind in asked.types.items():
        if tensor not in ("mask", "lse", "sink", "sink_grad") and kind not in dtypes:
            return f"takes no {_arrays.WORDS[kind]}"
    return None


def problems(
    variant: Any = None,
    count: int = 50,
    features: Iterable[str] = (),
    dtypes: Iterable[str] | None = None,
    function: str = "softmax",
    seed: int = 1,
    most_flops: float = 1e7,
    finite: bool | None = None,
    accepts: Any = None,
) -> list[str]:
    """Lines of the program's own grid, and then random ones, that a variant takes, or a function with these features and types, and
    which accepts says None or True of; none of more operations than most_flops."""
    if variant is not None:
        features, function = variant.features, variant.computes
        dtypes = variant.dtypes if dtypes is None else [kind for kind in variant.dtypes if kind in set(dtypes)]
        finite = variant.finite if finite is None else finite
    asking = [ask for ask in (accepts, getattr(variant, "accepts", None)) if ask]
    features = check_words(features, (*KINDS, *FEATURES), "feature")
    dtypes = check_words(("f32",) if dtypes is None else dtypes, TYPES, "type")
    taken: list[str] = []
    for number in range(200 * count + 20000):
        if len(taken) == count:
            break
        line = _native.problem(seed, number)
        said = _native.describe(line, 1)
        if said["flops"] > most_flops or (finite and said["fill"] in ("nonfinite", "largest")):
            continue
        asked = _problem(said)
        if refusal(asked, function, features, dtypes) is None and all(refused(ask, asked) is None for ask in asking):
            taken.append(asked.line)
    return taken


def refused(accepts: Any, asked: Problem) -> str | None:
    """What a function of the user's says of a problem: None or True where it takes it, else the reason."""
    said = accepts(asked)
    if isinstance(said, str):
        return said
    return None if said is None or said else "does not take it"
