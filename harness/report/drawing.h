/* Pictures made by gnuplot: settings and data are written into a temporary folder beside the pictures, gnuplot draws there, and
 * what is finished is renamed into place. gnuplot gets three files in turn: common.gp, the settings, and the script that has
 * the picture's name. */
#ifndef ATTN_HARNESS_DRAWING_H
#define ATTN_HARNESS_DRAWING_H

#include <stdio.h>

#include "report.h"

enum { DRAWING_PATH_BYTES = 4096 };

typedef struct drawing {
  const plot_style *style;
  const char *folder;                 /* where the pictures go */
  char temporary[DRAWING_PATH_BYTES]; /* in folder, so that a finished picture can be renamed into place */
  bool catches; /* a wish to stop ends it; an earlier one, to stop measuring, does not */
  char *why;
  size_t why_size;
} drawing;

typedef struct drawing_picture {
  const char *name;   /* of its files */
  const char *script; /* in the folder of scripts, without ending */
  const void *what;   /* for those that write it */
  /* Beside these settings: scripts, data, format, output, font_scale, and caption and caption_colour to be filled. */
  void (*put_settings)(const void *what, const plot_style *style, FILE *out);
  void (*put_data)(const void *what, FILE *out);
} drawing_picture;

/* How large the font is against that of scripts/plots/canvas.gp. */
double drawing_scale(const plot_style *style);

/* False, with the reason in words, when the folder cannot be written; else drawing_end has to follow. Ctrl-C in between
 * ends this drawing and all later ones, which fail, and no process (interrupt.h). */
bool drawing_begin(drawing *drawing, const plot_style *style, const char *folder, char *why, size_t why_size);
void drawing_end(const drawing *drawing);

/* In each format of the style. False, with the reason in the drawing's `why`. */
bool drawing_make(const drawing *drawing, const drawing_picture *picture);

#endif
