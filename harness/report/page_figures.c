/* The pictures of a page. They are drawn for it alone, from what the page says, so that no older file can stand in for one; what
 * stands above a picture elsewhere is text of the page here, which fits any width. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/folder.h"
#include "captions.h"
#include "html.h"
#include "page_parts.h"
#include "page_svg.h"

enum { PATH_BYTES = 4096, SHAPES_BYTES = 2048, LARGEST_PICTURE = 64 << 20 };

/* NULL where there is none. */
static char *read_picture(const char *folder, picture_kind kind) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s.svg", folder, picture_name(kind));
  FILE *file = fopen(path, "r");
  char *text = NULL;
  if (file && fseek(file, 0, SEEK_END) == 0) {
    const long bytes = ftell(file);
    if (bytes > 0 && bytes < LARGEST_PICTURE) text = malloc((size_t)bytes + 1);
    rewind(file);
    if (text) text[fread(text, 1, (size_t)bytes, file)] = '\0';
  }
  if (file) fclose(file);
  unlink(path);
  return text;
}

static void put_figure(FILE *out, const char *folder, picture_kind kind) {
  char name[32], title[64];
  char *svg = read_picture(folder, kind);
  if (!svg) return; /* nothing of this kind was measured */
  snprintf(name, sizeof name, "plot-%s", picture_name(kind));
  snprintf(title, sizeof title, "%s of each family, as the tables below have it", caption_title(kind));
  fputs("<figure>\n<figcaption><h3>", out);
  html_text(out, caption_title(kind));
  fputs("</h3><p>", out);
  html_text(out, caption_note(kind));
  fputs("</p></figcaption>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"", out);
  html_print(out, "Picture: %s", caption_title(kind));
  fputs("\">", out);
  if (!page_svg(out, svg, name, title))
    fputs("<p>This picture is not one of shapes and text, and is left out.</p>", out);
  fputs("</div>\n</figure>\n", out);
  free(svg);
}

static void put_shapes(const report *report, const plot_style *style, FILE *out) {
  families families;
  char text[SHAPES_BYTES];
  picture_find_families(report, &families, picture_most_families(style));
  caption_shapes(report, &families, text, sizeof text);
  fputs("<p>", out);
  html_text(out, text);
  if (families.left_out > 0)
    html_print(out, ". Drawn: the first %zu of %zu families; the tables have all", families.count,
               families.count + families.left_out);
  fputs("</p>\n", out);
}

void page_put_figures(const report *report, const plot_style *style, FILE *out) {
  static const char *const svg[] = {"svg"};
  char folder[PATH_BYTES], why[1024] = "no folder for them could be made";
  const plot_style bare = {
      .scripts = style->scripts, .font_size = 22, .formats = svg, .format_count = 1, .bare = true};
  snprintf(folder, sizeof folder, "%s/attnbench-page-XXXXXX", folder_temporary());
  const bool made = mkdtemp(folder) != NULL;
  fputs("<section id=\"pictures\"><h2>Pictures</h2>\n", out);
  if (made && report_plot(report, &bare, folder, why, sizeof why)) {
    put_shapes(report, &bare, out);
    fputs("<p class=\"narrow\">Pictures and tables are wider than this window: they scroll by "
          "themselves.</p>\n",
          out);
    for (int kind = 0; kind < PICTURES; kind++) put_figure(out, folder, (picture_kind)kind);
  } else {
    fputs("<p>There are no pictures: ", out);
    html_text(out, why);
    fputs(".</p>\n", out);
  }
  for (int kind = 0; made && kind < PICTURES; kind++)
    free(read_picture(folder, (picture_kind)kind)); /* of a failed attempt */
  if (made) rmdir(folder);
  fputs("</section>\n", out);
}
