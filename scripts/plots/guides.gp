# Slope 1 and slope 2 from one point, to hold the curves against.
if (guides) {
  set arrow 3 from first guide_x,guide_y to first guide_x*guide_length,guide_y*guide_length nohead lc rgb '#888888' dt 2
  set arrow 4 from first guide_x,guide_y to first guide_x*guide_length,guide_y*guide_length**2 nohead lc rgb '#888888' dt 2
  set label 7 'slope 1' at first guide_x*guide_length*1.05,guide_y*guide_length left tc rgb '#666666'
  set label 8 'slope 2' at first guide_x*guide_length*1.05,guide_y*guide_length**2 left tc rgb '#666666'
}
