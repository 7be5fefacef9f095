/* What stands around a picture, in gnuplot's words: the title; lines that say machine, what disturbed, shape and type, and how to
 * read it; and the name of the axis of lengths. */
#ifndef ATTN_HARNESS_CAPTIONS_H
#define ATTN_HARNESS_CAPTIONS_H

#include <stdio.h>

#include "picture.h"

/* Lines above a picture, at most. */
enum { CAPTIONS_MOST = 32 };

/* A string of gnuplot's, in single quotes. */
void caption_string(FILE *out, const char *name, const char *text);

/* What a picture shows, and how to read it. */
const char *caption_title(picture_kind kind);
const char *caption_note(picture_kind kind);

/* The shapes and the type of what is drawn of a report, in a line. */
void caption_shapes(const report *report, const families *families, char *text, size_t size);

/* Sets title, x_title, captions, and caption and caption_colour, arrays of CAPTIONS_MOST that are there. */
void captions_put(FILE *out, const picture *picture, const plot_style *style);

/* Sets captions, caption and caption_colour alone: these, over as many lines of so many letters as they take. */
void captions_put_lines(FILE *out, size_t letters, const char *const *lines, size_t count);

#endif
