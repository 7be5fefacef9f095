load scripts.'/frame.gp'
set logscale xy 10
set xtics 1,10
set mxtics 10
set ylabel 'median time of one run'
set format y '%.0s %cs'
set format x '%.0s%c'
load scripts.'/guides.gp'
plot for [i=1:lines] data index lines+i-1 using 1:2 with lines lc rgb colour[style[i]] lw 0.7 dt 3, \
     for [i=1:lines] data index i-1 using 1:3:(0):($4-$3) with vectors heads size screen 0.003,90 lw 0.8 lc rgb colour[style[i]], \
     for [i=1:lines] data index i-1 using 1:2 with points pt mark(i) ps size(i) lc rgb colour[style[i]]
