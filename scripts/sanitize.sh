#!/bin/sh
# Runs every test in instrumented builds: AddressSanitizer with UndefinedBehaviorSanitizer (the compiler
# that CC names), then ThreadSanitizer. ThreadSanitizer knows the synchronisation inside OpenMP only
# through clang's runtime and its tool archer; with gcc's runtime it reports races that are none. So that
# part is left out where they are missing. `scripts/sanitize.sh address|thread` runs one of the two. With TRAP= set to
# nothing undefined behaviour is told in words.
# Ends with "N passed, N failed" for each.
set -u
which=${1:-both}
status=0
# Instrumented, the longest test takes minutes on a machine with nothing else to do.
export ATTN_TEST_SECONDS="${ATTN_TEST_SECONDS:-1800}"

lines=CFLAGS=-g1 # which reports show, and no more
run() { # the make variables of the build
  make --no-print-directory "-j$(nproc)" all tests "$@" $lines $emulated &&
    make --no-print-directory run-tests "$@" $lines $emulated || status=1
}

# The kernels of the emulated device are never instrumented, and take long to build: they are those of the plain build.
make --no-print-directory "-j$(nproc)" emulated BUILD=build SANITIZE= || exit 1
emulated=
[ ! -f build/attnbench_emu.so ] || emulated=EMULATED_FROM=build

if [ "$which" != thread ]; then
  echo "AddressSanitizer and UndefinedBehaviorSanitizer"
  # A test asks for memory that cannot be had: the allocator then has to say no, not end the program.
  export ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=0
  # Instrumented, gcc warns of what is none. Without words each of the many processes starts in half of the time.
  TRAP=${TRAP-yes}
  run SANITIZE=address,undefined TRAP="$TRAP" WERROR= WARNINGS=-w
  if [ "$status" -ne 0 ] && [ -n "$TRAP" ]; then
    echo "A SIGILL is undefined behaviour; which, and where: TRAP= scripts/sanitize.sh address"
  fi
fi

if [ "$which" != address ]; then
  archer=$(ls -d /usr/lib/llvm-*/lib/libarcher.so 2>/dev/null | tail -n 1)
  if command -v clang >/dev/null 2>&1 && [ -n "$archer" ]; then
    echo "ThreadSanitizer"
    export OMP_TOOL_LIBRARIES="$archer"
    # And a process need not wait a second for races at its end: the tests start many.
    export TSAN_OPTIONS=ignore_noninstrumented_modules=1:allocator_may_return_null=1:atexit_sleep_ms=0
    # Kernels that randomise addresses widely leave no room for its shadow memory.
    if setarch "$(uname -m)" -R true 2>/dev/null; then
      export ATTN_TEST_WRAPPER="setarch $(uname -m) -R"
    fi
    run SANITIZE=thread CC=clang
  else
    echo "ThreadSanitizer is left out: it needs clang and its OpenMP runtime (clang, libomp-dev)"
  fi
fi
exit "$status"
