"""The kernels that are measured: ours, and what a user would pick instead.

Each makes ready one problem for so many threads and gives its candidates: the kernels that this library
has for it, of which the faster one is measured. A candidate is a function that computes the output once,
into memory that the library gave it, and one that fetches the output as [B, H, T, D]. Every library gets
its inputs in the layout that it is fastest with, prepared outside the measurement.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from patterns import PATTERNS
from shapes import Shape, attnbench


@dataclass(frozen=True)
class Inputs:
    shape: Shape
    query: np.ndarray  # [B, H, T, D], as are all
    key: np.ndarray
    value: np.ndarray
    others: dict[str, np.ndarray]  # documents, a block mask, or the gradient of the output

    def tensors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.query, self.key, self.value

    def torch_tensors(self, torch: Any) -> list[Any]:
        """The same bits as PyTorch's tensors."""
        kind = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[self.shape.type]
        bits = np.int32 if self.shape.type == "f32" else np.int16
        return [torch.from_numpy(aligned(x).view(bits)).view(kind) for x in self.tensors()]

    def from_torch(self, torch: Any, output: Any) -> np.ndarray:
        """PyTorch's tensor as the suite takes it."""
        bits = torch.int32 if self.shape.type == "f32" else torch.int16
        return output.contiguous().view(bits).numpy().view(self.shape.array_type())

    @property
    def causal(self) -> bool:
        """As many queries as keys, each of which sees none behind it: what libraries have a flag for."""
        return self.shape.mask == "causal" and self.shape.queries() == self.shape.length

    def seen(self) -> np.ndarray | None:
        """What each of fewer queries, the last ones, sees of the keys, where a flag would mean the first ones, and what a
        pattern shows; None: all."""
        queries, keys = self.shape.queries(), self.shape.length
        if self.shape.mask in PATTERNS:
            rule = PATTERNS[self.shape.mask].rule(keys, lambda x: self.others[x] if isinstance(x, str) else x)
            b, h, q, k = np.ogrid[: self.shape.batch, :1, :queries, :keys]
            return np.array(np.broadcast_to(rule(b, h, q, k), (self.shape.batch, 1, queries, keys)))
        if self.shape.mask != "causal" or queries in (1, keys):
            return None
        return np.tri(queries, keys, keys - queries, dtype=bool)


GRADIENTS = ("query_grad", "key_grad", "value_grad")


@dataclass(frozen=True)
class Candidate:
    name: str
    run: Callable[[], Any]
    output: Callable[[], np.ndarray | dict[str, np.ndarray]]
    clock: Callable[[int], float] | None = None  # runs so many times and gives seconds of the device's clock


def aligned(array: np.ndarray) -> np.ndarray:
    """A packed copy that begins at a cache line, as our own tensors do."""
    memory = np.empty(array.nbytes + 64, dtype=np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class Ours:
    """A variant of this repository, or of somebody's plugin."""

    def __init__(self, threads: int, plugin: Path, variant: str, device: int) -> None:
        self.threads, self.plugin, self.name, self.device = threads, plugin, variant, device

    def version(self) -> str:
        return os.environ.get("ATTN_ISA", "the fastest instruction set")

    def candidates(self, inputs: Inputs) -> Iterator[Candidate]:
        kernel = attnbench.Kernel(inputs.shape.line(), self.name, self.plugin, self.threads, self.device)
        gradients = lambda: {name: kernel.gradient(name) for name in GRADIENTS}  # noqa: E731
        yield Candidate(self.name, kernel.run, gradients if inputs.shape.backward else kernel.output, kernel.run)


class Torch:
    """scaled_dot_product_attention with the kernel that PyTorch itself chooses."""

    def __init__(self, threads: int) -> None:
        import torch
        import torch.nn.attention

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.torch = torch

    def version(self) -> str:
        return str(self.torch.__version__)

    def candidates(self, inputs: Inputs) -> Iterator[Candidate]:
        attention = self.torch.nn.functional.scaled_dot_product_attention
        query, key, value = inputs.torch_tensors(self.torch)
        seen = inputs.seen()
        how = {
            "attn_mask": None if seen is None else self.torch.from_numpy(seen),
            "is_causal": inputs.causal,
            "enable_gqa": inputs.shape.groups() > 1,
        }

        def run() -> Any:
            return attention(query, key, value, **how)

        if inputs.shape.backward:
            yield self._backward(inputs, [query, key, value], how)
            return
        backends = {
            int(value): name for name, value in self.torch.nn.attention.SDPBackend.__members__.items()
        }
        choice = self.torch._fused_sdp_choice(query, key, value, **how)
        yield Candidate(
            backends.get(int(choice), "SDPA").lower(), run, lambda: inputs.from_torch(self.torch, run())
        )


    def _backward(self, inputs: Inputs, tensors: list[Any], how: dict[str, Any]) -> Candidate:
        """The forward pass once, before the measurement; of it the backward pass again and again."""
        torch = self.torch
        grad = torch.from_numpy(aligned(inputs.others["output_grad"]))
        with torch.enable_grad():
            for tensor in tensors:
                tensor.requires_grad_(True)
            output = torch.nn.functional.scaled_dot_product_attention(*tensors, **how)

        def run() -> Any:
            return torch.autograd.grad(output, tensors, grad, retain_graph=True)

        return Candidate("backward", run, lambda: {n: x.numpy() for n, x in zip(GRADIENTS, run())})


class TorchFlex:
    """FlexAttention, compiled, with a block mask of its own that leaves out what a pattern hides."""

    def __init__(self, threads: int) -> None:
        import torch
        from torch.nn.attention import flex_attention

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        torch._dynamo.config.recompile_limit = 1000  # one shape after the other, each compiled for itself
        self.torch, self.flex = torch, flex_attention
        self.compiled = torch.compile(flex_attention.flex_attention, dynamic=False)

    def version(self) -> str:
        return str(self.torch.__version__)

    def _block_mask(self, inputs: Inputs) -> Any:
        torch, shape = self.torch, inputs.shape
        keys, queries = shape.length, shape.queries()
        if shape.mask == "full":
            return None

        def has(x: Any) -> Any:
            return torch.from_numpy(np.ascontiguousarray(inputs.others[x] if isinstance(x, str) else x))

        if shape.mask in PATTERNS:
            rule = PATTERNS[shape.mask].rule(keys, has)
        else:
            rule = lambda b, h, q, k: q + (keys - queries) >= k  # noqa: E731
        entries = shape.batch if shape.mask == "documents" else None
        return self.flex.create_block_mask(rule, entries, None, queries, keys, device="cpu")

    def candidates(self, inputs: Inputs) -> Iterator[Candidate]:
        query, key, value = inputs.torch_tensors(self.torch)
        block_mask, grouped = self._block_mask(inputs), inputs.shape.groups() > 1

        def run() -> Any:
            return self.compiled(query, key, value, block_mask=block_mask, enable_gqa=grouped)

        yield Candidate("compiled", run, lambda: inputs.from_torch(self.torch, run()))


class OneDnn:
    """oneDNN's graph of attention, matrix product - softmax - matrix product in one partition, in the
    build that comes with PyTorch. It knows no causal mask but one that is added to the scores."""

    def __init__(self, threads: int) -> None:
        warnings.simplefilter("ignore")  # tracing is deprecated; the pinned version has it
        import torch

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        torch.jit.enable_onednn_fusion(True)
        self.torch = torch

    def version(self) -> str:
        text = self.torch.__config__.show()
        return text.partition("MKL-DNN v")[2].split(" ")[0] + " in PyTorch " + str(self.torch.__version__)

    def candidates(self, inputs: Inputs) -> Iterator[Candidate]:
        torch = self.torch
        scale, length = 1 / math.sqrt(inputs.shape.head_dim), inputs.shape.length
        queries = inputs.shape.queries()
        if inputs.shape.groups() > 1:
            raise RuntimeError("oneDNN's graph of attention knows no heads that share keys and values")
        tensors = inputs.torch_tensors(torch)
        if inputs.shape.mask in PATTERNS:
            mask = torch.zeros(inputs.seen().shape).masked_fill(~torch.from_numpy(inputs.seen()), -math.inf)
            tensors.append(mask.to(tensors[0].dtype))
        elif inputs.causal or inputs.seen() is not None:
            mask = torch.full((queries, length), -math.inf).triu(1 + length - queries).to(tensors[0].dtype)
            tensors.append(mask.view(1, 1, queries, length))

        class Attention(torch.nn.Module):
            def forward(self, query: Any, key: Any, value: Any, *mask: Any) -> Any:
                scores = torch.matmul(query, key.transpose(-2, -1)) * scale
                for bias in mask:
                    scores = scores + bias
                return torch.matmul(torch.softmax(scores, dim=-1), value)

        graph = torch.jit.freeze(torch.jit.trace(Attention().eval(), tensors, check_trace=False))
        for _ in range(2):  # the first two calls observe the shapes, from the third on oneDNN runs
            graph(*tensors)
        graph(*tensors)
        # Of the graph proper nothing may be left to PyTorch: all operations are in the fused part.
        outside = str(graph.graph_for(*tensors)).partition("\nwith ")[0]
        if "oneDNNFusionGroup" not in outside or "aten::softmax" in outside:
            raise RuntimeError("oneDNN did not take the graph of attention as a whole")
        yield Candidate("graph", lambda: graph(*tensors), lambda: inputs.from_torch(torch, graph(*tensors)))


class OnnxRuntime:
    """The Attention operator of ONNX (opset 23) and ONNX Runtime's own MultiHeadAttention."""

    def __init__(self, threads: int) -> None:
        import onnxruntime

        self.threads, self.runtime = threads, onnxruntime

    def version(self) -> str:
        return str(self.runtime.__version__)

    def candidates(self, inputs: Inputs) -> Iterator[Candidate]:
        batch, heads, queries, dim = inputs.shape.dims()
        causal, kind = int(inputs.causal), inputs.shape.type
        yield self._candidate(
            "Attention", kind, inputs.tensors(), lambda x: x, inputs.seen(), is_causal=causal
        )
        if inputs.shape.groups() > 1 or inputs.seen() is not None:
            return  # it knows neither
        # [B, T, H D] in, and out.
        merged = tuple(x.swapaxes(1, 2).reshape(batch, x.shape[2], heads * dim) for x in inputs.tensors())
        yield self._candidate(
            "MultiHeadAttention",
            kind,
            merged,
            lambda x: x.reshape(batch, queries, heads, dim).swapaxes(1, 2),
            domain="com.microsoft",
            num_heads=heads,
            unidirectional=causal,
        )

    def _candidate(
        self,
        operator: str,
        kind: str,
        tensors: tuple[np.ndarray, ...],
        to_heads: Callable[[np.ndarray], np.ndarray],
        seen: np.ndarray | None = None,
        **attributes: Any,
    ) -> Candidate:
        from onnx import TensorProto, helper

        element = {"f32": TensorProto.FLOAT, "bf16": TensorProto.BFLOAT16, "f16": TensorProto.FLOAT16}[kind]

        def info(name: str, tensor: np.ndarray) -> Any:
            of = TensorProto.BOOL if tensor.dtype == bool else element
            return helper.make_tensor_value_info(name, of, tensor.shape)

        def value_of(array: np.ndarray) -> Any:
            values = self.runtime.OrtValue
            if kind == "bf16" and array.dtype != bool:
                return values.ortvalue_from_numpy_with_onnx_type(array, element)
            return values.ortvalue_from_numpy(array)

        names, given = ["query", "key", "value"], list(tensors)
        if seen is not None:
            names, given = [*names, "attn_mask"], [*given, seen]
        node = helper.make_node(operator, names, ["output"], **attributes)
        inputs = [info(name, tensor) for name, tensor in zip(names, given)]
        graph = helper.make_graph([node], "attention", inputs, [info("output", tensors[0])])
        opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=11)
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        session = self.runtime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        # Bound to memory, so that no copy of the output is measured.
        binding, output = session.io_binding(), aligned(np.empty_like(tensors[0]))
        values = [value_of(aligned(x)) for x in (*given, output)]
        for name, value in zip(names, values):
            binding.bind_ortvalue_input(name, value)
        binding.bind_ortvalue_output("output", values[-1])
        return Candidate(
            operator,
            lambda: session.run_with_iobinding(binding),
            lambda: to_heads(binding.get_outputs()[0].numpy()),
        )


class OpenVino:
    """OpenVINO's ScaledDotProductAttention, whose matrix products are oneDNN's."""

    def __init__(self, threads: int) -> None:
        import openvino

        self.threads, self.openvino = threads, openvino
        self.core = openvino.Core()

    def version(self) -> str:
        return str(self.openvino.__version__).split("-")[0]

    @staticmethod
    def _for_each_head(node: Any, shape: Shape) -> Any:
        """Keys or values that query heads share, in the form that models have them in and that the plugin fuses."""
        from openvino import opset13

        if shape.groups() == 1:
            return node
        batch, kv_heads, length, dim = shape.dims("key")
        apart = opset13.unsqueeze(node, opset13.constant([2]))
        repeated = opset13.broadcast(apart, opset13.constant([batch, kv_heads, shape.groups(), length, dim]))
        whole = opset13.constant([batch, shape.heads, length, dim])
        return opset13.reshape(repeated, whole, special_zero=False)

    def candidates(self, inputs: Inputs) -> Iterator[Candidate]:
        from openvino import opset13

        names = ["query", "key", "value"]
        kind = getattr(self.openvino.Type, inputs.shape.type)
        nodes = [opset13.parameter(inputs.shape.dims(name), kind, name=name) for name in names]
        query, key, value = nodes[0], *(self._for_each_head(node, inputs.shape) for node in nodes[1:])
        seen = inputs.seen()
        mask = [] if seen is None else [opset13.constant(seen)]
        attention = opset13.scaled_dot_product_attention(query, key, value, *mask, causal=inputs.causal)
        model = self.openvino.Model([attention], nodes)
        settings = {
            "INFERENCE_NUM_THREADS": self.threads,
            "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": inputs.shape.type,
        }
        request = self.core.compile_model(model, "CPU", settings).create_infer_request()
        tensors = [aligned(tensor) for tensor in inputs.tensors()]
        for index, tensor in enumerate(tensors):
            memory = self.openvino.Tensor(tensor, inputs.shape.dims(names[index]), kind)  # shares it
            request.set_input_tensor(index, memory)

        def run(owned: list[np.ndarray] = tensors) -> Any:  # the request does not keep their memory
            return request.infer()

        yield Candidate(
            "ScaledDotProductAttention",
            run,
            lambda: request.get_output_tensor(0).data.view(inputs.shape.array_type()).copy(),
        )


class TorchDevice:
    """A backend of scaled_dot_product_attention on a GPU."""

    backend = ""

    def __init__(self, threads: int, device: str) -> None:
        import torch
        import torch.nn.attention

        torch.set_grad_enabled(False)
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU")
        self.torch, self.device = torch, torch.device(device)
        torch.cuda.set_device(self.device)

    def version(self) -> str:
        return f"{self.torch.__version__}, {self.torch.cuda.get_device_name(self.device)}"

    def candidates(self, inputs: Inputs) -> Iterator[Candidate]:
        torch = self.torch
        query, key, value = (tensor.to(self.device) for tensor in inputs.torch_tensors(torch))
        seen = inputs.seen()
        mask = None if seen is None else torch.from_numpy(seen).to(self.device)
        backend = getattr(torch.nn.attention.SDPBackend, self.backend)

        def run() -> Any:
            with torch.nn.attention.sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(
                    query,
                    key,
                    value,
                    attn_mask=mask,
                    is_causal=inputs.causal,
                    enable_gqa=inputs.shape.groups() > 1,
                )

        yield self._candidate(self.backend.lower(), inputs, run)

    def _candidate(self, name: str, inputs: Inputs, run: Callable[[], Any]) -> Candidate:
        torch = self.torch

        def clock(calls: int) -> float:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(100_000)  # cycles in which the host launches, so that its way there is not timed
            start.record()
            for _ in range(calls):
                run()
            end.record()
            end.synchronize()
            return start.elapsed_time(end) * 1e-3

        def once() -> None:
            run()
            torch.cuda.synchronize()

        return Candidate(name, once, lambda: inputs.from_torch(torch, run().cpu()), clock)


class TorchFlash(TorchDevice):
    backend = "FLASH_ATTENTION"


class TorchCudnn(TorchDevice):
    backend = "CUDNN_ATTENTION"


class TorchEfficient(TorchDevice):
    backend = "EFFICIENT_ATTENTION"


class FlashAttention(TorchDevice):
    """The library flash-attn, where it is installed: tensors are [B, T, H, D]. Its causal mask is aligned at the last key."""

    def __init__(self, threads: int, device: str) -> None:
        super().__init__(threads, device)
        import flash_attn

        self.library = flash_attn

    def version(self) -> str:
        return str(self.library.__version__)

    def candidates(self, inputs: Inputs) -> Iterator[Candidate]:
        tensors = [x.to(self.device).transpose(1, 2).contiguous() for x in inputs.torch_tensors(self.torch)]
        causal = inputs.shape.mask == "causal"

        def run() -> Any:
            return self.library.flash_attn_func(*tensors, causal=causal).transpose(1, 2)

        yield self._candidate("flash_attn_func", inputs, run)


# ---- all of them ----

PEERS: dict[str, Callable[..., Any]] = {
    "torch": Torch,
    "onnxruntime": OnnxRuntime,
    "torch_flex": TorchFlex,
    "onednn": OneDnn,
    "openvino": OpenVino,
    "torch_flash": TorchFlash,
    "torch_cudnn": TorchCudnn,
    "torch_efficient": TorchEfficient,
    "flash_attn": FlashAttention,
}
