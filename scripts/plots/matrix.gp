# Queries down the page, keys to the right, a colour for each point: who sees whom, and the weights. harness/report/show_picture.c
# writes the settings: rows and columns of points, queries, keys, steps of their numbers, what stands at the right.
load scripts.'/canvas.gp'

set border 15 lw 0.7 lc rgb '#555555'
set xrange [-0.5:keys-0.5]
set yrange [queries-0.5:-0.5]
set xtics 0,key_step,key_step*floor((keys-1)/key_step)
set ytics 0,query_step,query_step*floor((queries-1)/query_step)
set format x '%.0f'
set format y '%.0f'
set xlabel 'key j'
set ylabel 'query i'

# At the right of the plot: what the colours mean, from its upper end down, and the scale below.
entry_left = left_margin + plot_width + 28 * font_scale / canvas_width
entry_pixels = 34 * font_scale
entry_top(i) = top_pixels + entry_pixels * (i - 1)
do for [i=1:entries] {
  set object i rectangle from screen entry_left,from_top(entry_top(i)) \
    to screen entry_left + 22 * font_scale / canvas_width,from_top(entry_top(i) + 22 * font_scale) \
    fc rgb entry_colour[i] fs solid border lc rgb '#555555' lw 0.5
  set label 50+i entry[i] at screen entry_left + 32 * font_scale / canvas_width,from_top(entry_top(i) + 11 * font_scale) \
    left font sprintf(',%g', caption_font) noenhanced
}
if (has_scale) {
  scale_top = entry_top(entries + 1) + 40 * font_scale
  scale_pixels = 300 * font_scale
  if (scale_top + scale_pixels > top_pixels + plot_pixels) { scale_pixels = top_pixels + plot_pixels - scale_top }
  set label 60 scale_title at screen entry_left,from_top(scale_top - 24 * font_scale) left font sprintf(',%g', caption_font) noenhanced
  set logscale cb
  set cbrange [scale_low:scale_high]
  set colorbox vertical user origin screen entry_left,from_top(scale_top + scale_pixels) \
    size screen 22 * font_scale / canvas_width,scale_pixels / canvas_height
} else {
  unset colorbox
}

# Points in the middle of what they stand for; the second plot draws nothing and has the scale.
dx = keys / columns
dy = queries / rows
plot data binary array=(columns,rows) format='%uchar%uchar%uchar' dx=dx dy=dy origin=(-0.5 + dx / 2,-0.5 + dy / 2) with rgbimage, \
  NaN with points palette
