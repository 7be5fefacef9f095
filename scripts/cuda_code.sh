#!/usr/bin/env bash
# What a compiler made of kernels for GPUs: a line for each kernel of each GPU,
#
#   sm_90a cuda_fused/solve_rows<64,64> registers 168 spilled 0 shared 1024 instructions 2936
#
# from what ptxas said (FILE.ptxas) and the sections of its binaries (FILE.sections), which the Makefile leaves beside
# the PTX. An instruction takes 16 bytes, on all GPUs since sm_70; the end of a kernel is filled with some that
# do nothing, up to a multiple of 8. Shared memory that a launch asks for is not in it. The variant is named after
# its file.
#
#   scripts/cuda_code.sh FILE.ptxas ...
set -eu -o pipefail

for said in "$@"; do
  variant=cuda_$(basename "$said" .ptxas)
  awk -v variant="$variant" '
    /Compiling entry function/ { split($0, quoted, "\047"); kernel = quoted[2]; gpu = quoted[4]; of[gpu " " kernel] = 1 }
    /bytes spill stores/ { spilled[gpu " " kernel] = $5 + $9 }
    /Used [0-9]+ registers/ {
      for (n = 1; n < NF; n++) if ($n == "Used") registers[gpu " " kernel] = $(n + 1)
      if (match($0, /[0-9]+ bytes smem/)) shared[gpu " " kernel] = substr($0, RSTART, RLENGTH) + 0
    }
    /^cubin / { gpu = $2 }
    / [.]text[.]/ {
      for (n = 1; n < NF; n++)
        if ($n ~ /^[.]text[.]/) { kernel = substr($n, 7); bytes[gpu " " kernel] = $(n + 4) }
    }
    END {
      for (key in of) {
        split(key, part, " ")
        if (!(key in registers) || !(key in bytes)) { print "no numbers for " key >"/dev/stderr"; exit 1 }
        print part[1], variant "/" part[2], registers[key], spilled[key] + 0, shared[key] + 0, bytes[key]
      }
    }' "$said" "${said%.ptxas}.sections" |
    # Anonymous namespaces have the hash of a path in their names; what follows a kernel'"'"'s name are its arguments.
    c++filt | sed -E 's/void //; s/\(anonymous namespace\):://g; s/\(attn_type\)//g; s/\([^()]*\) ([0-9]+ [0-9]+ [0-9]+ [0-9a-f]+)$/ \1/; s/, /,/g; s/> >/>>/g' |
    while read -r gpu kernel registers spilled shared bytes; do
      echo "$gpu $kernel registers $registers spilled $spilled shared $shared instructions $((16#$bytes / 16))"
    done | sort
done
