load scripts.'/frame.gp'
set logscale y 10
set ylabel 'worst error / bound'
set format y '%g'
if (zero > 0) {
  set ytics add ('0' zero)
  set arrow 2 from graph 0,first zero to graph 1,first zero nohead back lc rgb '#DDDDDD' lw 1
}
set arrow 1 from graph 0,first 1 to graph 1,first 1 nohead back lc rgb '#444444' lw 1
set label 5 'the bound' at graph 0.012,first 1 left offset 0,-0.8 tc rgb '#444444'
plot for [i=1:lines] data index lines+i-1 using 1:2 with lines lc rgb colour[style[i]] lw width(i) dt dash_of(i), \
     for [i=1:lines] data index i-1 using 1:2 with points pt mark(i) ps size(i) lc rgb colour[style[i]]
