#!/bin/sh
# Installs what is missing on a Debian or Ubuntu machine: `scripts/setup.sh build|bench|test|lint|ci|scale|aarch64`.
# Says first what it will install. With nothing missing it is silent and instantaneous. With SETUP=no, or
# without the right to install, it prints the one command to type instead: status 2 when something
# that is needed is missing, 0 when only a part can be left out.
set -u
purpose=${1:-build}
compiler=${CC:-gcc}
needed=
optional=
left_out=

has_command() { command -v "$1" >/dev/null 2>&1; }
has_header() { echo "#include <$1>" | $compiler -E -x c $2 - >/dev/null 2>&1; }
# Headers lie in one place for all architectures, libraries do not.
has_library() { echo 'int main(void) { return 0; }' | $compiler -x c - -o /dev/null "-l$1" >/dev/null 2>&1; }

is_there() {
  case $1 in
  gcc) has_command "${compiler%% *}" ;;
  libc6-dev) has_header stdio.h "" ;;
  libjansson-dev) has_header jansson.h "" ;;
  libcmocka-dev) echo '#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>' | $compiler -E -x c - >/dev/null 2>&1 ;;
  libopenblas-pthread-dev) ls /usr/lib/*/openblas-pthread/libopenblas.so >/dev/null 2>&1 ||
    pkg-config --exists openblas 2>/dev/null ;;
  gnuplot-nox) has_command gnuplot ;;
  gcc-aarch64-linux-gnu) has_command "$compiler" ;;
  libc6-dev-arm64-cross) has_header stdio.h "" ;;
  qemu-user) has_command qemu-aarch64 ;;
  libjansson-dev:arm64) has_header jansson.h "" && has_library jansson ;;
  libcmocka-dev:arm64) has_library cmocka ;;
  libgomp1:arm64) ls /usr/lib/aarch64-linux-gnu/libgomp.so.1 >/dev/null 2>&1 ;;
  openmpi-bin) has_command mpirun ;;
  libopenmpi-dev) has_command mpicc ;;
  libsimgrid-dev) has_command smpicc && has_command smpirun ;;
  libomp-dev) ls /usr/lib/llvm-*/lib/libomp.so >/dev/null 2>&1 ;;
  *) has_command "$1" ;;
  esac
}

need() { for package; do is_there "$package" || needed="$needed $package"; done; }
want() { # package, what a build without it leaves out
  is_there "$1" || { optional="$optional $1"; left_out="$left_out${left_out:+; }$2"; }
}

# Built by a cross compiler, run under an emulator. Libraries come from the other architecture's own packages.
if [ "$purpose" = aarch64 ]; then
  compiler=aarch64-linux-gnu-gcc
  need make gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user \
    libjansson-dev:arm64 libcmocka-dev:arm64 libgomp1:arm64
elif [ "$compiler" != gcc ] && ! has_command "${compiler%% *}"; then
  echo "The compiler that CC names is not installed: $compiler" >&2
  exit 2
else
  need gcc make libc6-dev libjansson-dev
fi
case $purpose in test | ci | lint) need libcmocka-dev ;; esac
[ "$purpose" != ci ] || need git # the gate finds its base there
if [ "$purpose" = scale ]; then need libsimgrid-dev openmpi-bin libopenmpi-dev gnuplot-nox; fi
if [ "$purpose" = lint ]; then need clang-tidy cppcheck libomp-dev; fi
case $purpose in
bench | test | ci)
  want libopenblas-pthread-dev "the blas and layer variants and the sgemm peak (OpenBLAS)"
  want gnuplot-nox "the plots (gnuplot)"
  want openmpi-bin "runs in a team of processes (MPI)"
  want libopenmpi-dev "the variants that work in a team of processes (MPI)"
  want valgrind "instruction counts and the search for reads of unwritten memory (valgrind)"
  ;;
esac
if [ "$purpose" = ci ]; then
  want clang "the builds with clang"
  want libomp-dev "ThreadSanitizer, which needs clang's OpenMP runtime"
  want clang-format "the check of the layout of sources"
  want clang-tidy "the search for mistakes with clang-tidy"
  want cppcheck "the search for mistakes with cppcheck"
fi

[ -z "$needed$optional" ] && exit 0
packages=$(echo $needed $optional)
foreign= # architecture, whose packages are not known yet
case $packages in *:arm64*) dpkg --print-foreign-architectures 2>/dev/null | grep -qx arm64 || foreign=arm64 ;; esac

as_root=
if [ "$(id -u)" != 0 ]; then as_root="sudo env DEBIAN_FRONTEND=noninteractive"; fi
export DEBIAN_FRONTEND=noninteractive
may_install() {
  [ "${SETUP:-yes}" != no ] && has_command apt-get &&
    { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}
install_packages() { $as_root apt-get install -y -q --no-install-recommends "$@" >&2; }

if may_install; then
  echo "attnbench needs packages that are missing here; installing: $packages" >&2
  if [ -n "$foreign" ]; then
    echo "Packages of another architecture are among them; adding it: $foreign" >&2
    $as_root dpkg --add-architecture "$foreign" && $as_root apt-get update -q >&2
  fi
  apt-cache show $packages >/dev/null 2>&1 || $as_root apt-get update -q >&2
  install_packages $packages && exit 0
  $as_root apt-get update -q >&2 # lists that are out of date name files that are gone
  install_packages $packages && exit 0
  [ -z "$needed" ] || install_packages $needed || { echo "Could not install: $needed" >&2; exit 2; }
elif has_command apt-get || [ -n "$needed" ]; then
  sudo=; [ "$(id -u)" = 0 ] || sudo="sudo "
  first=${foreign:+"${sudo}dpkg --add-architecture $foreign && ${sudo}apt-get update && "}
  echo "Missing: $packages. To install: $first${sudo}apt-get install $packages" >&2
  [ -z "$needed" ] || exit 2
fi
echo "Going on without: $left_out" >&2
