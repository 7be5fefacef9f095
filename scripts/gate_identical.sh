#!/usr/bin/env bash
# Prints the variants whose object code is the same in two builds: gate_identical.sh BASE_BUILD HEAD_BUILD.
# A variant's code is the object that defines attn_NAME and every object that it needs, by their undefined
# symbols; debugging information does not count.
set -u
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# "O object hash", "D object symbol" it defines, "U object symbol" it needs, for each object of a build.
describe() { # build folder, name
  local short
  find "$1/variants" -name '*.o' | sort | while IFS= read -r object; do
    short=${object#"$1"/}
    objcopy -g "$object" "$work/stripped.o" || return 1
    echo "O $short $(sha256sum <"$work/stripped.o" | cut -c 1-64)"
  done && (cd "$1" && find variants -name '*.o' -exec nm -g -A {} + | sort) | awk '
    { object = $1; sub(/:.*/, "", object); print $(NF - 1) == "U" ? "U" : "D", object, $NF }'
}

# "variant hash hash ...": the hashes of all objects that it needs, in order.
closures() {
  awk '$1 == "O" { hash[$2] = $3 }
    $1 == "D" { home[$3] = $2 }
    $1 == "U" { needs[$2] = needs[$2] " " $3 }
    function visit(object, symbols, count, n) {
      if (object == "" || seen[object]) return
      seen[object] = 1
      count = split(needs[object], symbols, " ")
      for (n = 1; n <= count; n++) if (symbols[n] in home) visit(home[symbols[n]])
    }
    END {
      for (symbol in home) {
        if (symbol !~ /^attn_[a-z0-9_]+$/ || home[symbol] !~ /variants\/[a-z0-9_]+\.o$/) continue
        split("", seen)
        visit(home[symbol])
        for (object in seen) if (seen[object]) print substr(symbol, 6), object, hash[object]
      }
    }' | sort
}

describe "$1" >"$work/base" && describe "$2" >"$work/head" || exit 0
closures <"$work/base" >"$work/base.code"
closures <"$work/head" >"$work/head.code"
identical=
for variant in $(cut -d ' ' -f 1 "$work/head.code" | uniq); do
  if cmp -s <(grep "^$variant " "$work/base.code") <(grep "^$variant " "$work/head.code"); then
    identical="$identical${identical:+ }$variant"
  fi
done
echo "$identical"
