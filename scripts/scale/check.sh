#!/usr/bin/env bash
# Whether the real runs that a simulation was held to are to be believed: `scripts/scale/check.sh FOLDER`, of what scale.sh has left there.
# Two ranks have a core each, and what simulates them leaves nothing out that takes 30 %: if most rounds are beyond that, something else ran meanwhile. More
# ranks than cores take turns, which the simulation knows nothing of. Status 1, and a sentence that names the points.
set -u
[ -s "$1/validation.txt" ] || { echo "scale: $1/validation.txt is missing: scale.sh writes it" >&2; exit 2; }
awk -v folder="$1" '$2 == 2 && $8 == "%" { points++; if ($7 > 30 || $7 < -30) said = said (said ? ", " : "") $1 " (" $7 " %)" }
  END {
    if (!points) { print "scale: " folder "/validation.txt has no point of two ranks"; exit 2 }
    if (said == "") exit 0
    print "scale: the machine was disturbed, or the model is wrong: with two ranks, simulated and run are more than 30 % apart for " said \
      "; the results are kept in " folder
    exit 1 }' "$1/validation.txt" >&2
