/* page.css and page.js as they stand beside this file, within the program: a page has to open from disk, alone, wherever the
 * program was installed from. The assembler reads them; the Makefile knows that this file depends on them. */
#include "page_parts.h"

#define EMBED(name, path)                                                                                    \
  __asm__(".section .rodata\n"                                                                               \
          "attn_" #name ":\n"                                                                                \
          ".incbin \"" path "\"\n"                                                                           \
          ".byte 0\n"                                                                                        \
          ".previous\n"                                                                                      \
          ".globl attn_" #name "\n"                                                                          \
          ".hidden attn_" #name "\n");                                                                       \
  extern const char attn_##name[]

EMBED(page_css, "harness/report/page.css");
EMBED(page_js, "harness/report/page.js");

void page_put_style(FILE *out) { fputs(attn_page_css, out); }

void page_put_script(FILE *out) { fputs(attn_page_js, out); }
