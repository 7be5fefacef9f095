#!/usr/bin/env bash
# Holds the includes to the map of CONTRIBUTING.md: no file of harness/ includes from a room above its own, variants/
# and reference/ know nothing beyond themselves and attention.h (harness/ also device.h and team.h), and no two files include each
# other in a circle, where a source and its header count as one. With a build folder, no two call each other in a circle either.
# `scripts/rooms.sh [ROOT [BUILD]]`; status 1, with a line for each breach.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 2
rooms=(base machine problem run verify measure report gate)

# Sets height, of a room; the door (harness/ itself) stands above all.
measure_height() { # path below harness/
  local n
  for n in "${!rooms[@]}"; do
    case $1 in "${rooms[n]}"/*) height=$n; return ;; esac
  done
  case $1 in */*) height=unknown ;; *) height=${#rooms[@]} ;; esac
}

# "file included" for each include with quotes, both from the root. There are a thousand: none is worth a process.
edges() {
  grep -r --include='*.[ch]' '^ *# *include "' harness reference variants | sed 's/^\([^:]*\):[^"]*"\([^"]*\)".*/\1 \2/' |
    sort | while read -r file name; do
    for found in "${file%/*}/$name" "harness/$name" "$name"; do
      [ -f "$found" ] && break
    done
    [ -f "$found" ] || { echo "rooms: $file includes $name, which is nowhere" >&2; continue; }
    while [[ $found == */../* ]]; do
      before=${found%%/../*}
      case $before in */*) before=${before%/*}/ ;; *) before= ;; esac
      found=$before${found#*/../}
    done
    echo "$file $found"
  done
}

breaches=0
breach() { echo "rooms: $*" >&2; breaches=$((breaches + 1)); }

all=$(edges)
while read -r file found; do
  case $file in
  harness/*)
    case $found in variants/attention.h | variants/functions.h | variants/layer_weights.h | variants/linear_states.h | variants/visibility.h | variants/position.h | variants/dropout.h | variants/device.h | variants/team.h | reference/*) continue ;; variants/*) breach "$file includes $found: harness/ knows variants only through attention.h, device.h and team.h" ;; esac
    case $found in harness/*) ;; *) continue ;; esac
    measure_height "${file#harness/}"; own=$height
    measure_height "${found#harness/}"; other=$height
    if [ "$own" = unknown ]; then breach "$file lies in no room that CONTRIBUTING.md knows"
    elif [ "$other" = unknown ] || [ "$other" -gt "$own" ]; then breach "$file includes $found, from a room above its own"; fi ;;
  variants/*) case $found in variants/*) ;; *) breach "$file includes $found: variants/ knows only itself" ;; esac ;;
  reference/*) case $found in reference/* | variants/attention.h) ;; *) breach "$file includes $found: reference/ knows only attention.h" ;; esac ;;
  esac
done <<<"$all"

# Names what stands in a circle among "node node" lines.
circle() {
  awk '$1 != $2' | sort -u | tsort 2>&1 >/dev/null | sed 's/^tsort: //; /input contains a loop/d' | tr '\n' ' '
}

# A source and its header are one node.
found=$(sed 's/\.[ch]\b//g' <<<"$all" | circle)
[ -z "$found" ] || breach "files include each other in a circle: $found"

# "object object": the first needs a symbol that the second defines. attn_team_members is a plugin's answer to the runtime that it is
# linked with, whoever wrote the plugin.
calls() {
  (cd "$1" && find harness reference variants -name '*.o' -exec nm -g -A {} +) | awk '
    $NF == "attn_team_members" { next }
    { object = $1; sub(/[.]o:.*/, "", object) }
    $(NF - 1) == "U" { need[object " " $NF]; next }
    { home[$NF] = object }
    END { for (pair in need) { split(pair, of, " "); if (of[2] in home) print of[1], home[of[2]] } }'
}

if [ -n "${2:-}" ]; then
  found=$(calls "$2" | circle)
  [ -z "$found" ] || breach "files call each other in a circle: $found"
fi
[ "$breaches" -eq 0 ]
