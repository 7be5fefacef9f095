/* See hint_mistakes.h. */
#include "hint_mistakes.h"

const mistakes *const hint_mistakes[HINT_MISTAKES] = {
    &hint_mistakes_of_rows,   &hint_mistakes_of_parts, &hint_mistakes_of_sight,
    &hint_mistakes_of_scores, &hint_mistakes_of_keys,
};
