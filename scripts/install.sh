#!/usr/bin/env bash
# What `make install` and `make uninstall` do: scripts/install.sh install|uninstall BUILD PREFIX DESTDIR.
# The program finds its parts from where it lies itself, so all of it may be moved together afterwards.
set -eu
case $#${1:-} in
4install | 4uninstall) ;;
*)
  echo "usage: scripts/install.sh install|uninstall BUILD PREFIX DESTDIR, not '$*'" >&2
  exit 2
  ;;
esac
cd "$(dirname "$0")/.."
build=$2 prefix=$3 destination=$4

case $prefix in
/*) ;;
*)
  echo "install: PREFIX is a path from the root, such as /usr/local, not '$prefix'" >&2
  exit 2
  ;;
esac
root=$destination$prefix
share=$root/share
manual=$share/man/man1/attnbench.1
completion=$share/bash-completion/completions/attnbench
package=$root/lib/pkgconfig/attnbench.pc
own_folders=("$root/lib/attnbench" "$root/include/attnbench" "$share/attnbench" "$share/doc/attnbench")
own_files=("$root/bin/attnbench" "$root/bin/attnbench-gate" "$manual" "$completion" "$package")

put() { # mode, folder, files
  install -d "$2"
  install -m "$1" -t "$2" "${@:3}"
}

if [ "$1" = uninstall ]; then
  rm -rf "${own_folders[@]}"
  rm -f "${own_files[@]}"
  exit 0
fi

put 755 "$root/bin" "$build/attnbench" scripts/attnbench-gate
put 644 "$share/attnbench" scripts/gate_git.sh
put 644 "$root/lib/attnbench" "$build"/attnbench_*.so "$build/libattnbench.so" # the last one for bindings/python
# What kernels for a device are linked with; who builds such names them by these paths (README).
for device in emulated cuda; do
  [ ! -f "$build/$device/device.o" ] || put 644 "$root/lib/attnbench/$device" "$build/$device/device.o"
done
[ ! -f "$build/team/runtime.o" ] || put 644 "$root/lib/attnbench/team" "$build/team/runtime.o"
headers=$root/include/attnbench
put 644 "$headers" variants/attention.h variants/functions.h variants/layer_weights.h variants/linear_states.h variants/visibility.h variants/position.h variants/rope.h variants/dropout.h variants/elements.h variants/device.h variants/team.h
put 644 "$headers/cuda" variants/cuda/cuda.h
put 644 "$headers/cuda/emulation" variants/cuda/emulation/emulation.h
put 644 "$share/attnbench/plots" scripts/plots/*.gp
put 644 "$share/doc/attnbench" README.md CHANGELOG.md LICENSE docs/ci.md docs/python.md docs/team.md

version=$(sed -n 's/^#define ATTNBENCH_VERSION "\(.*\)"$/\1/p' harness/base/version.h)
install -d "$(dirname "$package")"
cat >"$package" <<EOF
prefix=\${pcfiledir}/../..
libdir=\${prefix}/lib/attnbench
includedir=\${prefix}/include/attnbench
emulated_device=\${libdir}/emulated/device.o
cuda_device=\${libdir}/cuda/device.o

Name: attnbench
Description: interface of attention kernels that attnbench verifies and measures
Version: $version
Cflags: -I\${includedir}
EOF
chmod 644 "$package"

# A program of another architecture cannot be asked.
if "$build/attnbench" version >/dev/null 2>&1; then
  install -d "$(dirname "$manual")" "$(dirname "$completion")"
  "$build/attnbench" help --as man >"$manual"
  "$build/attnbench" help --as bash >"$completion"
  chmod 644 "$manual" "$completion"
else
  echo "install: $build/attnbench does not run here: manual page and completion are left out" >&2
fi
echo "attnbench is in $root/bin"
