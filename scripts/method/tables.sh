#!/usr/bin/env bash
# Draws the tables of docs/method.md anew: scripts/method/tables.sh build/scripts/method/rates docs/method.md [DRAWS].
# They stand between two marks; everything else of the page stays as it is.
set -u
rates=$1 page=$2 draws=${3:-2000}
grep -q '^<!-- rates -->$' "$page" && grep -q '^<!-- end of rates -->$' "$page" || {
  echo "method: $page has no place for the tables: the lines <!-- rates --> and <!-- end of rates -->" >&2
  exit 2
}
tables=$("$rates" "$draws") || exit
TABLES=$tables awk '
  /^<!-- end of rates -->$/ { inside = 0 }
  !inside { print }
  /^<!-- rates -->$/ { inside = 1; print ""; print ENVIRON["TABLES"]; print "" }' "$page" >"$page.new" &&
  mv "$page.new" "$page" && echo "method: the tables of $page are drawn anew, $draws sweeps a kind"
