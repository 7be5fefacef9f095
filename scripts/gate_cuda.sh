#!/usr/bin/env bash
# What the compiler makes of kernels for GPUs, the head's and the base's: prints the options that tell `attnbench gate` of it, each
# on a line.
#
#   scripts/gate_cuda.sh BUILD FOLDER     FOLDER is the gate's, with the base in base/source and base/build
#
# To compile all takes minutes, so that PTX is made of those alone whose text may have changed, and code of those alone whose PTX
# has. Both sides are compiled by the same nvcc with the head's flags, by which equal text gives equal PTX, and that equal code.
#
# Status 1: those of the head do not compile. FOLDER/cuda.log says why, and what has been compiled.
set -u
build=$1 folder=$2
source=$folder/base/source
log=$folder/cuda.log
exec 3>"$log"

no_code() {
  printf '%s\n' --no-code "$1"
  exit 0
}

path_of() { ls "$1/variants/cuda/$2.cu" "$1/variants/cuda/runtime/$2.cu" 2>/dev/null; } # root, name
names_of() { find "$1/variants/cuda" -name '*.cu' -printf '%f\n' | sed 's/[.]cu$//'; }  # root

headers_of() { (cd "$1" && cat variants/*.h variants/cuda/*.h variants/cuda/runtime/*.h 2>/dev/null); } # root

make_each() { # what, root, build folder as make sees it, options of make...
  local targets=() name
  for name in "${changed[@]}"; do
    [ -z "$(path_of "$2" "$name")" ] || targets+=("$3/ptx/$name.$1")
  done
  [ ${#targets[@]} = 0 ] || make --no-print-directory "-j$(nproc)" BUILD="$3" "${targets[@]}" "${@:4}" >&3 2>&1
}

make_both() { # what
  make_each "$1" . "$build" || exit 1
  make_each "$1" "$source" ../build -C "$source" -f "$PWD/Makefile" || no_code "the base's kernels for GPUs do not compile ($log)"
}

list_code() { # folder of what ptxas said
  local name said=()
  for name in "${changed[@]}"; do
    [ ! -f "$1/$name.ptxas" ] || said+=("$1/$name.ptxas")
  done
  scripts/cuda_code.sh "${said[@]}" 2>&3
}

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
[ -n "$nvcc" ] && command -v c++filt >/dev/null || no_code "nvcc is not installed"
[ -d "$source/variants/cuda" ] || no_code "the base has no kernels for GPUs"

changed=() same_headers=
if cmp -s <(headers_of .) <(headers_of "$source"); then same_headers=yes; fi
for name in $({ names_of .; names_of "$source"; } | sort -u); do
  [ -n "$same_headers" ] && cmp -s "$(path_of . "$name")" "$(path_of "$source" "$name")" || changed+=("$name")
done
[ ${#changed[@]} -gt 0 ] || no_code "the text of each kernel for GPUs is the base's, and so is its code"

echo "gate: compiling for GPUs: ${changed[*]}" >&2
make_both ptx
compiled=("${changed[@]}")
changed=()
for name in "${compiled[@]}"; do
  cmp -s "$build/ptx/$name.ptx" "$folder/base/build/ptx/$name.ptx" || changed+=("$name")
done
[ ${#changed[@]} -gt 0 ] || no_code "the PTX of each kernel for GPUs is the base's, and so is its code"

echo "gate: their PTX differs: ${changed[*]}" >&2
make_both ptxas
list_code "$build/ptx" >"$folder/head-code.txt" || exit 1
list_code "$folder/base/build/ptx" >"$folder/base-code.txt" || no_code "what is said of the base's kernels for GPUs cannot be read ($log)"
printf '%s\n' --head-code "$folder/head-code.txt" --base-code "$folder/base-code.txt"
