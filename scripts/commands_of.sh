#!/usr/bin/env bash
# The commands that make would run for all of these targets by a Makefile, whatever is there already:
#
#   scripts/commands_of.sh MAKEFILE [VARIABLE=VALUE] TARGET...
#
# Of a make of its own: the one that asks has a SINCE, perhaps, and flags that are not asked for.
exec env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -f "$1" -n -B V=1 SINCE= "${@:2}" 2>/dev/null
