#!/usr/bin/env bash
# Writes the tables of a page anew: scripts/tables.sh docs/method.md rates build/scripts/method/rates 2000. The program
# prints them; they stand between the marks <!-- rates --> and <!-- end of rates -->; everything else stays as it is.
set -u
page=$1 mark=$2
shift 2
grep -q "^<!-- $mark -->\$" "$page" && grep -q "^<!-- end of $mark -->\$" "$page" || {
  echo "tables: $page has no place for them: the lines <!-- $mark --> and <!-- end of $mark -->" >&2
  exit 2
}
tables=$("$@") || exit
TABLES=$tables MARK=$mark awk '
  $0 == "<!-- end of " ENVIRON["MARK"] " -->" { inside = 0 }
  !inside { print }
  $0 == "<!-- " ENVIRON["MARK"] " -->" { inside = 1; print ""; print ENVIRON["TABLES"]; print "" }' "$page" >"$page.new" &&
  mv "$page.new" "$page" && echo "tables: those of $page are written anew: $*"
