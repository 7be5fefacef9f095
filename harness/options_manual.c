/* The manual page and what completes a command line in bash: the table of options once more, in the forms that man and
 * bash read. */
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "options.h"

/* ---- the manual page, in roff's macros for it ---- */

/* Signs that roff would take for its own; and what stands for a line's end. */
static void put_text(const char *text, const char *line_end, FILE *out) {
  for (; *text; text++) {
    if (*text == '\\')
      fputs("\\e", out);
    else if (*text == '-')
      fputs("\\-", out);
    else if (*text == '\'')
      fputs("\\(aq", out);
    else
      *text == '\n' ? fputs(line_end, out) : fputc(*text, out);
  }
}

/* In lines that the page makes itself. */
static void put_roff(const char *text, FILE *out) { put_text(text, " ", out); }

static void put_paragraph(const char *macro, const char *text, FILE *out) {
  fprintf(out, "%s\n\\&", macro);
  put_roff(text, out);
  fputc('\n', out);
}

static void put_group(const char *commands, FILE *out) {
  fputs(".SS Options of ", out);
  put_roff(commands, out);
  fputc('\n', out);
}

static void put_option(const option_row *row, FILE *out) {
  fputs(".TP\n\\fB", out);
  put_roff(row->name, out);
  fputs("\\fR", out);
  if (row->value) {
    fputs(" \\fI", out);
    put_roff(row->value, out);
    fputs("\\fR", out);
  }
  fputs("\n\\&", out);
  put_roff(row->help, out);
  fputc('\n', out);
}

/* What says more of a command than its line in the list does. */
static void put_command(const command_row *command, FILE *out) {
  fputs(".TP\n\\fBattnbench ", out);
  put_roff(command->usage, out);
  fputs("\\fR\n\\&", out);
  const char *about = command->about ? command->about : command->help;
  if (strstr(about, "\n ")) { /* lines that are indented stay as they are */
    fputs("\n.nf\n\\&", out);
    put_text(about, "\n\\&", out);
    fputs("\n.fi", out);
  } else {
    put_roff(about, out);
  }
  if (command->status) {
    fputs(" Status: ", out);
    put_roff(command->status, out);
  }
  fputc('\n', out);
}

void options_manual(FILE *out) {
  fputs(".TH ATTNBENCH 1 \"\" \"attnbench " ATTNBENCH_VERSION "\" \"attnbench\"\n"
        ".ad l\n" /* long words leave holes in lines that are spread */
        ".SH NAME\nattnbench \\- verify and measure attention kernels\n"
        ".SH SYNOPSIS\n.B attnbench\n[\\fICOMMAND\\fR] [\\fIOPTIONS\\fR]\n",
        out);
  put_paragraph(".SH DESCRIPTION", options_what_for, out);
  put_paragraph(".PP", options_how_to_give, out);
  fputs(".SH COMMANDS\n", out);
  for (unsigned n = 0; n < COMMAND_COUNT; n++)
    if (option_command((command)n)->visibility != HIDDEN) put_command(option_command((command)n), out);
  fputs(".SH OPTIONS\n", out);
  options_in_groups(option_public_commands(), put_group, put_option, out);
  put_paragraph(".SH EXIT STATUS", options_statuses, out);
}

/* ---- bash ---- */

/* Of a part of a problem line `choices` is what stands in front of it. */
static bool has_choices(const option_row *row) { return row->choices && row->kind != KIND_PART; }

static void put_choices(FILE *out) {
  size_t count;
  const option_row *rows = option_rows(&count);
  for (size_t i = 0; i < count; i++) {
    if (!has_choices(&rows[i])) continue;
    fprintf(out, "  %s) words='", rows[i].name);
    for (const char *at = rows[i].choices; *at; at++) fputc(*at == '|' ? ' ' : *at, out);
    fputs("' ;;\n", out);
  }
}

/* Behind these stands a value of one's own, where bash completes names of files. */
static void put_names_with_values(FILE *out) {
  const char *before = "  ";
  size_t count;
  const option_row *rows = option_rows(&count);
  for (size_t i = 0; i < count; i++) {
    if (!rows[i].value || has_choices(&rows[i]) || !(rows[i].commands & option_public_commands())) continue;
    fprintf(out, "%s%s", before, rows[i].name);
    before = " | ";
  }
  fputs(") return ;;\n", out);
}

static void put_names_of(command command, FILE *out) {
  size_t count;
  const option_row *rows = option_rows(&count);
  for (size_t i = 0; i < count; i++)
    if (rows[i].commands >> command & 1) fprintf(out, " %s", rows[i].name);
}

void options_completion(FILE *out) {
  const unsigned public = option_public_commands();
  fputs("# Completes command lines of attnbench in bash; written by `attnbench help --as bash`.\n"
        "_attnbench() {\n"
        "  local word=${COMP_WORDS[COMP_CWORD]} words=\n"
        "  COMPREPLY=()\n"
        "  case ${COMP_WORDS[COMP_CWORD - 1]} in\n",
        out);
  put_choices(out);
  put_names_with_values(out);
  fputs("  esac\n"
        "  [ -n \"$words\" ] || case ${COMP_WORDS[1]} in\n",
        out);
  for (unsigned n = 0; n < COMMAND_COUNT; n++) {
    if (!(public >> n & 1)) continue;
    fprintf(out, "  %s%s) words='--help", option_command((command)n)->name,
            n == COMMAND_BENCH ? " | -*" : "");
    put_names_of((command)n, out);
    if (n == COMMAND_HELP)
      for (unsigned other = 0; other < COMMAND_COUNT; other++)
        if (public >> other & 1) fprintf(out, " %s", option_command((command)other)->name);
    fputs("' ;;\n", out);
  }
  fputs("  esac\n"
        "  [ \"$COMP_CWORD\" -gt 1 ] || [ \"${word#-}\" != \"$word\" ] || words='",
        out);
  for (unsigned n = 0; n < COMMAND_COUNT; n++)
    if (public >> n & 1) fprintf(out, "%s ", option_command((command)n)->name);
  fputs("--help --version'\n"
        "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
        "}\n"
        "complete -o default -F _attnbench attnbench\n",
        out);
}
