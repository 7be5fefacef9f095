# The gate's forest plot: head against base, one row for each benchmark, the slowest on top. The settings come
# from harness/gate/forest.c: format, output, rows, note, base, count, limit, smallest.
height = 190 + 26 * count
if (format eq 'png') {
  set terminal pngcairo size 1600,height enhanced font 'sans,14' linewidth 2 background '#FFFFFF'
} else {
  set terminal svg size 1600,height enhanced font 'sans-serif,14' linewidth 2 background '#FFFFFF'
}
set output output

set lmargin at screen 0.44
set rmargin at screen 0.97
set tmargin at screen 1 - 105.0 / height
set bmargin at screen 65.0 / height
set label 1 'Change of time, head against ' . base at screen 0.02, screen 1 - 32.0 / height left font ',22' noenhanced
set label 2 note at screen 0.02, screen 1 - 64.0 / height left font ',13' tc rgb '#555555' noenhanced

set border 1 lw 0.7 lc rgb '#555555'
set tics nomirror out
set grid xtics lc rgb '#DDDDDD' lw 0.7 dt 1
unset key
set xrange [-limit:limit]
set yrange [0.3:count + 0.7]
set ytics scale 0 font ',11.5' noenhanced
set format x '%+.0f%%'
set arrow from 0, graph 0 to 0, graph 1 nohead lc rgb '#444444' lw 1
set arrow from smallest, graph 0 to smallest, graph 1 nohead lc rgb '#D55E00' lw 0.7 dt 2

# The palette of common.gp as numbers, which a column of colours has to be.
tint(i) = int('0x' . substr(colour[i], 2, 7))

plot rows using 2:1:3:4:(tint(int($5))):ytic(7) with xerrorbars pt 0 lw 1.4 lc rgb variable, \
  rows using 2:($6 == 7 ? $1 : NaN):(tint(int($5))) with points pt 7 ps 1.1 lc rgb variable, \
  rows using 2:($6 == 6 ? $1 : NaN):(tint(int($5))) with points pt 6 ps 1.1 lc rgb variable
