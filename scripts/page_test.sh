#!/usr/bin/env bash
# Opens pages of attnbench in a browser without a window, wide and narrow, light and dark: no complaint on its console, nothing
# fetched, contrast and size of every text, names of pictures, tables that sort, nothing wider than the window (page_check.js). Then
# pages that were spoiled, each of which has to be found. `scripts/page_test.sh [BUILD [REPORT.json]]`; ends with "N passed, N
# failed". Without Chromium it says what is left out; status 0.
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:-build} report=${2:-results/gallery/results.json}
browser=$(command -v chromium chromium-browser google-chrome | head -n 1)
if [ -z "$browser" ]; then
  echo "Chromium is not installed (apt-get install chromium): how pages look and sort is not tested"
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

# count GOOD WORDS...
count() {
  if [ "$1" = yes ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  echo "${*:2}$([ "$1" = yes ] || echo ": FAILED")"
}

# look PAGE WIDTH SCHEME: sets found to what page_check.js and the console say. A window without a screen has a smallest width,
# a frame in it has none.
look() {
  local options=(--headless --disable-gpu --no-first-run "--user-data-dir=$folder/user" --window-size=1400,1000
    --disable-background-networking --disable-component-update "--host-resolver-rules=MAP * ~NOTFOUND"
    --blink-settings=preferredColorScheme="$([ "$3" = dark ] && echo 0 || echo 1)" --enable-logging=stderr --virtual-time-budget=10000)
  [ "$(id -u)" != 0 ] || options+=(--no-sandbox)
  cat >"$folder/frame.html" <<EOF
<!DOCTYPE html><html data-found="nothing was found out"><body style="margin:0"><script>
addEventListener("message", function (event) { document.documentElement.setAttribute("data-found", event.data); });
</script><iframe style="width:$2px;height:900px;border:0" src="$1"></iframe></body></html>
EOF
  timeout 120 "$browser" "${options[@]}" --dump-dom "file://$folder/frame.html" >"$folder/dom" 2>"$folder/log"
  found=$(sed -n 's/.*<html[^>]* data-found="\([^"]*\)".*/\1/p' "$folder/dom" | head -n 1)
  found="${found:-the browser did not finish}$(grep -F ':CONSOLE' "$folder/log" | sed 's/.*:CONSOLE/; console/' | head -n 3)"
}

# prepare NAME SED...: the page of that name, changed, with what looks at it.
prepare() {
  local name=$1
  shift
  { sed "$@" "$folder/run.html" | sed '/<\/body>/,$d'; echo '<script>'; cat scripts/page_check.js; echo '</script></body></html>'; } \
    >"$folder/$name.html"
}

sed '0,/"real_time": /s//"real_time": 1/' "$report" >"$folder/before.json" &&
  "$build/attnbench" report "$folder/before.json" "$report" --html "$folder/run.html" >/dev/null || exit 2
prepare checked -e ''
for width in 1280 400; do
  for scheme in light dark; do
    look checked.html "$width" "$scheme"
    [[ $found == good:*"at $width pixels, $scheme" ]] && good=yes || good=no
    count "$good" "the page at $width pixels, $scheme: $found"
  done
done

# spoiled WHAT WORDS SED...: is found, in these words.
spoiled() {
  local what=$1 words=$2
  shift 2
  prepare spoiled "$@"
  look spoiled.html 400 dark
  [[ $found == *"$words"* ]] && good=yes || good=no
  count "$good" "$what is found: ${found:0:100}"
}
spoiled "a picture from elsewhere" "fetches http" -e 's|<h2>Verdict|<img alt="" src="http://127.0.0.1:9/x.png"/>&|' -e '/Content-Security/d'
spoiled "the same, which the page forbids" "console" -e 's|<h2>Verdict|<img alt="" src="http://127.0.0.1:9/x.png"/>&|'
spoiled "a faint colour" "contrast" -e 's|--soft: #a9b0b8|--soft: #4a4f55|'
spoiled "a table that is wider than the page" "wider than its window" -e 's|overflow-x: auto|overflow-x: visible|'
spoiled "a table that sorts the wrong way" "not sorted" -e 's|ascending ? 1 : -1|ascending ? -1 : 1|'
spoiled "a script that stumbles" "no button" -e 's|^"use strict";|nothing.here();|'
spoiled "a picture without a name" "without a name" -e 's|<title id="plot-time-title">[^<]*</title>||'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
