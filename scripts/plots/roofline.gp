load scripts.'/frame.gp'
set logscale y 10
set ylabel 'rate (FLOP/s)'
set format y '%.0s %c'
set format x '%g'
# The roofs: the multiply-adds' peaks, level, and the rates of reads, rising; their names stand with the others.
plot for [i=1:machine_lines] data index 2*lines+i-1 using 1:2 with lines lc rgb colour[11] lw 1, \
     for [i=1:lines] data index i-1 using 1:3:(0):($4-$3) with vectors heads size screen 0.003,90 lw 0.8 lc rgb colour[style[i]], \
     for [i=1:lines] data index i-1 using 1:2 with points pt mark(i) ps 1.3 * size(i) lc rgb colour[style[i]]
