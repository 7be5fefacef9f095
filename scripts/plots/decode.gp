# Time of a decoding step against the tokens before it: softmax attention reads all of their keys and values, linear attention a state.
# scripts/decode.sh gives data and picture.
set encoding utf8
set terminal pngcairo size 1100,800 enhanced font 'sans,17' linewidth 2 background '#FFFFFF'
set output picture
set label 1 'A decoding step: one new token, 4 heads, D 64, one thread' at screen 0.05,0.955 left font ',22'
set tmargin at screen 0.9
set border 3 lw 0.7 lc rgb '#555555'
set tics nomirror out
set grid xtics ytics lc rgb '#DDDDDD' lw 0.7 dt 1
set logscale x 2
set logscale y 10
set xtics ('64' 64, '256' 256, '1024' 1024, '4096' 4096, '16384' 16384, '65536' 65536)
set xlabel 'tokens before it, T'
set ylabel 'time of a step (µs)'
set key top left Left reverse samplen 2 noenhanced
stats data using 1 nooutput
set xrange [STATS_min/1.15:STATS_max*1.25]
plot data using 1:2 with linespoints lc rgb '#D55E00' pt 7 ps 1.4 title 'fused (softmax): all keys and values', \
     data using 1:4 with linespoints lc rgb '#009E73' pt 9 ps 1.4 title 'linear_recurrent: a state', \
     data using 1:3 with linespoints lc rgb '#0072B2' pt 5 ps 1.4 title 'linear: a state'
