/* The inputs and outputs of a workload in memory. */
#ifndef ATTN_HARNESS_INPUTS_H
#define ATTN_HARNESS_INPUTS_H

#include "base/memory.h"
#include "tensors.h"
#include "workload.h"

/* The inputs and outputs of a workload, each in a guarded buffer of its own. */
typedef struct inputs {
  workload workload;
  attn_problem problem; /* points into this struct: do not copy an inputs */
  attn_tensors tensors;
  guarded buffers[TENSORS];
  guarded kept[TENSORS]; /* what inputs_keep keeps of each buffer, or empty */
  bool *owned;           /* [Tq] in a team: positions whose rows the last run has written here; NULL: all */
  struct inputs *before, *next; /* those that were made before and after it, and are still there */
  long away_at, away_bytes;     /* their place where they are put away; no bytes: none yet */
  bool is_away, rests;
} inputs;

/* False, with the reason in words, when the problem is not sound (attn_check_problem) or its memory
 * cannot be had. aligned: tensors begin at 64-byte boundaries, as in timing; else each ends at its
 * guard page, so that any overrun faults. The same workload gives the same bits everywhere. */
bool inputs_create(inputs *inputs, const workload *workload, bool aligned, char *why, size_t why_size);
void inputs_destroy(inputs *inputs);

/* inputs_create that draws nothing, for copies of other inputs: each input is then written or drawn (inputs_draw_tensor), and all are
 * kept (inputs_keep). */
bool inputs_create_undrawn(inputs *inputs, const workload *workload, bool aligned, char *why,
                           size_t why_size);

/* Fills one input; those that a forward pass leaves to its backward pass are drawn with all others alone. */
void inputs_draw_tensor(inputs *inputs, tensor_id id);

/* Moves the tensors of all inputs that inputs_create has made, and of these, into a file in folder_temporary, and back those
 * that do not rest: see guarded_put_away. False when there is no room for it; some may then be away. */
bool inputs_put_away(inputs *inputs);
bool inputs_bring_back(inputs *inputs);

/* Lets inputs stay away from when they are put away next until they are needed. Moving each time all that nobody looks at took
 * two thirds of the time of a team's verification. False where they cannot be read back. */
void inputs_rest(inputs *inputs);
bool inputs_need(inputs *inputs);

/* Whether the last run has written the row of this query here. */
static inline bool inputs_owns(const inputs *inputs, int64_t i) { return !inputs->owned || inputs->owned[i]; }

/* Fills the inputs again as their workload says, after its seed was changed. */
void inputs_draw(inputs *inputs);

/* Of inputs that are not aligned: moves every buffer to where the guard page before it ends, so that any
 * underrun faults. */
bool inputs_move_to_front(inputs *inputs, char *why, size_t why_size);

/* For inputs that were changed since they were made, or not drawn at all: keeps what they hold now, for inputs_restore.
 * False, with the reason in words, when memory is short. */
bool inputs_keep(inputs *inputs, char *why, size_t why_size);

/* After a run that wrote where it may not: gives all inputs the contents that they were made with, or that were kept,
 * and mends what surrounds the buffers of all tensors. */
void inputs_restore(inputs *inputs);

/* Poisons output, lse and weights. */
void inputs_poison_outputs(inputs *inputs);

/* A checksum of all inputs, to see that a run changed none. */
uint64_t inputs_checksum(const inputs *inputs);

/* Whether the inputs have this checksum, and what surrounds the buffers of all tensors is whole. */
bool inputs_are_whole(const inputs *inputs, uint64_t checksum);

/* A checksum of the bits of all outputs but the signs of NaNs, to see that two runs gave the same. */
uint64_t inputs_outputs_checksum(const inputs *inputs);

#endif
