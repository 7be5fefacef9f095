"""Functions as variants: the program's commands run on them."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from kernels import attention, no_scale, right, right_in_each_type, wrong_heads

import attnbench

SMALL = "causal/B:2/H:4/Hkv:4/D:16/T:33"


def verified(function, problem=SMALL, **options):
    return attnbench.verify(function, problem=problem, quiet=True, **options)


def test_a_right_function_passes_the_grid():
    result = attnbench.verify(right_in_each_type, count=2, every=60, quiet=True)
    assert result and result.status == 0 and not result.failures
    assert result.text.split("right_in_each_type")[1].split()[0] == "passed" and " properties held on " in result.text
    assert "Unchecked, as right_in_each_type says of itself: the same bits again" in result.text


def test_a_right_function_passes_fuzz():
    result = attnbench.fuzz(right, seconds=1, quiet=True)
    assert result.passed and "fuzz with seed 1 for 1 s" in result.text


def test_wrong_heads_are_found_with_the_call_that_repeats_it():
    result = verified(wrong_heads, "full/B:1/H:4/Hkv:2/D:8/T:9")
    assert not result and result.status == 1 and "heads 1-2 of 4" in result.failures[0]
    again = eval(result.reproduce[0].replace(")", ", quiet=True)"), {"attnbench": attnbench, "wrong_heads": wrong_heads})
    assert again.failures == result.failures
    with pytest.raises(AssertionError, match="heads 1-2 of 4"):
        result.assert_passed()


def test_fuzz_shrinks_what_it_finds():
    result = attnbench.fuzz(no_scale, seconds=1, quiet=True)
    assert not result and "shrunk in " in result.text
    assert result.reproduce[0].startswith("attnbench.verify(no_scale, problem='full/")


def test_what_the_program_says_passes_through(capsys):
    result = attnbench.verify(right, problem=SMALL)
    assert capsys.readouterr().out == result.text and "1 variant, 1 cases, 0 failed" in result.text


def test_an_exception_is_a_failure_of_its_problem_alone():
    @attnbench.variant(features=["causal"], finite=True)
    def raises(call):
        if call.key_length > 20:
            raise RuntimeError("no room\nfor so many keys")
        return attention(call)[0]

    result = verified(raises, [SMALL, "causal/B:1/H:1/D:4/T:5"])
    assert len(result.failures) == 1
    assert "RuntimeError: no room for so many keys (test_commands.py:" in result.failures[0]


def test_an_exit_is_a_failure_too():
    @attnbench.variant(features=["causal"], finite=True)
    def exits(call):
        raise SystemExit(0)

    assert "SystemExit" in verified(exits).failures[0]


@pytest.mark.parametrize(
    "returned, words",
    [
        (lambda call: attention(call)[0][..., :-1], r"output has shape [2, 4, 33, 15], not [2, 4, 33, 16]"),
        (lambda call: attention(call)[0].astype(np.float64), "output is float64, not float32"),
        (lambda call: "output", "output is of type str, not an array"),
        (lambda call: None, "elements of output are not written"),
        (lambda call: call.v * np.float32(np.nan), "is nan"),
    ],
)
def test_what_is_no_output_fails(returned, words):
    mine = attnbench.variant(returned, name="mine", features=["causal"])
    assert words in verified(mine).failures[0]


def test_an_output_may_be_written_in_place():
    @attnbench.variant(features=["causal"], finite=True)
    def in_place(call):
        call.output[...] = attention(call)[0]

    assert verified(in_place, [SMALL, SMALL + "/layout:padded"])


def test_a_hidden_nan_is_seen_unless_numbers_are_said_to_be_finite():
    careless = attnbench.variant(right.run, name="careless", features=["causal"])
    assert "with NaN in keys that it cannot see" in verified(careless).failures[0]
    assert verified(right)


def test_changed_inputs_and_overruns_are_seen():
    @attnbench.variant(features=["causal"], finite=True)
    def changes_its_inputs(call):
        output = attention(call)[0]
        call.k[...] = 0
        return output

    @attnbench.variant(features=["causal"], finite=True)
    def overruns(call):
        ctypes.memset(call.v.ctypes.data + call.v.nbytes, 1, 8)
        return attention(call)[0]

    @attnbench.variant(features=["causal", "mask"], finite=True)
    def changes_its_mask(call):
        output = attention(call)[0]
        if call.mask is not None:
            call.mask[...] = True
        return output

    assert "changes its inputs" in verified(changes_its_inputs).failures[0]
    assert "changes its inputs" in verified(changes_its_mask, "causal/D:16/T:9/mask:q").failures[0]
    assert "writes beyond the values" in verified(overruns).failures[0]


def test_a_function_that_remembers_its_answers_is_seen():
    answers = {}

    @attnbench.variant(features=["causal"], finite=True)
    def remembers(call):
        return answers.setdefault((call.q.shape, call.problem.right, call.scale), attention(call)[0])

    assert not verified(remembers, "full/B:1/H:2/D:8/T:20")


def test_a_function_that_never_ends_is_interrupted():
    @attnbench.variant(features=["causal"], finite=True)
    def endless(call):
        while True:
            time.sleep(0.01)

    start = time.monotonic()
    result = verified(endless, run_limit=1)
    assert "did not end within 1 s" in result.failures[0] and time.monotonic() - start < 20


def test_what_a_function_does_not_take_is_not_posed():
    @attnbench.variant(features=["causal"], finite=True, accepts=lambda problem: problem.head_dim == 16 or "takes D 16 alone")
    def particular(call):
        assert call.head_dim == 16 and call.groups == 1 and call.causal or call.right is None
        return attention(call)[0]

    assert verified(particular)
    with pytest.raises(ValueError, match="^particular cannot solve this problem: it takes D 16 alone$"):
        verified(particular, "causal/D:8/T:9")
    with pytest.raises(ValueError, match="takes no band but a causal one"):
        verified(particular, "window:4/D:16/T:9")
    with pytest.raises(ValueError, match="takes as many key/value heads as query heads"):
        verified(particular, "causal/H:4/Hkv:2/D:16/T:9")
    with pytest.raises(ValueError, match="takes no mask"):
        verified(particular, "causal/D:16/T:9/mask:q")


def test_several_functions_run_together_and_beside_the_programs_own():
    result = attnbench.verify(right, no_scale, against=["naive"], problem=SMALL, quiet=True)
    assert result.status == 1
    lines = {line.split()[0]: line for line in result.text.splitlines() if line}
    assert "passed" in lines["right"] and "FAILED" in lines["no_scale"] and "passed" in lines["naive"]


def test_a_function_may_have_a_name_of_the_programs_own():
    assert verified(attnbench.variant(right.run, name="naive", features=right.features, finite=True))


def test_bench_gives_the_report_as_json_by_the_clock_around_the_function():
    @attnbench.variant()
    def slow(call):
        time.sleep(0.02)
        return attention(call)[0]

    options = dict(lengths="16,32", heads=1, benchmark_dry_run=True, benchmark_time_unit="ms")
    result = attnbench.bench(slow, against=["naive"], quiet=True, **options)
    assert result.passed
    times = {row["run_name"]: row["real_time"] for row in result.json["benchmarks"] if row.get("run_type") == "iteration"}
    assert set(times) == {f"{name}/full/B:1/H:1/Hkv:1/D:64/T:{T}" for name in ("slow", "naive") for T in (16, 32)}
    assert all(20 <= taken < 2000 for name, taken in times.items() if name.startswith("slow/"))


def test_a_file_of_ones_own_is_written(tmp_path):
    file = tmp_path / "mine.json"
    options = dict(lengths="16", heads=1, quiet=True)
    for name in ("benchmark_out", "benchmark-out"):
        file.unlink(missing_ok=True)
        result = attnbench.bench(right, benchmark_dry_run=True, **{name: str(file)}, **options)
        assert result.passed and result.json == json.loads(file.read_text())
    kept = file.read_text()
    assert attnbench.bench(right, benchmark_list_tests=True, benchmark_out=str(file), **options).json is None
    assert file.read_text() == kept
    with pytest.raises(ValueError, match="benchmark_out_format is json alone here"):
        attnbench.bench(right, benchmark_out=str(file), benchmark_out_format="csv", **options)


def test_false_takes_away_what_is_so_without_it():
    options = dict(lengths="16", heads=1, repetitions=3, min_time="0.001s", quiet=True)
    usual, whole = (attnbench.bench(right, **options, **brief).text.count("\nright/") for brief in ({}, {"brief": False}))
    assert whole >= usual + 3
    unsaid = {name: False for name in ("lse", "sink", "weights", "mask", "bias", "causal", "raw", "seed")}
    assert attnbench.bench(right, lengths="16", heads=1, benchmark_dry_run=True, quiet=True, **unsaid).passed
    assert not Path("false").exists() and verified(right, fail_fast=False)


def test_an_array_that_is_kept_can_be_read_afterwards():
    kept = []

    @attnbench.variant(finite=True)
    def keeps(call):
        kept.append(call.q)
        return attention(call)[0]

    assert verified(keeps, "full/B:1/H:1/D:4/T:5")
    drawn = attnbench.inputs("full/B:1/H:1/D:4/T:5").q
    assert any(np.array_equal(array, drawn) for array in kept)


def test_features_and_answers_may_be_of_any_kind():
    assert attnbench.variant(attention, features=(word for word in ("gqa", "lse"))).features == ["gqa", "lse"]
    assert attnbench.problems(count=3, features=iter(["causal"])) == attnbench.problems(count=3, features=["causal"])
    assert len(attnbench.problems(count=3, accepts=lambda asked: np.bool_(True))) == 3
    assert not attnbench.problems(count=3, accepts=lambda asked: np.bool_(False))


def test_ctrl_c_ends_both():
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import conftest, attnbench, kernels\n"
        "result = attnbench.fuzz(kernels.right, seconds=60)\n"
        "print(result.interrupted, result.text)\n"
    )
    child = subprocess.Popen([sys.executable, "-B", "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline().startswith("fuzz with seed ")  # from there on it listens
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=30)
    assert child.returncode == 0 and "\nTrue " in said and "interrupted: " in said


def test_a_function_is_run_outside_of_the_main_thread():
    import threading

    results = []
    thread = threading.Thread(target=lambda: results.append(verified(right)))
    thread.start()
    thread.join(60)
    assert results and results[0].passed


def test_nothing_is_left_open():
    before = set(os.listdir("/proc/self/fd"))
    verified(right)
    assert set(os.listdir("/proc/self/fd")) == before


BAD = [
    (lambda: attnbench.verify(), "verify takes a variant at least"),
    (lambda: attnbench.verify(attention), "a variant is what @attnbench.variant made, not function"),
    (lambda: attnbench.verify(right, problem="causal/Z:3"), "unknown part 'Z:3'"),
    (lambda: attnbench.verify(right, right, problem=SMALL), "two variants have the same name"),
    (lambda: attnbench.verify(right, count="many"), "--count"),
    (lambda: attnbench.verify(right, problem=SMALL + "/fill:nonfinite"), "takes finite numbers alone"),
    (lambda: attnbench.bench(right, against="fused"), r"against is a list of names, such as \['fused'\]"),
    (lambda: attnbench.bench(right, against=["nobody"]), "nobody"),
    (lambda: attnbench.bench(right, lengthes="16"), "lengthes"),
    (lambda: attnbench.variant(lambda call: None), "a variant's name is one word"),
    (lambda: attnbench.variant(3), "a variant is a function of a call, not int"),
    (lambda: attnbench.variant(attention, features=["flash"]), "unknown feature 'flash'"),
    (lambda: attnbench.variant(attention, dtypes=[]), "takes one type at least"),
    (lambda: attnbench.variant(attention, framework="mxnet"), "a framework is numpy"),
    (lambda: attnbench.variant(attention, computes="sigmoid"), "computes is softmax or linear"),
    (lambda: attnbench.run(right, "causal/H:1/D:8/T:9/bf16"), "right takes no bfloat16"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input_is_one_sentence(number):
    call, words = BAD[number]
    with pytest.raises(ValueError, match=words) as raised:
        call()
    assert "\n" not in str(raised.value)
