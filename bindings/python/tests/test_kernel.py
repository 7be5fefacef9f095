"""Variants of the suite as Python times them (attnbench.Kernel)."""

from __future__ import annotations

import attnbench
import pytest
from attnbench import _native

LINE = "causal/B:2/H:4/Hkv:2/D:8/T:40/seed:3"


def plugin(name: str = "variants") -> str:
    return str(_native.path.parent / f"attnbench_{name}.so")


@pytest.mark.parametrize("line", [LINE, LINE + "/bf16", LINE + "/layout:padded/f16"])
def test_what_a_kernel_wrote_passes_the_judge_and_a_changed_element_does_not(line: str) -> None:
    kernel = attnbench.Kernel(line, "fused", plugin(), threads=2)
    assert kernel.run(3) > 0
    output = kernel.output()
    assert attnbench.judge(line, output=output)
    output[1, 3, 39, 7] = 7
    wrong = attnbench.judge(line, output=output)
    assert not wrong and wrong.where == {"b": 1, "h": 3, "i": 39, "e": 7}


@pytest.mark.skipif(not (_native.path.parent / "attnbench_emu.so").exists(), reason="the emulated device was not built")
def test_a_kernel_of_a_device_is_timed_by_its_clock_and_its_output_copied_back() -> None:
    kernel = attnbench.Kernel(LINE, "cuda_naive", plugin("emu"))
    assert kernel.run() > 0
    assert attnbench.judge(LINE, output=kernel.output())


def test_what_cannot_be_had_is_said_in_a_sentence() -> None:
    for line, variant, where, words in (
        ("diagonal/T:8", "fused", plugin(), "diagonal"),
        (LINE, "nobody", plugin(), "has no variant 'nobody'"),
        (LINE, "fused", "/nowhere.so", "/nowhere.so"),
        (LINE, "linear", plugin(), "linear: computes linear attention"),
    ):
        with pytest.raises(ValueError, match=words):
            attnbench.Kernel(line, variant, where)


def test_the_instruction_set_is_the_one_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTN_ISA", "portable")
    kernel = attnbench.Kernel(LINE, "fused", plugin())
    assert kernel.run() > 0 and attnbench.judge(LINE, output=kernel.output())
    monkeypatch.setenv("ATTN_ISA", "avx9")
    with pytest.raises(ValueError, match="^ATTN_ISA: on this processor .*variants.so has no instruction set 'avx9'$"):
        attnbench.Kernel(LINE, "fused", plugin())


def test_a_kernel_has_a_thread_at_least() -> None:
    for threads in (0, -3):
        with pytest.raises(ValueError, match=f"threads is {threads}: a kernel runs with 1 or more"):
            attnbench.Kernel(LINE, "fused", plugin(), threads=threads)


def test_a_median_has_the_interval_of_its_ranks() -> None:
    assert attnbench.median([3, 1, 2, 5, 4, 6, 7]) == (4, 1, 7)
    assert attnbench.median([float(n) for n in range(101)]) == (50, 40, 60)
