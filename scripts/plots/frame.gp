# What all pictures share once their settings are known: the canvas, the captions and the axis of T.
if (format eq 'png') {
  set terminal pngcairo size 1600,1000 enhanced font 'sans,17' linewidth 2 background '#FFFFFF'
} else {
  set terminal svg size 1600,1000 enhanced font 'sans-serif,17' linewidth 2 background '#FFFFFF'
}
set output output

set lmargin at screen 0.105
set rmargin at screen 0.105 + plot_width
set bmargin at screen 0.10
set tmargin at screen 0.835
set label 1 title at screen 0.105,0.955 left font ',26' noenhanced
set label 2 machine at screen 0.105,0.918 left font ',15' tc rgb '#555555' noenhanced
set label 3 shapes at screen 0.105,0.890 left font ',15' tc rgb '#555555' noenhanced
set label 4 note at screen 0.105,0.862 left font ',15' tc rgb '#555555' noenhanced

set border 3 lw 0.7 lc rgb '#555555'
set tics nomirror out
set grid xtics ytics lc rgb '#DDDDDD' lw 0.7 dt 1
unset key

set logscale x 2
set xrange [x_low:x_high]
set yrange [y_low:y_high]
set xlabel 'sequence length T (tokens)'
set xtics 1,(x_high / x_low > 20000 ? 4 : 2)
set format x '%.0f'
set mxtics 1

