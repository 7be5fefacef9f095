#!/usr/bin/env bash
# Whether make would run the same commands for these targets with the Makefile of another commit (status 0): then what they
# say is that of the sources alone.
#
#   scripts/same_commands.sh COMMIT [VARIABLE=VALUE] TARGET...
set -u
cd "$(dirname "$0")/.." || exit 2
theirs=$(mktemp) || exit 2
trap 'rm -f "$theirs"' EXIT
git show "$1:Makefile" >"$theirs" 2>/dev/null || exit 1

# Of a make of its own: the one that asks has a SINCE, perhaps, and flags that are not asked for.
commands() { # makefile, targets...
  env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -f "$1" -n -B V=1 SINCE= "${@:2}" 2>/dev/null
}
ours=$(commands Makefile "${@:2}") && [ "$ours" = "$(commands "$theirs" "${@:2}")" ]
