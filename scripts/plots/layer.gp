# A layer's projections, its attention and the whole: counted operations on the left, measured time on the right.
# scripts/layer/crossover.c writes the settings: the name of each curve, the counted crossover, the interval of the measured one.
font(points) = sprintf('%s,%g', format eq 'png' ? 'sans' : 'sans-serif', points * font_scale)
if (format eq 'png') { set terminal pngcairo size 1600,900 enhanced font font(17) linewidth 2 background '#FFFFFF' }
if (format eq 'svg') { set terminal svg size 1600,900 enhanced font font(17) linewidth 2 background '#FFFFFF' }
if (format eq 'pdf') { set terminal pdfcairo size 1600/72.0,900/72.0 enhanced font font(17) linewidth 2 background '#FFFFFF' }
set output output

set label 1 title at screen 0.09,0.95 left font sprintf(',%g', 26 * font_scale) noenhanced
do for [i=1:captions] {
  set label 100+i caption[i] at screen 0.09,0.945-0.032*i*font_scale left font sprintf(',%g', 15 * font_scale) \
    tc rgb caption_colour[i] noenhanced
}
set border 3 lw 0.7 lc rgb '#555555'
set tics nomirror out
set grid xtics ytics lc rgb '#DDDDDD' lw 0.7 dt 1
set logscale x 2
set logscale y 10
set xtics 1,2
set format x '%.0f'
set mxtics 1
set xlabel 'sequence length T (tokens)'
set key top left Left reverse samplen 2 noenhanced
stats data using 1 nooutput
set xrange [STATS_min/1.15:STATS_max*1.15]
array curve_colour[3] = [colour[3], colour[2], colour[1]]

set multiplot
set tmargin at screen 0.80
set bmargin at screen 0.10
if (counted > 0) { set arrow 1 from first counted,graph 0 to first counted,graph 1 nohead back lc rgb '#444444' lw 1.2 dt 2 }

set lmargin at screen 0.09
set rmargin at screen 0.49
set ylabel 'operations (FLOP), counted'
set format y '%.0s %c'
plot for [i=1:3] data index i-1 using 1:2 with linespoints lc rgb curve_colour[i] pt shape[i] ps 1.2 lw 1.6 title name[i]

unset label 1
do for [i=1:captions] { unset label 100+i }
if (crossed_low > 0) {
  set object 1 rectangle from first crossed_low,graph 0 to first crossed_high,graph 1 back fc rgb '#E69F00' fs solid 0.35 noborder
}
set lmargin at screen 0.59
set rmargin at screen 0.98
set ylabel 'median time of one run'
set format y '%.0s %cs'
plot for [i=1:3] data index i-1 using 1:3:4:5 with yerrorbars lc rgb curve_colour[i] pt shape[i] ps 1.2 lw 0.8 notitle, \
     for [i=1:3] data index i-1 using 1:3 with linespoints lc rgb curve_colour[i] pt shape[i] ps 1.2 lw 1.6 title name[i]
unset multiplot
