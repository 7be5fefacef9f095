# What both gates ask git (gate.sh, attnbench-gate): sourced by them.

# The commit to compare with: that of a reference, or without one the merge base with the main branch. Nothing: there is none.
find_base() { # reference or ''
  local main
  if [ -n "$1" ]; then
    git rev-parse -q --verify "$1^{commit}"
    return
  fi
  for main in origin/HEAD origin/main main origin/master master; do
    git merge-base "$main" HEAD 2>/dev/null && return
  done
}

# "--accept" and what a commit message since the base accepts, each on a line: a reason may go on over more of the message's.
accepted_since() { # base commit
  git log --format='%(trailers:key=Gate-Accept,valueonly,unfold)' "$1"..HEAD | sed -n '/./{s/^/--accept\n/;p}'
}

# For people: a name is kept where it is one.
name_of_base() { # commit, reference
  case $1 in "$2"*) git rev-parse --short "$1" ;; *) echo "$2" ;; esac
}
