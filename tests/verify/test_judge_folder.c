/* attnbench dump and judge as people type them: the folder is made whole or not at all, and each way in which folder
 * or arrays are unsound gets one sentence. One key alone: the output is its value, so that v.npy is the right answer. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/shell.h"

static char folder[] = "/tmp/attnbench-test-judge-XXXXXX";

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return shell(command);
}

/* Runs commands in the folder; `attnbench` there is the program. */
__attribute__((format(printf, 3, 4))) static void expect(int status, const char *words, const char *format,
                                                         ...) {
  char command[4096], line[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  snprintf(command, sizeof command, "cd %s && export PATH=%s:$PATH && %s", folder, ATTN_BUILD_DIR, line);
  shell_expect(command, status, words);
  if (status == 2 && (strncmp(shell_output, "attnbench: ", 11) != 0 ||
                      strchr(shell_output, '\n') != strrchr(shell_output, '\n')))
    fail_msg("%s: no single sentence: %s", line, shell_output);
}

#define ONE_KEY "full/B:2/H:3/Hkv:3/D:4/T:1"

static void one_key_gives_its_value_and_nothing_else(void **state) {
  (void)state;
  expect(0, "The inputs lie in one", "attnbench dump " ONE_KEY " --out one");
  expect(0, "right: " ONE_KEY, "attnbench judge one --output one/v.npy");
  expect(1, "WRONG: ", "attnbench judge one --output one/k.npy");
  expect(1, "of the bound", "attnbench judge one --output one/q.npy");
  expect(0, "right: ", "cp one/v.npy o.npy && attnbench judge one/ --output=o.npy");
}

/* Where no query sees a key the output is its bias. */
static void a_layer_is_judged_from_a_folder(void **state) {
  (void)state;
  expect(0, "The inputs lie in layer",
         "attnbench dump layer/full/B:1/H:1/D:8/M:8/T:3/biases/lengths:0 --out layer");
  expect(0, NULL,
         "grep -q '\"model_dim\": 8' layer/problem.json && { head -c 128 layer/q.npy; for row in 1 2 3; do "
         "tail -c 32 "
         "layer/b_o.npy; done; } >layer/y.npy");
  expect(0, "right: layer/full/B:1/H:1/Hkv:1/D:8/M:8/T:3/lengths:0/biases: output of 3 rows",
         "attnbench judge layer --output layer/y.npy");
  expect(1, "worst: output[", "attnbench judge layer --output layer/q.npy");
  expect(2, "layer/w_o.npy is of shape [8, 8]: the output of this problem is [1, 3, 8]",
         "attnbench judge layer --output layer/w_o.npy");
  expect(0, NULL, "rm -r layer");
}

/* Of one key the weight is 1 whatever its score: the gradient of the value is that of the output, those of query and
 * key are 0. */
static void gradients_are_judged_from_a_folder(void **state) {
  (void)state;
  expect(0, "The inputs lie in grad", "attnbench dump backward/" ONE_KEY " --out grad");
  expect(0, NULL,
         "mkdir g && cp grad/output_grad.npy g/value_grad.npy && for x in query key; do "
         "{ head -c 128 grad/q.npy; head -c 96 /dev/zero; } >g/${x}_grad.npy; done");
  expect(0, "right: backward/" ONE_KEY ": query_grad, key_grad, value_grad of 18 rows",
         "attnbench judge grad --gradients g");
  expect(1, "WRONG: backward/", "cp grad/v.npy g/value_grad.npy && attnbench judge grad --gradients g");
  expect(1, "worst: value_grad[", "attnbench judge grad --gradients g");
  expect(2, "give --gradients FOLDER", "attnbench judge grad --output grad/v.npy");
  expect(2, "give --output o.npy", "attnbench judge one --gradients g");
  expect(2, "g/key_grad.npy: No such file", "rm g/key_grad.npy && attnbench judge grad --gradients g");
  expect(0, NULL, "rm -r grad g");
}

#define NO_KEY "linear/causal/B:1/H:2/D:8/Tq:0/Tk:3/lengths:0/state/final_state"

/* Where no key exists the states are what they were. */
static void final_states_are_judged_from_a_folder(void **state) {
  (void)state;
  expect(0, "The inputs lie in linear", "attnbench dump " NO_KEY " --out linear");
  expect(0, NULL,
         "mkdir s && cp linear/state.npy s/final_state.npy && cp linear/state_sum.npy s/final_state_sum.npy");
  expect(0, "right: ", "attnbench judge linear --output linear/q.npy --states s");
  expect(0, "final_state, final_state_sum", "attnbench judge linear --output linear/q.npy --states s");
  expect(2, "asks for final states: give --states FOLDER", "attnbench judge linear --output linear/q.npy");
  expect(2, "asks for no final states: leave --states out",
         "attnbench judge one --output one/v.npy --states s");
  expect(1, "worst: final_state[",
         "{ head -c 128 s/final_state.npy; head -c 512 /dev/zero; } >s/zeros.npy && mv s/zeros.npy "
         "s/final_state.npy && "
         "attnbench judge linear --output linear/q.npy --states s");
  expect(2, "s/final_state_sum.npy: No such file",
         "rm s/final_state_sum.npy && attnbench judge linear --output linear/q.npy --states s");
  expect(0, NULL, "rm -r linear s");
}

static void the_verdict_is_json_too(void **state) {
  (void)state;
  expect(0, NULL, "attnbench dump " ONE_KEY " --out json");
  expect(1, NULL, "attnbench judge json --output json/k.npy --json");
  json_error_t error;
  json_t *verdict = json_loads(shell_output, 0, &error);
  if (!verdict) fail_msg("%s: %s", error.text, shell_output);
  assert_true(json_is_false(json_object_get(verdict, "ok")));
  assert_true(json_number_value(json_object_get(json_object_get(verdict, "worst"), "share")) > 1);
  assert_string_equal(json_string_value(json_object_get(json_object_get(verdict, "worst"), "tensor")),
                      "output");
  assert_true(json_integer_value(json_object_get(verdict, "wrong_elements")) > 0);
  json_decref(verdict);
}

static void every_type_of_input_goes_out_and_comes_back(void **state) {
  (void)state;
  static const char *const types[] = {"f32", "bf16", "f16"};
  for (int n = 0; n < 3; n++) {
    expect(0, NULL, "attnbench dump " ONE_KEY "/%s/seed:7 --out t%s", types[n], types[n]);
    expect(0, "right: ", "attnbench judge t%s --output t%s/v.npy", types[n], types[n]);
  }
  /* What is wider is rounded to the type of the problem; what is of another type of 16 bits is not. */
  expect(2, "must be bfloat16, as the problem says", "attnbench judge tbf16 --output tf16/v.npy");
  expect(2, "has elements '<u2': the problem says float16", "attnbench judge tf16 --output tbf16/v.npy");
}

static void a_folder_says_all_that_its_problem_does(void **state) {
  (void)state;
  expect(0, NULL,
         "attnbench dump "
         "band:3,1,-2/B:2/H:4/Hkv:2/D:8/Dv:6/Tq:5/Tk:9/lengths:7,9/mask:q/bias:bh/sink/lse/softcap:2/"
         "scale:0.5/bf16 --out all --seed 9");
  expect(0, "bias.npy k.npy lengths.npy mask.npy problem.json q.npy sink.npy v.npy", "echo $(ls all)");
  expect(0, "0 1", "echo $(tail -c 45 all/mask.npy | od -An -v -tu1 -w1 | sort -u)");
  expect(0, NULL, "cat all/problem.json");
  json_t *said = json_loads(shell_output, 0, NULL);
  assert_non_null(said);
  static const struct {
    const char *key;
    double number;
  } numbers[] = {{"batch", 2},    {"query_heads", 4}, {"kv_heads", 2}, {"query_length", 5}, {"key_length", 9},
                 {"head_dim", 8}, {"value_dim", 6},   {"scale", 0.5},  {"softcap", 2},      {"left", 3},
                 {"right", 1},    {"offset", -2},     {"seed", 9}};
  for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
    assert_true(json_number_value(json_object_get(said, numbers[n].key)) == numbers[n].number);
  json_t *key = json_object_get(json_object_get(said, "inputs"), "key");
  assert_string_equal(json_string_value(json_object_get(key, "file")), "k.npy");
  assert_string_equal(json_string_value(json_object_get(key, "type")), "bfloat16");
  assert_string_equal(json_string_value(json_object_get(key, "numpy")), "<u2");
  assert_int_equal(json_integer_value(json_array_get(json_object_get(key, "shape"), 1)), 2);
  assert_non_null(json_object_get(json_object_get(said, "outputs"), "lse"));
  json_decref(said);
}

static void nothing_that_is_there_is_touched(void **state) {
  (void)state;
  expect(0, NULL, "mkdir taken empty && echo mine >taken/notes && echo mine >file");
  expect(2, "--out taken is not empty; give a new folder", "attnbench dump full --out taken");
  expect(2, "--out file is no folder", "attnbench dump full --out file");
  expect(2, "the folder that you are in", "cd empty && attnbench dump full --out .");
  expect(2, "unknown part 'fulll'", "attnbench dump fulll --out new");
  expect(2, "head_dim is 0", "attnbench dump full/D:0 --out new");
  expect(2, "of memory are available", "attnbench dump full/B:4096/H:4096/T:65536/D:512 --out new");
  expect(2, "dump needs a problem and a folder", "attnbench dump --out new");
  expect(2, "dump needs a problem and a folder", "attnbench dump full");
  expect(2, "does not know what to do with 'causal'", "attnbench dump full causal --out new");
  expect(
      0, "empty file json one taken",
      "echo mine | cmp - taken/notes && echo mine | cmp - file && echo $(ls | grep -v '^t[bf]\\|all\\|npy')");
  expect(0, NULL,
         "attnbench dump full/T:3 --out empty && attnbench dump full/T:3 --out deep/er/new/ && test -f "
         "empty/v.npy && test -f deep/er/new/v.npy");
  expect(0, "1", "ls | grep -c empty");
}

static void a_disk_that_is_full_leaves_nothing(void **state) {
  (void)state;
  expect(2, "cannot be written", "ulimit -f 8; TMPDIR=/none attnbench dump full/T:512 --out limited");
  expect(1, NULL, "ls | grep limited");
}

static void a_folder_that_is_no_dump_gets_a_sentence(void **state) {
  (void)state;
  expect(0, NULL,
         "attnbench dump causal/B:2/H:2/D:4/T:3/lengths:2,3/sink/mask:1 --out sound && cp sound/v.npy o.npy");
  expect(1, "WRONG", "attnbench judge sound --output o.npy");
  static const struct {
    const char *change, *words;
  } cases[] = {
      {"rm problem.json", "has no problem.json"},
      {"echo nonsense >problem.json", "problem.json, line 1:"},
      {"echo '{}' >problem.json", "has no \"problem\""},
      {"echo '[1]' >problem.json", "has no \"problem\""},
      {"sed -i s/causal/casual/ problem.json", "unknown part 'casual'"},
      {"sed -i 's/\"scale\": 0.5/\"scale\": 1/' problem.json",
       "\"scale\" is not what its \"problem\" says; change that line"},
      {"sed -i s/T:3/T:4/ problem.json", "is not what its \"problem\" says"},
      {"rm k.npy", "k.npy: No such file"},
      {"cp sink.npy q.npy", "q.npy is of shape [2]: the problem says [2, 2, 3, 4]"},
      {"sed -i s/f4/i4/ v.npy", "v.npy is of type <i4: the problem says <f4"},
      {"truncate -s -1 v.npy",
       "v.npy: its shape [2, 2, 3, 4] of <f4 needs 192 bytes of data, and there are 191: it is cut off"},
      {"truncate -s +1 mask.npy", "goes on behind them"},
      {"sed -i 's/False/True /' k.npy", "k.npy is in Fortran order"},
      {"cp ../sound/v.npy lengths.npy", "lengths.npy is of shape"},
      {"printf '\\001' | dd of=lengths.npy bs=1 seek=128 conv=notrunc 2>/dev/null",
       "its numbers are not those of the \"problem\""},
  };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
    expect(2, cases[n].words,
           "rm -rf bad && cp -r sound bad && (cd bad && %s) && attnbench judge bad --output o.npy",
           cases[n].change);
  expect(2, "nowhere: No such file", "attnbench judge nowhere --output o.npy");
  expect(2, "o.npy is no folder", "attnbench judge o.npy --output o.npy");
  expect(2, "judge needs a folder and an output", "attnbench judge sound");
  expect(2, "judge needs a folder and an output", "attnbench judge --output o.npy");
}

static void arrays_that_are_no_answer_get_a_sentence(void **state) {
  (void)state;
  expect(0, NULL,
         "attnbench dump full/B:1/H:2/D:4/T:3 --out arrays && attnbench dump linear/B:1/H:2/D:4/T:3 --out "
         "other");
  expect(2, "none.npy: No such file", "attnbench judge arrays --output none.npy");
  expect(2, "is no .npy file", "attnbench judge arrays --output arrays/problem.json");
  expect(2, "is of shape [1, 2, 3, 4]: the log-sum-exp of this problem is [1, 2, 3]",
         "attnbench judge arrays --output arrays/v.npy --lse arrays/v.npy");
  expect(2, "the weights of this problem is [1, 2, 3, 3]",
         "attnbench judge arrays --output arrays/v.npy --weights arrays/v.npy");
  expect(2, "Fortran order",
         "sed 's/False/True /' arrays/v.npy >f.npy; attnbench judge arrays --output f.npy");
  expect(2, "is big-endian", "sed 's/<f4/>f4/' arrays/v.npy >g.npy; attnbench judge arrays --output g.npy");
  expect(2, "has elements '<i4': the problem says float32",
         "sed 's/<f4/<i4/' arrays/v.npy >i.npy; attnbench judge arrays --output i.npy");
  expect(2, "there is no option --outptu; the nearest is --output", "attnbench judge arrays --outptu o.npy");
}

static void inputs_of_ones_own_are_judged_by(void **state) {
  (void)state;
  expect(0, NULL, "attnbench dump " ONE_KEY " --out own && attnbench dump " ONE_KEY "/seed:5 --out five");
  expect(1, "WRONG", "attnbench judge own --output five/v.npy");
  expect(0, "right", "cp five/v.npy own/v.npy && attnbench judge own --output five/v.npy");
}

/* One row that sees one key gives that key's value, whichever key its list names; the list lies behind a header of 128 bytes. */
static void who_sees_whom_is_what_the_folder_says(void **state) {
  (void)state;
  expect(0, NULL, "attnbench dump full/B:1/H:1/D:4/Tq:1/Tk:8/topk:3 --out list");
  expect(0, "'descr': '<i4', 'fortran_order': False, 'shape': (1, 1, 1, 3), ",
         "head -c 128 list/topk.npy | tail -c 118");
  expect(0, "right: ",
         "attnbench dump full/B:1/H:1/D:4/Tq:1/Tk:8/topk:1 --out chosen && cp chosen/v.npy v.npy && "
         "head -c 128 chosen/topk.npy >head.npy && attnbench dump full/B:1/H:1/D:4/T:1 --out last_row && "
         "{ head -c 128 last_row/v.npy; tail -c 16 v.npy; } >last.npy && { cat head.npy; printf "
         "'\\7\\0\\0\\0'; } "
         ">chosen/topk.npy && attnbench judge chosen --output last.npy");
  expect(
      1, "WRONG: ",
      "{ cat head.npy; printf '\\6\\0\\0\\0'; } >chosen/topk.npy; attnbench judge chosen --output last.npy");
  expect(
      2, "topk[0, 0, 0, 0] is 8: it must be a key, 0 to 7, or -1 for none",
      "{ cat head.npy; printf '\\10\\0\\0\\0'; } >chosen/topk.npy; attnbench judge chosen --output last.npy");
  expect(2, "topk[0, 0, 0, 2] lists key 4 twice",
         "{ head -c 128 list/topk.npy; printf '\\1\\0\\0\\0\\4\\0\\0\\0\\4\\0\\0\\0'; } >two.npy; "
         "mv two.npy list/topk.npy; attnbench judge list --output last.npy");
  expect(0, NULL,
         "attnbench dump full/B:1/H:1/D:4/Tq:1/Tk:8/blocks:2,3 --out blocks && "
         "attnbench dump full/B:1/H:1/D:4/Tq:4/Tk:8/blocks:2,3 --out more");
  expect(2, "blocks.npy is of shape [1, 1, 2, 3]: the problem says [1, 1, 1, 3]",
         "cp more/blocks.npy blocks/blocks.npy; attnbench judge blocks --output last.npy");
}

static void what_a_pattern_says_is_in_the_folder(void **state) {
  (void)state;
  expect(0, "docs_k.npy docs_q.npy k.npy problem.json q.npy qlengths.npy v.npy",
         "attnbench dump full/B:2/H:1/D:4/T:8/see:local:2,inf+strided:4/docs:3/qlengths:8,3 --out pattern && "
         "echo $(ls pattern)");
  expect(0, NULL, "cat pattern/problem.json");
  json_t *said = json_loads(shell_output, 0, NULL);
  assert_non_null(said);
  json_t *local = json_array_get(json_object_get(said, "see"), 0);
  assert_string_equal(json_string_value(json_object_get(local, "term")), "local");
  assert_int_equal(json_integer_value(json_array_get(json_object_get(local, "numbers"), 0)), 2);
  assert_true(json_is_null(json_array_get(json_object_get(local, "numbers"), 1)));
  assert_int_equal(json_integer_value(json_array_get(json_object_get(said, "qlengths"), 1)), 3);
  json_t *documents = json_object_get(json_object_get(said, "inputs"), "query_documents");
  assert_string_equal(json_string_value(json_object_get(documents, "type")), "int32");
  json_decref(said);
  expect(0, "\"query_blocks\"", "cat more/problem.json");
  expect(0, "\"block\"", "cat more/problem.json");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_key_gives_its_value_and_nothing_else),
      cmocka_unit_test(a_layer_is_judged_from_a_folder),
      cmocka_unit_test(gradients_are_judged_from_a_folder),
      cmocka_unit_test(final_states_are_judged_from_a_folder),
      cmocka_unit_test(the_verdict_is_json_too),
      cmocka_unit_test(every_type_of_input_goes_out_and_comes_back),
      cmocka_unit_test(a_folder_says_all_that_its_problem_does),
      cmocka_unit_test(nothing_that_is_there_is_touched),
      cmocka_unit_test(a_disk_that_is_full_leaves_nothing),
      cmocka_unit_test(a_folder_that_is_no_dump_gets_a_sentence),
      cmocka_unit_test(arrays_that_are_no_answer_get_a_sentence),
      cmocka_unit_test(inputs_of_ones_own_are_judged_by),
      cmocka_unit_test(who_sees_whom_is_what_the_folder_says),
      cmocka_unit_test(what_a_pattern_says_is_in_the_folder),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
