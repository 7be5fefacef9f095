/* See drawing.h. */
#define _GNU_SOURCE
#include "drawing.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/interrupt.h"
#include "base/replace.h"
#include "captions.h"
#include "gnuplot.h"

static const double usual_font_size = 17;

static const char *const all_formats[] = {"png", "svg", "pdf"};

/* Who stopped the pictures of a folder does not wait for those of its page. */
static bool is_stopped;

double drawing_scale(const plot_style *style) {
  return style->font_size > 0 ? style->font_size / usual_font_size : 1;
}

static bool fail(const drawing *drawing, const char *what, const char *about) {
  snprintf(drawing->why, drawing->why_size, "%s '%s': %s", what, about, strerror(errno));
  return false;
}

static bool stop(const drawing *drawing) {
  is_stopped = true;
  snprintf(drawing->why, drawing->why_size, "ended by Ctrl-C");
  return false;
}

static bool make_path(char path[DRAWING_PATH_BYTES], const char *folder, const char *name,
                      const char *suffix) {
  errno = ENAMETOOLONG;
  return (size_t)snprintf(path, DRAWING_PATH_BYTES, "%s/%s%s", folder, name, suffix) < DRAWING_PATH_BYTES;
}

bool drawing_begin(drawing *drawing, const plot_style *style, const char *folder, char *why,
                   size_t why_size) {
  *drawing = (struct drawing){.style = style, .folder = folder, .why = why, .why_size = why_size};
  if (is_stopped) return stop(drawing);
  if (!make_path(drawing->temporary, folder, ".plots-XXXXXX", ""))
    return fail(drawing, "cannot write", folder);
  if (!mkdtemp(drawing->temporary)) return fail(drawing, "cannot write pictures into", folder);
  drawing->catches = !interrupt_asked();
  if (drawing->catches) interrupt_catch();
  return true;
}

void drawing_end(const drawing *drawing) {
  char path[DRAWING_PATH_BYTES];
  DIR *folder = opendir(drawing->temporary);
  for (const struct dirent *file; folder && (file = readdir(folder));)
    if (file->d_type != DT_DIR && make_path(path, drawing->temporary, file->d_name, "")) unlink(path);
  if (folder) closedir(folder);
  rmdir(drawing->temporary);
  if (drawing->catches) interrupt_release();
}

static bool put_file(const char *path, const drawing_picture *picture) {
  FILE *out = fopen(path, "w");
  if (!out) return false;
  picture->put_data(picture->what, out);
  const bool good = !ferror(out);
  return fclose(out) == 0 && good;
}

static bool put_settings(const drawing *drawing, const drawing_picture *picture, const char *path,
                         const char *data, const char *output, const char *format) {
  FILE *out = fopen(path, "w");
  if (!out) return false;
  caption_string(out, "scripts", drawing->style->scripts);
  caption_string(out, "data", data);
  caption_string(out, "format", format);
  caption_string(out, "output", output);
  fprintf(out, "font_scale = %.5f\n", drawing_scale(drawing->style));
  fprintf(out, "array caption[%d]\narray caption_colour[%d]\n", CAPTIONS_MOST, CAPTIONS_MOST);
  picture->put_settings(picture->what, drawing->style, out);
  const bool good = !ferror(out);
  return fclose(out) == 0 && good;
}

static bool draw_format(const drawing *drawing, const drawing_picture *picture, const char *data,
                        const char *format) {
  char script[DRAWING_PATH_BYTES], common[DRAWING_PATH_BYTES], settings[DRAWING_PATH_BYTES],
      drawn[DRAWING_PATH_BYTES], place[DRAWING_PATH_BYTES], complaints[DRAWING_PATH_BYTES], suffix[8];
  snprintf(suffix, sizeof suffix, ".%s", format);
  if (!make_path(script, drawing->style->scripts, picture->script, ".gp") ||
      !make_path(common, drawing->style->scripts, "common", ".gp") ||
      !make_path(settings, drawing->temporary, picture->name, ".gp") ||
      !make_path(complaints, drawing->temporary, "complaints", "") ||
      !make_path(drawn, drawing->temporary, picture->name, suffix) ||
      !make_path(place, drawing->folder, picture->name, suffix))
    return fail(drawing, "cannot write", drawing->folder);
  if (access(script, R_OK) != 0 || access(common, R_OK) != 0)
    return fail(drawing, "cannot read the script of a picture,", access(script, R_OK) != 0 ? script : common);
  if (!put_settings(drawing, picture, settings, data, drawn, format))
    return fail(drawing, "cannot write", settings);
  const char *const files[] = {common, settings, script};
  if (!gnuplot_run(files, complaints, drawing->why, drawing->why_size)) return false;
  return replace_rename(drawn, place) == 0 || fail(drawing, "cannot write", place);
}

bool drawing_make(const drawing *drawing, const drawing_picture *picture) {
  const plot_style *style = drawing->style;
  const size_t count = style->format_count ? style->format_count : 2;
  const char *const *formats = style->format_count ? style->formats : all_formats;
  char data[DRAWING_PATH_BYTES];
  if (!make_path(data, drawing->temporary, picture->name, ".dat") || !put_file(data, picture))
    return fail(drawing, "cannot write", data);
  for (size_t n = 0; n < count; n++) {
    const bool drawn = draw_format(drawing, picture, data, formats[n]);
    if (drawing->catches && interrupt_asked()) return stop(drawing); /* which may have ended gnuplot, too */
    if (!drawn) return false;
  }
  return true;
}
