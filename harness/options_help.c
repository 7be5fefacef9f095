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

void options_in_groups(unsigned shown, void (*heading)(const char *commands, FILE *out),
                       void (*put)(const option_row *row, FILE *out), FILE *out) {
  size_t count;
  const option_row *rows = option_rows(&count);
  for (int members = COMMAND_COUNT; members > 0; members--)
    for (unsigned commands = 1; commands <= shown; commands++) {
      char names[256] = "";
      if (__builtin_popcount(commands) != members) continue;
      for (size_t i = 0; i < count; i++) {
        if ((rows[i].commands & shown) != commands) continue;
        if (!*names) {
          option_name_commands(commands, names, sizeof names);
          heading(names, out);
        }
        put(&rows[i], out);
      }
    }
}

static void print_heading(const char *commands, FILE *out) { fprintf(out, "\n%s\n", commands); }

const char options_what_for[] =
    "attnbench verifies attention kernels against a double-precision reference and measures how their\n"
    "time and memory grow with the sequence length T.";
const char options_how_to_give[] =
    "Options are given as --name VALUE or --name=VALUE; defaults stand in parentheses.\n";
const char options_statuses[] =
    "0 all is well, 1 a kernel is wrong, 2 nothing could be done, and one line says why.";

static void help_with_all(FILE *out) {
  fprintf(out, "%s\n\n", options_what_for);
  for (unsigned n = 0; n < COMMAND_COUNT; n++) {
    const command_row *row = option_command((command)n);
    if (row->visibility != HIDDEN) fprintf(out, "  attnbench %-21s %s\n", row->usage, row->help);
  }
  fprintf(out, "\n%sStatus: %s\n", options_how_to_give, options_statuses);
  unsigned shown = 0;
  for (unsigned n = 0; n < COMMAND_COUNT; n++)
    shown |= (unsigned)(option_command((command)n)->visibility == SHOWN) << n;
  options_in_groups(shown, print_heading, print_option, out);
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
  if (own) fputs(options_how_to_give, out);
  fprintf(out, "Status: %s\n%s", command->status ? command->status : options_statuses, own ? "\n" : "");
  for (size_t i = 0; i < count; i++)
    if (rows[i].commands >> about & 1) print_option(&rows[i], out);
}
