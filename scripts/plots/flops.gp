load scripts.'/frame.gp'
set ylabel 'rate (FLOP/s)'
# A linear axis that ends below ten of its unit has steps of less than one: 1.0 T and 1.2 T. One that begins above 0 is logarithmic.
if (y_low > 0) { set logscale y 10 }
unit = 1000.0 ** floor(log10(y_high) / 3)
set format y (y_low == 0 && y_high < 10 * unit ? '%.1s %c' : '%.0s %c')
# The peak with its spread, and what a large matrix product reaches; their names stand with the others.
if (peak > 0) {
  if (peak_high > 0) { set object 1 rectangle from graph 0,first peak_low to graph 1,first peak_high behind fc rgb '#E0E0E0' fs noborder }
  set arrow 1 from graph 0,first peak to graph 1,first peak nohead back lc rgb colour[11] lw 1
}
if (narrow > 0) {
  set arrow 3 from graph 0,first narrow to graph 1,first narrow nohead back lc rgb colour[11] lw 1
}
if (sgemm > 0) {
  set arrow 2 from graph 0,first sgemm to graph 1,first sgemm nohead back lc rgb colour[11] lw 1 dt 2
}
plot for [i=1:lines] data index lines+i-1 using 1:2 with lines lc rgb colour[style[i]] lw width(i) dt dash_of(i), \
     for [i=1:lines] data index i-1 using 1:3:(0):($4-$3) with vectors heads size screen 0.003,90 lw 0.8 lc rgb colour[style[i]], \
     for [i=1:lines] data index i-1 using 1:2 with points pt mark(i) ps size(i) lc rgb colour[style[i]]
