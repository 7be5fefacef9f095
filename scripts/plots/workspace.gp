load scripts.'/frame.gp'
set logscale y 2
set ylabel 'memory'
step = y_high / y_low > 65536 ? 4 : 2
unit(power) = word('B KiB MiB GiB TiB PiB', power / 10 + 1)
set ytics ()
do for [power=0:58:step] { set ytics add (sprintf('%d %s', 2 ** (power % 10), unit(power)) 2.0 ** power) }
load scripts.'/guides.gp'
plot for [i=1:lines] data index lines+i-1 using 1:2 with lines lc rgb colour[style[i]] lw width(i) dt dash_of(i), \
     for [i=1:lines] data index i-1 using 1:2 with points pt mark(i) ps size(i) lc rgb colour[style[i]]
