/* See hint_property.h. */
#include "hint_property.h"

#include <stdio.h>

/* What is varied, and nothing else is: who answers differently mistakes that. Of repetitions, threads, workspaces and
 * side effects nothing follows about the formula. */
static const hint of_property[PROPERTIES] = {
    [PROPERTY_ONES] = {"sum", "the weights of a row do not sum to one: what they are divided by"},
    [PROPERTY_BETWEEN] =
        {"sum", "an output lies beyond every value that its row sees: its weights sum to more than one"},
    [PROPERTY_HIDDEN] = {"hidden", "what stands in hidden keys and values reaches rows that cannot see them: "
                                   "they have to be left out, and not multiplied by 0"},
    [PROPERTY_WIDE] =
        {"band", "a band that hides nothing changes the answer: where its ends are, or what is done at them"},
    [PROPERTY_GROUPS] =
        {"heads",
         "shared keys and values, given to each head, change the answer: which of them a head reads"},
    [PROPERTY_ORDER] =
        {"maximum",
         "another order of the keys changes the answer: what is carried from one tile of keys to the next "
         "when the maximum rises"},
    [PROPERTY_SHIFT] =
        {"maximum",
         "a constant in the scores changes the answer: the row's maximum is not subtracted, or not the right "
         "one"},
    [PROPERTY_LAYOUT] =
        {"rows", "another order of the rows in memory changes the answer: where they are read or written"},
    [PROPERTY_HALVES] = {"lse", "two halves of the keys do not merge to the whole: their log-sum-exps"},
    [PROPERTY_COMPANY] =
        {"heads", "a row changes with the other heads and entries of the batch: what is shared by them"},
    [PROPERTY_SINK] = {"sink",
                       "a sink and a key of the same score, without a value, differ: what the sink joins"},
    [PROPERTY_DECODED] = {"rows", "a row changes with the other queries: what rows of a tile share"},
    [PROPERTY_BIAS] = {"bias", "a bias of -inf does not hide its key"},
    [PROPERTY_PATTERN] = {"pattern",
                          "the same keys, said in another way, give another answer: how the pattern is read"},
    [PROPERTY_POSITION] = {"bias", "what positions add differs from a bias of the same numbers"},
    [PROPERTY_ROPE] = {"rope", "the rotary embedding turns queries and keys by other than their positions"},
    [PROPERTY_GENERAL] = {"features",
                          "general scores by a matrix of one are not the product of query and key"},
    [PROPERTY_ADDITIVE] = {"features", "additive scores are not of the sums of queries and keys"},
    [PROPERTY_PARTS] =
        {"state",
         "a sequence in two parts, the state of the first handed to the second, is not the whole: what "
         "the state holds, or where it enters"},
    [PROPERTY_DROPOUT] = {"dropout", "a keep mask of ones with a p of 0 changes the answer"},
};

static bool find_by_answer(const altered *on, uint32_t traits, hint *found) {
  examination wrong;
  if (!on || on->expected.rows == 0 || !examine(&on->expected, traits, &wrong)) return false;
  if (wrong.wrong_elements > 0) hint_find(&on->expected, &wrong, found);
  examination_destroy(&wrong);
  return found->kind[0] != '\0';
}

void hint_find_of_property(property property, const altered *const ran[2], uint32_t traits, hint *found) {
  *found = (hint){0};
  if (property == PROPERTY_PARTS) { /* whose second part has inputs that its expected rows have not */
    *found = of_property[property];
    return;
  }
  if (!find_by_answer(ran[0], traits, found) && !find_by_answer(ran[1], traits, found))
    *found = of_property[property];
}
