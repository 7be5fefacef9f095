#!/bin/sh
# Installs what `make peers` measures against and `make test-python` judges into a Python environment of its own, FOLDER:
# `scripts/peers/setup.sh [FOLDER [PEER ...]]`, for these peers alone where some are named. Says first what it will install; silent when all is there. With
# SETUP=no, or where it cannot, it prints the one command to type, with status 2, and installs nothing.
set -u
folder=${1:-build/peers/venv}
[ $# -eq 0 ] || shift
here=$(dirname "$0")
pins=$here/requirements.txt
python=${PYTHON:-python3}
# PyPI's PyTorch for x86-64 brings CUDA's libraries, some 5 GB; PyTorch's own index has one without them.
torch_index=https://download.pytorch.org/whl/cpu

# The pins that the peers need.
wanted=$(awk -v peers=" $* " '
  /==/ && !/^#/ {
    take = peers == "  "
    for (n = 3; n <= NF; n++) take = take || $n == "all" || index(peers, " " $n " ")
    if (take) print $1
  }' "$pins")

missing() {
  if [ -x "$folder/bin/python" ]; then
    "$folder/bin/python" "$here/packages.py" $wanted
  else
    echo $wanted
  fi
}
stop() {
  echo "$1" >&2
  exit 2
}

needed=$(missing) || stop "The Python of $folder does not run. To start afresh: rm -r $folder"
[ -z "$needed" ] && exit 0
[ "${SETUP:-yes}" != no ] ||
  stop "Missing in $folder: $needed. To install: $0 '$folder'${*:+ $*}"
"$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  stop "The peers need Python 3.11 or newer with venv, and $python is not that. To install: apt-get install python3-venv, or name another with PYTHON=..."

echo "Packages are missing in $folder; installing: $needed" >&2
[ -x "$folder/bin/python" ] || "$python" -m venv "$folder" || stop "Could not make a Python environment in $folder"
install() { "$folder/bin/python" -m pip --disable-pip-version-check install --quiet "$@"; }
torch=$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' "$pins")
case " $needed +$* " in
*"+"*torch_flash* | *"+"*torch_cudnn* | *"+"*torch_efficient* | *flash_attn*) ;; # for a GPU PyTorch has to bring CUDA's libraries
*" $torch "*) install --retries 1 --index-url "$torch_index" "$torch" 2>/dev/null ||
  echo "$torch_index cannot be had; taking PyPI's PyTorch, which may bring CUDA's libraries, some 5 GB" >&2 ;;
esac
install $wanted ||
  stop "Could not install: $(missing). To try again, with a network: $0 '$folder'${*:+ $*}"
needed=$(missing)
[ -z "$needed" ] || stop "Installed, yet missing in $folder: $needed"
