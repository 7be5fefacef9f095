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

ours=$(scripts/commands_of.sh Makefile "${@:2}") && [ "$ours" = "$(scripts/commands_of.sh "$theirs" "${@:2}")" ]
