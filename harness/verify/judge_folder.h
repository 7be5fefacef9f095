/* The judge subcommand: a folder that dump wrote, and what a kernel anywhere gave for it. */
#ifndef ATTN_HARNESS_JUDGE_FOLDER_H
#define ATTN_HARNESS_JUDGE_FOLDER_H

#include <stdbool.h>
#include <stdio.h>

typedef struct judge_files {
  const char *folder;
  const char *output, *lse, *weights; /* .npy files; NULL: not given */
  const char *gradients;              /* or of the backward pass: a folder of query_grad.npy and so on */
  const char *states; /* where the problem asks for them: a folder of final_state.npy and so on */
} judge_files;

/* Prints the verdict, in words or as JSON. 0: right, 1: wrong; 2, with the reason in a sentence and nothing printed, where
 * nothing can be judged. The inputs are those that lie in the folder, whoever put them there. */
int judge_folder(const judge_files *files, bool as_json, FILE *out, char *why, size_t why_size);

#endif
