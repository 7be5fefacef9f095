#!/usr/bin/env bash
# The CI's short form of `make test-python`: the module's own tests, and a few problems for each library that is there, within three
# minutes. `scripts/python_test.sh [BUILD]`. NumPy, pytest and ONNX Runtime, some 60 MB, are installed where that takes no longer than a minute; PyTorch,
# JAX and Triton are hundreds, and are judged where they are already. What the network does not give in time is said and left
# out, and so is a library whose problems take too long: neither is a failure. Ends with "N passed, N failed", the tests and a library each. SETUP=no
# installs nothing.
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:-build}
environment=$build/peers/venv
python=$environment/bin/python
seconds_to_install=60 seconds_in_all=170
passed=0 failed=0

# Whether the environment has these modules.
has() {
  [ -x "$python" ] && "$python" -c 'import importlib.util, sys
sys.exit(any(importlib.util.find_spec(name) is None for name in sys.argv[1:]))' "$@" 2>/dev/null
}

if ! has numpy pytest onnx onnxruntime; then
  said=$(PIP_RETRIES=0 PIP_DEFAULT_TIMEOUT=10 timeout -k 5 $seconds_to_install scripts/peers/setup.sh "$environment" onnxruntime pytest 2>&1) ||
    echo "pytest and ONNX Runtime could not be installed within $seconds_to_install s: ${said##*$'\n'}"
fi

# judge LIBRARY MODULE...: a few problems of each type that it takes.
judge() {
  local library=$1 left=$((seconds_in_all - SECONDS)) status
  shift
  if ! has numpy "$@"; then
    echo "$library is left out: it is not installed in $environment (make test-python installs it)"
    return
  fi
  if [ $left -lt 5 ]; then
    echo "$library is left out: there is no time left for it"
    return
  fi
  ATTNBENCH_HOME=$PWD timeout -k 5 $left "$python" bindings/python/real/run.py --libraries "$library" --count 4
  status=$?
  case $status in
  0) passed=$((passed + 1)) ;;
  124 | 137) echo "$library is left out: its problems took longer than $left s" ;;
  *) failed=$((failed + 1)) ;;
  esac
}

# make test leaves these out where the system's Python has no NumPy or no pytest.
if has numpy pytest; then
  if ATTNBENCH_HOME=$(realpath "$build") "$python" -B -m pytest -q -p no:cacheprovider bindings/python/tests; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
else
  echo "the module's own tests are left out: $environment has no NumPy or no pytest"
fi
judge "ONNX Runtime" onnx onnxruntime
judge PyTorch torch
judge JAX jax
judge Triton torch triton
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
