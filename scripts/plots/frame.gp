# What pictures over lengths share once their settings are known: the canvas and the axis of lengths.
plot_pixels = 735
load scripts.'/canvas.gp'

set border 3 lw 0.7 lc rgb '#555555'
set grid xtics ytics lc rgb '#DDDDDD' lw 0.7 dt 1
set logscale x 2
set xrange [x_low:x_high]
set yrange [y_low:y_high]
set xlabel x_title noenhanced
# As many lengths as have room beside each other, six letters each.
room = plot_width / (6 * 0.0084 * font_scale)
doublings = log(x_high / x_low) / log(2)
set xtics 1,(doublings > 2 * room ? 16 : doublings > room || doublings > 14 ? 4 : 2)
set format x '%.0f'
set mxtics 1
