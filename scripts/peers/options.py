"""What `make peers ARGS="..."` takes. Run as a program it only says what is wrong with its arguments: it
needs no packages, so that this comes before anything is installed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
MASKS = ("full", "causal")
# Who sees whom in more words: patterns.py.
SPARSE = ("strided", "fixed", "longformer", "bigbird", "streaming-llm", "documents", "blocks")
TYPES = ("f32", "bf16", "f16")

# The peers and what they are called, in the order in which they are shown: on the host, and on a GPU.
HOST = {
    "torch": "PyTorch",
    "onnxruntime": "ONNX Runtime",
    "onednn": "oneDNN",
    "openvino": "OpenVINO",
    "torch_flex": "FlexAttention",
}
DEVICE = {
    "torch_flash": "PyTorch FLASH",
    "torch_cudnn": "PyTorch CUDNN",
    "torch_efficient": "PyTorch EFFICIENT",
    "flash_attn": "flash-attn",
}
TITLES = HOST | DEVICE


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"make peers: {message}\n")


def _numbers(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and 0 < int(part) < 1 << 31 for part in parts):
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of whole numbers from 1, such as 512,1024")
    return list(dict.fromkeys(int(part) for part in parts))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 31):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1")
    return int(text)


def _device(text: str) -> str:
    kind, _, number = text.partition(":")
    if kind not in ("cuda", "emu") or not (number or "0").isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not a device such as cuda:0")
    return f"{kind}:{number or 0}"


def _names(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        for part in text.split(","):
            if part not in known:
                raise argparse.ArgumentTypeError(f"'{part}' is not one of {', '.join(known)}")
        return list(dict.fromkeys(text.split(",")))

    return parse


@dataclass(frozen=True)
class Options:
    build: Path
    lengths: list[int]
    head_dims: list[int]
    masks: list[str]
    types: list[str]
    threads: list[int]
    peers: list[str]
    device: str | None
    backward: bool
    variant: str
    plugin: Path
    batch: int
    heads: int
    kv_heads: int
    query_length: int | None
    repetitions: int
    seconds: int
    seed: int
    out: Path


def parse(arguments: list[str]) -> Options:
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H-%M-%SZ")
    parser = _Parser(
        prog="make peers",
        usage='make peers [ARGS="options"]',
        description="Measures a variant beside what a user would pick instead.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    lengths, dims, out = [512, 1024, 2048, 4096, 8192], [64, 128], ROOT / "results" / f"peers-{now}"
    processors = len(os.sched_getaffinity(0))
    known, masks, types = _names(tuple(TITLES)), _names((*MASKS, *SPARSE)), _names(TYPES)
    host, device = ",".join(HOST), ",".join(DEVICE)
    add("--build", type=Path, default=ROOT / "build", help=argparse.SUPPRESS)
    add("--lengths", metavar="T,...", type=_numbers, default=lengths, help="(512,1024,2048,4096,8192)")
    add("--head-dims", metavar="D,...", type=_numbers, default=dims, help="(64,128)")
    add("--masks", metavar="MASK,...", type=masks, default=list(MASKS), help=f"of {','.join((*MASKS, *SPARSE))} (full,causal)")
    add("--types", metavar="TYPE,...", type=types, help=f"of {','.join(TYPES)} (f32, on a GPU f16)")
    add(
        "--threads",
        metavar="N,...",
        type=_numbers,
        default=[threads for threads in (1, 2) if threads <= processors],
        help="at most as many as there are processors (1,2)",
    )
    add("--peers", metavar="NAME,...", type=known, help=f"of {host}, or of {device} (all but torch_flex, with patterns torch_flex)")
    add("--device", metavar="KIND:N", type=_device, help="cuda:0: on a GPU, beside PyTorch's and flash-attn")
    add("--backward", action="store_true", help="the gradients of queries, keys and values, from those of the output; beside PyTorch")
    add("--variant", metavar="NAME", help="of ours or of the plugin (fused, with --backward fused_backward, on a GPU cuda_fused)")
    add("--plugin", metavar="FILE.so", type=Path, help="a shared object to take the variant from (ours)")
    add("--batch", metavar="B", type=_number, default=1, help="batch entries (1)")
    add("--heads", metavar="H", type=_number, default=4, help="heads (4)")
    add("--kv-heads", metavar="HKV", type=_number, help="key/value heads, a divisor of H (H)")
    add(
        "--query-length",
        metavar="TQ",
        type=_number,
        help="as many queries at each length, the last ones: 1 for decoding (T)",
    )
    add(
        "--repetitions",
        metavar="N",
        type=_number,
        default=6,
        help="at least (6, the fewest with a 95%% interval)",
    )
    add(
        "--seconds",
        metavar="S",
        type=_number,
        default=5,
        help="of repetitions for a point, if N take less (5)",
    )
    add("--seed", metavar="N", type=_number, default=1, help="of the inputs and the order (1)")
    add("--out", metavar="FOLDER", type=Path, default=out, help="a folder to be made (results/peers-TIME)")
    found = vars(parser.parse_args(arguments))
    device = found["device"]
    there = DEVICE if device else HOST
    found["types"] = found["types"] or ["f16" if device else "f32"]  # cuda_fused takes no other than 16 bits
    found["plugin"] = found["plugin"] or found["build"] / f"attnbench_{device.partition(':')[0] if device else 'variants'}.so"
    found["variant"] = found["variant"] or ("cuda_fused" if device else "fused_backward" if found["backward"] else "fused")
    # FlexAttention is for patterns; compiling it takes 10 to 20 seconds for each point.
    has_patterns = not set(found["masks"]) <= set(MASKS)
    usual = ["torch_flex"] if has_patterns and not device else [name for name in there if name != "torch_flex"]
    if found["backward"]:
        if device or found["query_length"] or has_patterns or found["types"] != ["f32"]:
            parser.error("--backward is measured on the host, of f32, full and causal, with as many queries as keys")
        if found["peers"] not in (None, ["torch"]):
            parser.error("--backward is measured beside torch alone: leave --peers out")
        usual = ["torch"]
    found["peers"] = found["peers"] or usual
    for name in found["peers"]:
        if name not in there:
            parser.error(f"--peers {name} is measured {'on the host, without --device' if device else 'with --device cuda:0'}")
    if device and len(found["threads"]) > 1:
        found["threads"] = [1]  # those of the host mean nothing there
    if found["out"].exists():
        parser.error(f"'{found['out']}' is there already; name a folder that is not")
    if max(found["threads"]) > processors:
        parser.error(f"--threads {max(found['threads'])} is more than the {processors} processors there are")
    found["kv_heads"] = found["kv_heads"] or found["heads"]
    if found["heads"] % found["kv_heads"]:
        parser.error(f"--kv-heads {found['kv_heads']} does not divide the {found['heads']} --heads")
    if found["query_length"] and has_patterns:
        parser.error("patterns are measured with as many queries as keys: leave --query-length or --masks out")
    if found["query_length"] and found["query_length"] > min(found["lengths"]):
        parser.error(f"--query-length {found['query_length']} is more than the shortest of --lengths")
    return Options(**found)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--names"]:  # of the peers, for who installs them
        print(*parse(sys.argv[2:]).peers)
    else:
        parse(sys.argv[1:])
