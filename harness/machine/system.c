/* See system.h. */
#include "system.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

bool system_line(const char *path, char *line, size_t line_size) {
  FILE *file = fopen(path, "r");
  if (!file) return false;
  const bool found = fgets(line, (int)line_size, file) != NULL;
  fclose(file);
  if (found) line[strcspn(line, "\n")] = '\0';
  return found;
}

/* "model" is not "model name". */
static bool has_key(const char *line, const char *key) {
  const size_t length = strlen(key);
  if (strncmp(line, key, length) != 0) return false;
  return line[length + strspn(line + length, " \t")] == ':';
}

bool system_value(const char *path, const char *key, char *value, size_t value_size) {
  FILE *file = fopen(path, "r");
  char line[4096];
  bool found = false;
  while (file && !found && fgets(line, sizeof line, file)) {
    if (!has_key(line, key)) continue;
    line[strcspn(line, "\n")] = '\0';
    const char *text = strchr(line, ':') + 1;
    for (; isspace((unsigned char)*text); text++) {
    }
    snprintf(value, value_size, "%.*s", (int)value_size - 1, text);
    found = true;
  }
  if (file) fclose(file);
  return found;
}
