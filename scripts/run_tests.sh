#!/bin/sh
# Runs test executables, one more at a time than there are processors, for some wait (ATTN_TEST_JOBS), and sums up: one line for
# each, all that a failing one said, at the end once more the names of what failed, and last "N passed, N failed". Status 1 when
# any test failed. A program that crashes, hangs for ATTN_TEST_SECONDS or ends without a word is a failed test.
# The tests speak TAP, cmocka's machine-readable form: "ok 3 - name" or "not ok 3 - name"; a skipped one
# ("not ok 3 # SKIP name") counts for neither.
set -u
seconds=${ATTN_TEST_SECONDS:-600}

# run_one TEST FOLDER: prints its line and leaves "passed failed" in the folder.
run_one() {
  started=$(date +%s)
  output=$2/$(basename "$1")
  CMOCKA_MESSAGE_OUTPUT=TAP timeout "$seconds" ${ATTN_TEST_WRAPPER:-} "$1" >"$output.said" 2>&1
  status=$?
  ok=$(grep -c '^[[:space:]]*ok [0-9]' "$output.said")
  # Not at the beginning of a line where cmocka has cut what the test said before, with the end of that line.
  grep -o 'not ok [0-9].*' "$output.said" | grep -v '# SKIP' |
    sed "s/^not ok [0-9]* *-* */failed: $(basename "$1"): /" >"$output.failed"
  bad=$(grep -c . "$output.failed")
  if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
  if ! grep -q 'ok [0-9]' "$output.said"; then bad=1; fi
  {
    printf '%-32s %3d passed, %d failed  %ds\n' "$(basename "$1")" "$ok" "$bad" $(($(date +%s) - started))
    if [ "$bad" -gt 0 ]; then
      [ -s "$output.failed" ] || echo "failed: $(basename "$1"), with status $status" >"$output.failed"
      grep -v '^[[:space:]]*ok [0-9]' "$output.said" | tail -n 200 | sed 's/^/    /'
      [ "$status" -eq 124 ] && echo "    did not end within $seconds s"
      echo "    ended with status $status; to run it alone: $1"
    fi
  } >"$output.report"
  cat "$output.report"
  echo "$ok $bad" >"$output.counts"
}

if [ "${1:-}" = --one ]; then
  run_one "$3" "$2"
  exit 0
fi

# Threads that wait must not spin while others want the processor; OpenMP reads this when it is loaded.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

# From the end of the alphabet, where those of the variants are, which take longest.
printf '%s\n' "$@" | grep . | sort -r | xargs -r -n 1 -P "${ATTN_TEST_JOBS:-$(($(nproc) + 1))}" "$0" --one "$folder"
cat "$folder"/*.failed 2>/dev/null
cat "$folder"/*.counts 2>/dev/null | awk -v tests=$# '
  { passed += $1; failed += $2 }
  END {
    failed += tests - NR # that left no counts
    printf "%d passed, %d failed\n", passed, failed
    exit failed > 0 || passed == 0
  }'
