/* The help: every command and option, or those of one command, from the table. */
#include "options.h"

#include <stdio.h>
#include <string.h>

static void print_option(const option_row *row, FILE *out) {
  enum { COLUMN = 42 };
  char left[80];
  snprintf(left, sizeof left, "  %s%s%s", row->name, row->value ? " " : "", row->value ? row->value : "");
  const char *second = strchr(row->help, '\n');
  int first_length = second ? (int)(second - row->help) : (int)strlen(row->help);
  fprintf(out, "%-*s %.*s\n", COLUMN, left, first_length, row->help);
  if (second) fprintf(out, "%-*s %s\n", COLUMN, "", second + 1);
}

/* The options of the commands that stand in everyone's help, by the set of commands that take them: the largest sets
 * first, then in the order of the commands. */
static void print_all_options(FILE *out) {
  unsigned shown = 0;
  size_t count;
  const option_row *rows = option_rows(&count);
  for (unsigned n = 0; n < COMMAND_COUNT; n++)
    shown |= (unsigned)(option_command((command)n)->visibility == SHOWN) << n;
  for (int members = COMMAND_COUNT; members > 0; members--)
    for (unsigned commands = 1; commands <= shown; commands++) {
      char heading[256] = "";
      if (__builtin_popcount(commands) != members) continue;
      for (size_t i = 0; i < count; i++) {
        if ((rows[i].commands & shown) != commands) continue;
        if (!*heading) {
          option_name_commands(commands, heading, sizeof heading);
          fprintf(out, "\n%s\n", heading);
        }
        print_option(&rows[i], out);
      }
    }
}

static const char how_to_give[] =
    "Options are given as --name VALUE or --name=VALUE; defaults stand in parentheses.\n";
static const char statuses[] =
    "0 all is well, 1 a kernel is wrong, 2 nothing could be done, and one line says why.";

static void help_with_all(FILE *out) {
  fputs("attnbench verifies attention kernels against a double-precision reference and measures how their\n"
        "time and memory grow with the sequence length T.\n\n",
        out);
  for (unsigned n = 0; n < COMMAND_COUNT; n++) {
    const command_row *row = option_command((command)n);
    if (row->visibility != HIDDEN) fprintf(out, "  attnbench %-21s %s\n", row->usage, row->help);
  }
  fprintf(out, "\n%sStatus: %s\n", how_to_give, statuses);
  print_all_options(out);
}

void options_help(command about, FILE *out) {
  if (about == COMMAND_HELP) {
    help_with_all(out);
    return;
  }
  const command_row *command = option_command(about);
  size_t count, own = 0;
  const option_row *rows = option_rows(&count);
  if (command->about)
    fprintf(out, "%s\n\n", command->about);
  else
    fprintf(out, "attnbench %s: %s\n\n", command->usage, command->help);
  for (size_t i = 0; i < count; i++) own += rows[i].commands >> about & 1;
  if (own) fputs(how_to_give, out);
  fprintf(out, "Status: %s\n%s", command->status ? command->status : statuses, own ? "\n" : "");
  for (size_t i = 0; i < count; i++)
    if (rows[i].commands >> about & 1) print_option(&rows[i], out);
}
