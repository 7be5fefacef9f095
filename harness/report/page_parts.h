/* The sections of a page, each in a file of its own; page.c puts them in order. */
#ifndef ATTN_HARNESS_PAGE_PARTS_H
#define ATTN_HARNESS_PAGE_PARTS_H

#include <stdio.h>

#include "report.h"

/* What a reader wants to know first: right, growing as declared, disturbed. */
void page_put_verdict(const report *report, FILE *out);

/* What of the run and its machine is known, all of it. */
void page_put_context(const report *report, FILE *out);

/* The pictures, as SVG in the text; without gnuplot a sentence. */
void page_put_figures(const report *report, const plot_style *style, FILE *out);

/* Exponents; times, each beside the fastest on its problem; memory; what was not measured. */
void page_put_growth(const report *report, FILE *out);
void page_put_points(const report *report, FILE *out);
void page_put_memory(const report *report, FILE *out);
void page_put_unmeasured(const report *report, FILE *out);

/* Each point with its samples and the command that repeats it. */
void page_put_samples(const report *report, FILE *out);

/* What is other than in a former run. */
void page_put_differences(const report *former, const report *report, FILE *out);

/* The command that measures this point again. */
void page_put_command(const report *report, const result *result, FILE *out);

/* What the page looks like and how its tables sort: page.css and page.js. */
void page_put_style(FILE *out);
void page_put_script(FILE *out);

#endif
