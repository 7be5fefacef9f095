# shellcheck shell=bash
# Read by mutants.sh and adversary.sh.

# What the words of a failure say about which check it was.
check_of() { # words
  case $1 in
  *crashed*SIGSEGV* | *crashed*SIGBUS*) echo "guard page" ;;
  *crashed*) echo "crash" ;;
  *'fails on its device'*'no barrier between'* | *'fails on its device'*'has not waited for'*) echo "emulated device: race" ;;
  *'fails on its device'*'waits for ever'*) echo "emulated device: never ends" ;;
  *'fails on its device'*'fence'*) echo "emulated device: fence" ;;
  *'fails on its device'*) echo "emulated device: addresses" ;;
  *"exact probe"*) echo "exact probe" ;;
  lse*'times the '*' bound'*) echo "bound of the log-sum-exp" ;;
  *'times the '*' bound'*) echo "error bound" ;;
  *'root mean square'*) echo "root mean square" ;;
  *'no error of this kind is allowed'*) echo "error bound: NaN and infinity" ;;
  *'are not written'*) echo "poisoned output" ;;
  *'lie between its rows'*) echo "gaps between rows" ;;
  *'writes beyond'*) echo "canary: ${1#*writes beyond }" ;;
  *'did not end within'*) echo "time limit" ;;
  *'bytes, and declares'*) echo "bytes that are declared" ;;
  *'while it is sent'*) echo "buffer that is sent" ;;
  *'nobody waited for'*) echo "requests that are left" ;;
  *'nobody receives'*) echo "messages that are left" ;;
  *'than rank 0'*) echo "bits of other ranks" ;;
  *'ended the process'*) echo "crash" ;;
  *'changes its inputs'*) echo "checksum of the inputs" ;;
  'gives other bits'*) echo "bits under other threads" ;;
  'leaves '*flushed* | 'leaves '*rounding* | 'leaves '*exceptions*) echo "mode of the arithmetic" ;;
  *': '*) echo "${1%%: *}" ;;
  *) echo "$1" ;;
  esac
}
