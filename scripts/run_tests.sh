#!/bin/sh
# Runs test executables one after the other and sums up: one line for each, all that a failing one said,
# and last "N passed, N failed". Status 1 when any test failed. A program that crashes, hangs for
# ATTN_TEST_SECONDS or ends without a word is a failed test.
# The tests speak TAP, cmocka's machine-readable form: "ok 3 - name" or "not ok 3 - name"; a skipped one
# ("not ok 3 # SKIP name") counts for neither.
set -u
passed=0
failed=0
# Threads that wait must not spin while others want the processor; OpenMP reads this when it is loaded.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
output=$(mktemp) || exit 2
trap 'rm -f "$output"' EXIT
trap 'exit 130' INT TERM

for test; do
  started=$(date +%s)
  CMOCKA_MESSAGE_OUTPUT=TAP timeout "${ATTN_TEST_SECONDS:-600}" ${ATTN_TEST_WRAPPER:-} "$test" >"$output" 2>&1
  status=$?
  ok=$(grep -c '^[[:space:]]*ok [0-9]' "$output")
  bad=$(grep '^[[:space:]]*not ok [0-9]' "$output" | grep -vc '# SKIP')
  if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
  if ! grep -q '^[[:space:]]*\(not \)*ok [0-9]' "$output"; then bad=1; fi
  printf '%-32s %3d passed, %d failed  %ds\n' "$(basename "$test")" "$ok" "$bad" $(($(date +%s) - started))
  if [ "$bad" -gt 0 ]; then
    grep -v '^[[:space:]]*ok [0-9]' "$output" | tail -n 200 | sed 's/^/    /'
    [ "$status" -eq 124 ] && echo "    did not end within ${ATTN_TEST_SECONDS:-600} s"
    echo "    ended with status $status; to run it alone: $test"
  fi
  passed=$((passed + ok))
  failed=$((failed + bad))
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
