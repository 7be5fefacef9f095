#!/usr/bin/env bash
# Of C sources those that are not what they were at a commit, themselves or a header of theirs, or that are looked at in another
# way, each on a line:
#
#   scripts/changed.sh COMMIT BUILD FILE...
#
# What a source includes says the list beside its object in BUILD; one without a list has changed with any header. All have,
# where something has that decides how they are looked at.
set -u
commit=$1 build=$2
shift 2
declare -A changed=()
headers=
theirs=$(mktemp) || exit 2
trap 'rm -f "$theirs"' EXIT
everything() { printf '%s\n' "$@"; exit; }

# The commands of lint by a Makefile, a line for each source of clang-tidy; and cppcheck's, whichever sources they are.
commands() { # makefile
  scripts/commands_of.sh "$1" cppcheck tidy | sed '/clang-tidy/! { s/[^ "]*\.c\>//g; s/  */ /g }'
}
look_for_commands() { # source...
  local line ours
  git show "$commit:Makefile" >"$theirs" 2>/dev/null && ours=$(commands Makefile) || everything "$@"
  while IFS= read -r line; do
    case $line in
    *clang-tidy*.c' -- '*) line=${line%%.c -- *}.c && changed[${line##* }]=yes ;;
    *) everything "$@" ;;
    esac
  done < <(grep -vxFf <(commands "$theirs") <<<"$ours")
}

while IFS= read -r file; do
  changed[$file]=yes
  case $file in
  Makefile) look_for_commands "$@" ;;
  .clang-tidy | .cppcheck-suppressions | scripts/changed.sh | scripts/commands_of.sh | scripts/setup.sh) everything "$@" ;;
  *.h) headers=yes ;;
  esac
done < <(git diff --name-only "$commit" -- || echo scripts/changed.sh
  git ls-files --others --exclude-standard)

for file; do
  list=$build/${file%.c}.d
  if [ ! -f "$list" ]; then
    [ -z "${changed[$file]-}$headers" ] || echo "$file"
    continue
  fi
  # Paths may pass through a folder and back.
  for part in "$file" $(sed 's/^[^:]*://; s/\\$//; /:$/d; s#[^/ ]*/\.\./##g' "$list"); do
    if [ -n "${changed[$part]-}" ]; then echo "$file"; break; fi
  done
done
