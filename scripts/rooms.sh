#!/usr/bin/env bash
# Holds the includes to the map of CONTRIBUTING.md: no file of harness/ includes from a room above its own, variants/
# and reference/ know nothing beyond themselves and attention.h (harness/ also device.h and team.h), and no two files include each
# other in a circle, where a source and its header count as one. With a build folder, no two call each other in a circle either.
# `scripts/rooms.sh [ROOT [BUILD]]`; status 1, with a line for each breach.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 2
rooms=(base machine problem run verify measure report gate)

# The height of a room; the door (harness/ itself) stands above all.
height() { # path below harness/
  local n
  for n in "${!rooms[@]}"; do
    case $1 in "${rooms[n]}"/*) echo "$n"; return ;; esac
  done
  case $1 in */*) echo unknown ;; *) echo "${#rooms[@]}" ;; esac
}

# "file included" for each include with quotes, both from the root.
edges() {
  find harness reference variants -name '*.[ch]' | sort | while IFS= read -r file; do
    sed -n 's/^ *# *include "\([^"]*\)".*/\1/p' "$file" | while IFS= read -r name; do
      for found in "$(dirname "$file")/$name" "harness/$name" "$name"; do
        [ -f "$found" ] && break
      done
      [ -f "$found" ] || { echo "rooms: $file includes $name, which is nowhere" >&2; continue; }
      echo "$file $(realpath --relative-to=. "$found")"
    done
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
    own=$(height "${file#harness/}") other=$(height "${found#harness/}")
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
  local object
  (cd "$1" && find harness reference variants -name '*.o') | while IFS= read -r object; do
    nm -g "$1/$object" | awk -v o="${object%.o}" '$NF == "attn_team_members" { next } $(NF - 1) == "U" { print "U", o, $NF; next } { print "D", o, $NF }'
  done | awk '$1 == "D" { home[$3] = $2 } $1 == "U" { need[$2 " " $3] }
    END { for (pair in need) { split(pair, of, " "); if (of[2] in home) print of[1], home[of[2]] } }'
}

if [ -n "${2:-}" ]; then
  found=$(calls "$2" | circle)
  [ -z "$found" ] || breach "files call each other in a circle: $found"
fi
[ "$breaches" -eq 0 ]
