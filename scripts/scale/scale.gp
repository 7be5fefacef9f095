# The pictures of scripts/scale/scale.sh: time and efficiency against the number of nodes, and where ring and ulysses cross.
# Set by draw.sh: scripts, points, crossings, folder, format, cluster, asked.
load scripts.'/common.gp'

# One picture of two panels, or of one.
panel_left(n) = 0.075 + n * 0.49
caption = 'Simulated by SimGrid, not run: '.cluster.'.'
words = asked.'.'
begin = "if (format eq 'png') { set terminal pngcairo size 1600,900 enhanced font 'sans,16' linewidth 2 background '#FFFFFF' } \
  else { set terminal svg size 1600,900 enhanced font 'sans-serif,16' linewidth 2 background '#FFFFFF' }"
set border 3 lw 0.7 lc rgb '#555555'
set tics nomirror out
set grid xtics ytics lc rgb '#DDDDDD' lw 0.7 dt 1
set logscale x 2
set format x '%.0f'
set mxtics 1
set tmargin at screen 0.80
set bmargin at screen 0.20
set label 2 caption at screen 0.075,0.915 left font ',15' tc rgb '#555555' noenhanced
set label 3 words at screen 0.075,0.885 left font ',15' tc rgb '#555555' noenhanced

array long[4] = [65536, 262144, 1048576, 4194304]
array long_words[4] = ['T = 64 Ki', 'T = 256 Ki', 'T = 1 Mi', 'T = 4 Mi']
of(variant, length, what) = sprintf("< awk '$1 == \"%s\" && $4 == %d { print $2, %s }' %s", variant, length, what, points)
time = '$5'
efficiency = '100 * $6 / ($2 * $5)'

# A name of its own: gnuplot expands what stands in $... nowhere else.
draw_prefill = "plot for [n=1:4] of('ring', long[n], what) using 1:2 with linespoints pt 7 ps 1.1 lc rgb colour[n+1] lw 1.4 title 'ring, '.long_words[n], \
  for [n=1:4] of('ulysses', long[n], what) using 1:2 with linespoints pt 8 ps 1.5 lc rgb colour[n+1] lw 1.2 dt 2 title 'ulysses, '.long_words[n]"
draw_decode = "plot for [n=1:4] of('tree_decode', long[n], what) using 1:2 with linespoints pt 5 ps 1.0 lc rgb colour[n+1] lw 1.4 title 'tree decode, '.long_words[n]"

do for [picture in 'time efficiency'] {
  eval(begin)
  set output folder.'/'.picture.'.'.format
  what = picture eq 'time' ? time : efficiency
  set label 1 (picture eq 'time' ? 'Time against the number of nodes' : 'Efficiency against the number of nodes') \
    at screen 0.075,0.955 left font ',26' noenhanced
  set xrange [0.9:1140]
  set xtics 1,4
  set xlabel 'nodes, one rank each'
  set key at screen 0.52,0.012 center bottom horizontal maxrows 2 Left reverse noenhanced font ',13' samplen 3
  if (picture eq 'time') { set logscale y 10; set format y '%.0s %cs'; set yrange [*:*]; set ytics auto } \
  else { unset logscale y; set format y '%.0f %%'; set yrange [0:105]; set ytics 0,20,100 }
  set multiplot
  set lmargin at screen panel_left(0); set rmargin at screen panel_left(0) + 0.41
  set ylabel (picture eq 'time' ? 'time of one run' : 'time on one node / (nodes x time)') offset (picture eq 'time' ? 2 : 1),0
  set label 4 'The whole sequence: ring, ulysses' at graph 0,1.03 left font ',17' noenhanced
  set key at screen 0.075,0.012 left bottom horizontal maxrows 4 Left reverse noenhanced font ',13' samplen 3
  eval(draw_prefill)
  set lmargin at screen panel_left(1); set rmargin at screen panel_left(1) + 0.41
  if (picture eq 'efficiency') { set yrange [0:*]; set ytics auto }
  unset ylabel; unset label 1; unset label 2; unset label 3
  set label 4 (picture eq 'time' ? 'One query: tree decode' : 'One query: tree decode (above 100 %: in the cache)') at graph 0,1.03 left font ',17' noenhanced
  set key at screen 0.565,0.012 left bottom horizontal maxrows 4 Left reverse noenhanced font ',13' samplen 3
  eval(draw_decode)
  unset multiplot
  set output
  set label 2 caption at screen 0.075,0.915 left font ',15' tc rgb '#555555' noenhanced
  set label 3 words at screen 0.075,0.885 left font ',15' tc rgb '#555555' noenhanced
}

eval(begin)
set output folder.'/crossover.'.format
set label 1 'Where ring and ulysses cross' at screen 0.075,0.955 left font ',26' noenhanced
unset label 4
set lmargin at screen 0.075; set rmargin at screen 0.97
set bmargin at screen 0.17
set logscale y 2
set yrange [*:*]
set ytics (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 2.5, 3, 4, 6, 8)
set format y '%g'
set xrange [3600:1200000]
set xtics 4096,2
set xlabel 'T'
set ylabel 'time of ring / time of ulysses'
set key at screen 0.52,0.012 center bottom horizontal maxrows 1 Left reverse noenhanced font ',15' samplen 3
set arrow 1 from graph 0,first 1 to graph 1,first 1 nohead back lc rgb '#444444' lw 1.2
set label 5 'above: ulysses is faster' at graph 0.99,0.96 right font ',15' tc rgb '#555555'
set label 6 'below: ring is faster' at graph 0.99,0.04 right font ',15' tc rgb '#555555'
ratio(ranks) = sprintf("< awk '$2 == %d && $1 == \"ring\" { ring[$4] = $5 } $2 == %d && $1 == \"ulysses\" && $4 in ring { print $4, ring[$4] / $5 }' %s", \
  ranks, ranks, points)
array few[5] = [8, 16, 32, 64, 128]
plot for [n=1:5] ratio(few[n]) using 1:2 with linespoints pt shape[n] ps 1.3 lc rgb colour[n+1] lw 1.4 title sprintf('%d nodes', few[n]), \
  crossings using 2:(1) with points pt 2 ps 1.8 lw 1.5 lc rgb '#000000' title 'where they cross'
set output
