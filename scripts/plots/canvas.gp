# What all pictures share once their settings are known: the canvas and the captions.
#
# The sizes below are pixels at a font of 17 points; font_scale, of --font-size, is how much larger it is. The canvas grows with
# what stands above and below the plot, which stays plot_pixels high.
canvas_width = 1600
title_font = 26 * font_scale
caption_font = 15 * font_scale
caption_pixels = 28 * font_scale
top_pixels = captions == 0 ? 30 * font_scale : 110 * font_scale + caption_pixels * (captions - 1)
bottom_pixels = 100 * font_scale
canvas_height = top_pixels + plot_pixels + bottom_pixels
from_top(pixels) = 1 - pixels / canvas_height

if (format eq 'png') {
  set terminal pngcairo size canvas_width,canvas_height enhanced font sprintf('sans,%g', 17 * font_scale) linewidth 2 background '#FFFFFF'
}
if (format eq 'svg') {
  set terminal svg size canvas_width,canvas_height enhanced font sprintf('sans-serif,%g', 17 * font_scale) linewidth 2 background '#FFFFFF'
}
if (format eq 'pdf') {
  set terminal pdfcairo size canvas_width / 72.0,canvas_height / 72.0 enhanced font sprintf('sans,%g', 17 * font_scale) linewidth 2 background '#FFFFFF'
}
set output output

set lmargin at screen left_margin
set rmargin at screen left_margin + plot_width
set bmargin at screen bottom_pixels / canvas_height
set tmargin at screen from_top(top_pixels)
set label 1 title at screen left_margin,from_top(45 * font_scale) left font sprintf(',%g', title_font) noenhanced
do for [i=1:captions] {
  set label 100+i caption[i] at screen left_margin,from_top(82 * font_scale + caption_pixels * (i - 1)) left \
    font sprintf(',%g', caption_font) tc rgb caption_colour[i] noenhanced
}

set tics nomirror out
unset key
