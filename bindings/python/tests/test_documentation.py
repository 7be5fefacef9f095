"""What docs/python.md shows is what happens."""

import re
from pathlib import Path

import numpy as np
import pytest

import attnbench

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"


def marked(parametrised):
    """The lines that pytest would run it over."""
    return [line for mark in parametrised.pytestmark for line in mark.args[1]]


def test_the_page_runs(capsys):
    names = {"__name__": "page"}
    ran = 0
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        if block.startswith("# slow"):
            continue
        if block.startswith("# torch") and not has_torch():
            continue
        if "attnbench.problems(variant" in block:  # of what comes below it
            later = block
            continue
        exec(compile(block, str(PAGE), "exec"), names)
        ran += 1
    exec(compile(later, str(PAGE), "exec"), names)
    assert ran >= 3
    for test in (names["test_mine"], names["test_variant"]):
        lines = marked(test)
        assert len(lines) == 20
        for line in lines:
            test(line)


def has_torch():
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True


def test_the_page_prints_what_is_printed():
    page = PAGE.read_text()
    names = {}
    block = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1).replace("print(verdict)", "")
    exec(block, names)
    said = str(names["verdict"])
    without_numbers = re.compile(r"[-\d.e]+")
    shown = re.search(r"```\n(right: .*?)\n```", page, re.DOTALL).group(1)
    assert [without_numbers.sub("N", line) for line in said.splitlines()] == [
        without_numbers.sub("N", line) for line in shown.splitlines()
    ]


@pytest.mark.skipif(not has_torch(), reason="torch is not installed")
def test_torch_shares_the_memory_in_each_type():
    import torch

    for word, kind in (("f32", torch.float32), ("bf16", torch.bfloat16), ("f16", torch.float16)):
        x = attnbench.inputs(f"causal/B:1/H:2/D:8/T:9/{word}")
        tensors = x.torch()
        assert tensors.q.dtype == kind and tensors.q.data_ptr() == x.q.ctypes.data
        assert np.array_equal(tensors.q.float().numpy(), attnbench.to_float32(x.q))
        good = torch.nn.functional.scaled_dot_product_attention(tensors.q, tensors.k, tensors.v, is_causal=True)
        assert attnbench.judge(tensors, output=good)
        assert not attnbench.judge(tensors, output=torch.zeros_like(good))
