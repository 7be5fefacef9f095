#!/usr/bin/env bash
# Of C sources those that are not what they were at a commit, themselves or a header of theirs, each on a line:
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
while IFS= read -r file; do
  changed[$file]=yes
  case $file in
  Makefile) scripts/same_commands.sh "$commit" cppcheck tidy || exec printf '%s\n' "$@" ;;
  .clang-tidy | .cppcheck-suppressions | scripts/changed.sh | scripts/same_commands.sh | scripts/setup.sh) exec printf '%s\n' "$@" ;;
  *.h) headers=yes ;;
  esac
done < <(git diff --name-only "$commit" -- || echo Makefile
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
