# Ours over theirs: a panel for each mask and head dimension, a line for each peer and number of threads.
# scripts/peers/results.py writes the settings: panels, first[p] to first[p+1] are the lines of panel p.
if (format eq 'png') {
  set terminal pngcairo size 1600,1000 enhanced font 'sans,16' linewidth 2 background '#FFFFFF'
} else {
  set terminal svg size 1600,1000 enhanced font 'sans-serif,16' linewidth 2 background '#FFFFFF'
}
set output output
columns = panels > 1 ? 2 : 1
rows = (panels + columns - 1) / columns

set label 1 title at screen 0.08,0.965 left font ',26' noenhanced
set label 2 machine at screen 0.08,0.932 left font ',15' tc rgb '#555555' noenhanced
set label 3 'Above 1 ours is faster. Bars: 95% intervals of the median of paired repetitions.' at screen 0.08,0.906 left font ',15' tc rgb '#555555' noenhanced
set border 3 lw 0.7 lc rgb '#555555'
set tics nomirror out
set grid xtics ytics lc rgb '#DDDDDD' lw 0.7 dt 1
set logscale x 2
set logscale y 2
set xrange [x_low:x_high]
set yrange [y_low:y_high]
set xtics 1,2
set format x '%.0f'
set mxtics 1
set ytics (0.5, 0.7, 1, 1.3, 2, 3, 4, 6, 8, 12, 16, 24, 32)
set arrow 1 from graph 0,first 1 to graph 1,first 1 nohead back lc rgb '#444444' lw 1.2
set key at screen 0.52,0.012 center bottom vertical maxrows 2 Left reverse noenhanced font ',13' samplen 3 width 1
set bmargin 0
set tmargin 0
set lmargin 0
set rmargin 0

# Points of two thread counts stand a little apart, so that their bars do too.
apart(i) = dash[i] == 1 ? 0.98 : 1.02
left(p) = 0.08 + (p % columns) * 0.48
height = 0.73 / rows
top(p) = 0.86 - (p / columns) * (height + 0.03)
do for [p=0:panels-1] {
  if (p == 0) { set multiplot }
  set lmargin at screen left(p)
  set rmargin at screen left(p) + (columns == 1 ? 0.88 : 0.40)
  set tmargin at screen top(p)
  set bmargin at screen top(p) - height + 0.05
  set label 4 panel_title[p+1] at graph 0,1.03 left font ',17' noenhanced
  if (p / columns == rows - 1) { set xlabel x_title offset 0,0.4 } else { unset xlabel }
  if (p % columns == 0) { set ylabel 'their time / ours' } else { unset ylabel }
  if (p > 0) { unset key; unset label 1; unset label 2; unset label 3 }
  plot for [i=first[p+1]+1:first[p+2]] data index i-1 using ($1*apart(i)):2:3:4 with yerrorbars \
         pt shape[style[i]] ps 1.1 lc rgb colour[style[i]] lw 0.8 notitle, \
       for [i=first[p+1]+1:first[p+2]] data index i-1 using ($1*apart(i)):2 with linespoints \
         pt shape[style[i]] ps 1.1 lc rgb colour[style[i]] lw 1.4 dt dash[i] title line_title[i]
}
unset multiplot
