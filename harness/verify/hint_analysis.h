/* What of the wrong rows tells the mistake where no row of the table does: one key, another row's answer, a factor,
 * how large the errors are, and where. */
#ifndef ATTN_HARNESS_HINT_ANALYSIS_H
#define ATTN_HARNESS_HINT_ANALYSIS_H

#include "hint_rows.h"
#include "hint_words.h"

/* Each leaves a hint and is true where it finds what it is named for. */
bool hint_of_empty_rows(const hint_rows *rows, hint *found);
bool hint_of_unwritten(const hint_rows *rows, hint *found);
bool hint_of_one_key(const hint_rows *rows, hint *found);
bool hint_of_other_rows(const hint_rows *rows, hint *found);
bool hint_of_a_factor(const hint_rows *rows, hint *found);
bool hint_of_nonfinite(const hint_rows *rows, hint *found);
bool hint_of_columns(const hint_rows *rows, hint *found);
bool hint_of_precision(const hint_rows *rows, hint *found);
bool hint_of_lse(const hint_rows *rows, hint *found);
bool hint_of_places(const hint_rows *rows, hint *found);

__attribute__((format(printf, 3, 4))) bool hint_say(hint *found, const char *kind, const char *words, ...);

#endif
