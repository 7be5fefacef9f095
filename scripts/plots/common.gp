# How every picture looks. harness/report/drawing.c loads this first, then the settings of one picture (its texts,
# ranges, labels and the name of its data file), then the script of that picture.
set encoding utf8
set minussign
set micro

# Okabe and Ito's palette, which people who are colour-blind can tell apart; its yellow, too faint for
# a line on white, is a grey here; wine and olive are Tol's. The last is for what belongs to the machine.
array colour[11] = ['#000000', '#D55E00', '#0072B2', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#7F7F7F', '#882255', \
  '#999933', '#444444']
array shape[10] = [7, 5, 9, 13, 11, 15, 6, 4, 8, 12]
# Where there are more lines than colours they go round again, dashed and with other points.
array other_shape[10] = [1, 2, 3, 10, 14, 1, 2, 3, 10, 14]
mark(i) = turn[i] > 0 ? other_shape[style[i]] : shape[style[i]]
dash_of(i) = turn[i] > 0 ? 2 : 1

# Later lines are thinner and their points smaller, so that of lines that coincide each still shows.
width(i) = 2.0 - 0.14 * style[i]
size(i) = 1.9 - 0.11 * style[i]
