/* A picture that gnuplot drew, as a part of a page. */
#ifndef ATTN_HARNESS_PAGE_SVG_H
#define ATTN_HARNESS_PAGE_SVG_H

#include <stdbool.h>
#include <stdio.h>

/* Writes an SVG so that it can stand in a page beside others: as wide as it gets, its colours those of the page's scheme, its
 * ids with the name in front, no word of where to find anything else, and `title` for those who hear the page. A picture with a
 * colour that the page has no name for keeps all of its own, on white. False, with nothing written, where it is no SVG of shapes
 * and text alone. */
bool page_svg(FILE *out, const char *svg, const char *name, const char *title);

#endif
