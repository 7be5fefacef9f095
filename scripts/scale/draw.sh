#!/usr/bin/env bash
# The tables and pictures of what scale.sh has left in a folder: `scripts/scale/draw.sh FOLDER`.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$1" || exit 2 # whose name, of whichever letters, is told to no other program

# Where the ratio of their times passes 1 between two lengths, along a straight line of logarithms: "RANKS T" into a file, and words.
crossings() {
  sort -k1,1 -k2,2n -k4,4n points.txt | awk -v file=crossings.txt '
    function leader(ratio) { return ratio > 1 ? "ulysses" : "ring" }
    $1 == "ring" { ring[$2 " " $4] = $5 }
    $1 == "ulysses" && ($2 " " $4) in ring {
      count = $2; ratio = ring[$2 " " $4] / $5
      if (count in last && leader(last[count]) != leader(ratio)) {
        at = at_length[count] * ($4 / at_length[count]) ^ (log(last[count]) / (log(last[count]) - log(ratio)))
        said[count] = said[count] sprintf("%s to T = %.0f, then ", leader(last[count]), at)
        print count, at >file }
      if (!(count in last)) said[count] = sprintf("from T = %d ", $4)
      last[count] = ratio; at_length[count] = $4 }
    END { for (count = 2; count <= 1024; count *= 2) if (count in last)
      printf "%d nodes: %s%s to T = %d\n", count, said[count], leader(last[count]), at_length[count] }'
}

: >crossings.txt
{
  echo "A simulation by SimGrid: nothing here was run but the runs at the end."
  cat cluster.txt
  echo
  awk '$1 !~ /^#/ { printf "%-12s %5d nodes  T %8d  %12.6g s  efficiency %5.1f %%  %14.0f bytes sent by a node\n", $1, $2, $4, $5, 100 * $6 / ($2 * $5), $7 }' points.txt
  echo
  sed -n 's/^# \(ring\|ulysses\|tree_decode\) \([0-9]*\) \([0-9]*\) \(.*\)/\1 on \2 nodes, T = \3: \4/p' points.txt
  echo
  echo "Faster:"
  crossings
  echo
  cat validation.txt
} >summary.txt

# Of a locale without letters of its own gnuplot says that it cannot write a degree sign.
for format in png svg; do
  LC_ALL=C.UTF-8 gnuplot -e "scripts='${root//\'/\'\'}/scripts/plots'; points='points.txt'; crossings='crossings.txt'; folder='.'; format='$format'; \
    cluster='$(sed -n 1p cluster.txt)'; asked='$(sed -n 2p cluster.txt)'" "$root/scripts/scale/scale.gp" ||
    { echo "scale: gnuplot could not draw" >&2; exit 2; }
done
