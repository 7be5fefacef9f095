#!/bin/sh
# A researcher who compares decoding: one query against longer and longer caches, heads that share keys and values, threads that keep
# to their processors; then a table without a name taken apart, what to cite it with, and which of rate and bandwidth limits.
# `tests/walks/researcher.sh PROGRAM FOLDER`, FOLDER empty; status 77 without python3, with which the tables are read. Quick settings:
# what is looked at is the way, not the numbers.
set -eu
program=$1 folder=$2
command -v python3 >/dev/null || exit 77
cd "$folder"

"$program" bench --variant fused,grouped_query --query-length 1 --heads 4 --kv-heads 2 --lengths 64:512 --causal --pin --threads 1 \
  --min-time 0.002 --repetitions 6 --instructions=false --out run --format svg --raw repetitions.csv >said 2>notes

grep -q 'Growth: exponent of the swept length' said
grep -q 'GB/s' said
grep -q '[0-9]%\*' said # what limits

python3 - <<'PYTHON'
import csv
import json

rows = list(csv.DictReader(open("run/results.csv")))
medians = [row for row in rows if row["aggregate_name"] == "median"]
chosen = [row for row in medians if row["variant"] == "fused" and row["Tk"] == "256"]
assert len(medians) == 8 and len(chosen) == 1, (len(medians), len(chosen))
row = chosen[0]
expected = {"function": "softmax", "band": "causal_bottom_right", "B": "1", "H": "4", "Hkv": "2", "D": "64", "Dv": "64"}
expected |= {"Tq": "1", "type": "f32", "layout": "bhtd", "seed": "1", "threads": "1"}
assert all(row[key] == value for key, value in expected.items()), row
low, time, high = (float(row[key]) for key in ("real_time_low", "real_time", "real_time_high"))
assert 0 < low <= time <= high
assert abs(float(row["bytes_per_second"]) - float(row["bytes"]) / (time * 1e-9)) < 0.01 * float(row["bytes_per_second"])
assert row["read_level"].startswith("read ") and row["limited_by"] in (row["read_level"], "multiply-adds")
shares = {row["read_level"]: float(row["read_fraction"]), "multiply-adds": float(row["peak_fraction"])}
assert row["limited_by"] == max(shares, key=lambda name: shares[name]), row

# What it is cited with.
cited = ["library_version", "attnbench_commit", "command_line", "affinity", "openmp_threads", "openmp_settings", "governor", "turbo"]
cited += ["cpu_family", "cpu_model", "hypervisor", "compiler", "flags", "libc", "blas", "date", "host_name", "kernel"]
context = json.load(open("run/results.json"))["context"]
for key in cited:
    assert row[key] and str(context[key]) == row[key], key
assert "--query-length 1" in row["command_line"] and "each thread to one processor" in row["pinned"]
assert "OMP_PROC_BIND=close" in row["openmp_settings"] and row["affinity"].isdigit()

# The single repetitions, in a file of their own.
single = list(csv.DictReader(open("repetitions.csv")))
assert len(single) == 8 * 6 and all(row["aggregate_name"] == "" for row in single)
assert {row["repetition"] for row in single} == set("012345")
assert not [row for row in rows if row["repetition"]]

# Time grows in the keys as declared there.
growths = [row for row in json.load(open("run/results.json"))["benchmarks"] if row.get("aggregate_name") == "BigO"]
assert [(row["swept"], row["time_declared"]) for row in growths] == [("Tk", 1)] * 2, growths
assert all("/Tq:1" in row["run_name"] for row in growths)
PYTHON

command -v gnuplot >/dev/null || exit 0
grep -q 'Time against key length, Tq = 1' run/time.svg
grep -q 'key length Tk (tokens), Tq = 1' run/time.svg
grep -q 'Roofline' run/roofline.svg
