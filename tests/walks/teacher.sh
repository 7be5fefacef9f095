#!/bin/sh
# A teacher who needs a slide: measures three variants, draws the pictures with an own title in letters that the last row can read,
# as a PDF and as a vector drawing, in own colours. `tests/walks/teacher.sh PROGRAM SCRIPTS FOLDER`, FOLDER empty; status 77 without
# gnuplot. Quick settings: what is looked at is the way, not the numbers.
set -eu
program=$1 scripts=$2 folder=$3
command -v gnuplot >/dev/null || exit 77
cd "$folder"

fail() {
  echo "$1" >&2
  exit 1
}
says() { # FILE TEXT
  grep -qF -- "$2" "$1" || fail "$1 does not say '$2'"
}

"$program" bench --variant naive,fused,linear --lengths 64:512 --benchmark_dry_run --out run --format svg >said 2>notes

# The slide.
"$program" plots run/results.json --out slide --title "Attention in this room" --font-size 26 --format svg,pdf >>said
says said 'The pictures lie in slide'
for picture in time flops workspace error roofline; do
  [ "$(head -c 5 slide/$picture.pdf)" = %PDF- ] || fail "slide/$picture.pdf is no PDF"
  says slide/$picture.svg 'Attention in this room'
  says slide/$picture.svg "$(sed -n 's/.*"cpu": "\([^"(@]*\).*/\1/p' run/results.json | head -n 1)"
  says slide/$picture.svg float32
done
[ ! -e slide/time.png ] || fail "slide/time.png was not asked for"
says slide/time.svg 'Time against sequence length'
says slide/time.svg 'sequence length T (tokens)'
says slide/roofline.svg 'read memory'

# Its font is 26 points, and the curves are still named.
says slide/time.svg 'font-size="26'
for variant in naive fused linear; do says slide/time.svg $variant; done

# In the colours of the house, by the way that the README shows.
cp -r "$scripts" house
sed "s/'#000000'/'#123456'/" house/common.gp >house/common.new
mv house/common.new house/common.gp
"$program" plots run/results.json --out own --scripts house --format svg >>said
grep -qi '123456\|18, *52, *86' own/time.svg || fail "own/time.svg has not the colour of the house"

# What goes wrong is said in a line, and the slide is still there.
if "$program" plots run/results.json --out slide --format gif >out 2>why; then fail "gif was taken"; fi
says why '--format takes png|svg|pdf'
[ "$(wc -l <why)" = 1 ] && [ ! -s out ] || fail "not one line: $(cat why out)"
[ -s slide/time.svg ] || fail "the slide is gone"
