/* Text into HTML: what stands in a report is foreign, names of plugins and command lines, and none of it may become markup. */
#ifndef ATTN_HARNESS_HTML_H
#define ATTN_HARNESS_HTML_H

#include <stdio.h>

/* Text, for between tags and between the quotes of an attribute. What is not UTF-8, or no character of HTML, becomes
 * U+FFFD. */
void html_text(FILE *out, const char *text);

/* The same of what is printed. */
void html_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A name of parts between '/', which may be broken into lines behind each. */
void html_name(FILE *out, const char *name);

/* The lines of a text, each between these two marks of ours. */
void html_lines(FILE *out, const char *text, const char *before, const char *after);

/* A region that scrolls by itself where it is wider than the page, and in it a table that can be sorted: its name, and the
 * heads of its columns; a '#' in front of one says that numbers stand below it. */
void html_table(FILE *out, const char *name, const char *const *heads, size_t count);
void html_table_end(FILE *out);

/* A cell with a number, by which the column is sorted, and how it is said. */
void html_number(FILE *out, double number, const char *text);

/* A cell with words. */
void html_words(FILE *out, const char *text);

#endif
