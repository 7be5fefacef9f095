/* See complaint.h. */
#include "complaint.h"

#include <stdarg.h>
#include <stdio.h>

bool wrong(complaint to, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (to.size > 0) vsnprintf(to.text, to.size, format, arguments);
  va_end(arguments);
  return false;
}
