/* See parts.h. */
#define _GNU_SOURCE
#include "parts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef ATTN_SCRIPTS
#define ATTN_SCRIPTS "../scripts"
#endif

bool parts_program(char path[PARTS_PATH_BYTES]) {
  const ssize_t length = readlink("/proc/self/exe", path, PARTS_PATH_BYTES - 1);
  path[length > 0 && length < PARTS_PATH_BYTES - 1 ? length : 0] = '\0';
  return path[0] != '\0';
}

bool parts_find(const char *name, char path[PARTS_PATH_BYTES]) {
  static const char *const places[] = {"", "../lib/attnbench/", "../share/attnbench/", ATTN_SCRIPTS "/"};
  char program[PARTS_PATH_BYTES], tried[PARTS_PATH_BYTES];
  path[0] = '\0';
  if (!parts_program(program)) return false;
  strrchr(program, '/')[1] = '\0';
  for (size_t n = 0; n < sizeof places / sizeof *places; n++) {
    const int length = snprintf(tried, sizeof tried, "%s%s%s", program, places[n], name);
    if (length < 0 || (size_t)length >= sizeof tried) continue;
    const bool found = access(tried, R_OK) == 0;
    if (found || n == 0) memcpy(path, tried, (size_t)length + 1);
    if (found) return true;
  }
  return false;
}
