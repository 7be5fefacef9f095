/* Variants that are functions of Python, as a plugin: the program that loads it is a child of the Python process
 * whose functions they are. Their device is memory that both processes map, so that nothing is copied between them,
 * and run asks the parent over a socket to run the function, which answers in words and seconds.
 *
 * ATTNBENCH_PYTHON says what to map and to ask, and what the variants are: a line "SOCKET MEMORY BYTES FLOPS", two
 * descriptors that were inherited, the size and how many operations a second a function makes at least, and for each
 * variant a line "NAME FUNCTION FEATURES TYPES TRAITS EXPONENT LIMITS SUMMARY". Questions and answers are a line each
 * (bindings/python/attnbench/_server.py). */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "variants/attention.h"
#include "variants/device.h"

enum { MOST_VARIANTS = 16, TEXT_BYTES = 256, MESSAGE_BYTES = 8192, MOST_BLOCKS = 64 };

/* What a function does not take that no feature says. */
enum { ONLY_CAUSAL = 1, NO_SHARED_KEYS = 2, ASKED = 4 };

static struct {
  int socket;
  unsigned char *memory;
  size_t bytes;
} with = {.socket = -1};

static attn_variant functions[MOST_VARIANTS];
static char names[MOST_VARIANTS][TEXT_BYTES], summaries[MOST_VARIANTS][TEXT_BYTES];
static unsigned limits[MOST_VARIANTS];
static const attn_variant *listed[MOST_VARIANTS];

/* Filled in as the plugin is loaded; nobody else writes to it. */
attn_table table = {ATTN_INTERFACE_VERSION, 0, listed, NULL};
extern const attn_table attn_plugin __attribute__((alias("table"), visibility("default")));

/* ---- questions ---- */

static char failure[TEXT_BYTES]; /* of the last run */
static double seconds;           /* that functions took since start_clock */

static size_t number_of(const attn_variant *variant) { return (size_t)(variant - functions); }

__attribute__((format(printf, 3, 4))) static void add(char *message, size_t *used, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(message + *used, MESSAGE_BYTES - *used, format, arguments);
  va_end(arguments);
  if (length > 0 && *used + (size_t)length < MESSAGE_BYTES) *used += (size_t)length;
}

/* Where something lies in the memory; -1: it is not there. */
static int64_t place(const void *data) {
  return data ? (const unsigned char *)data - with.memory : (int64_t)-1;
}

/* A list of the problem lies in the memory of either process, so that its numbers are sent. */
static void add_list(char *message, size_t *used, const char *name, const int64_t *numbers, int64_t number) {
  add(message, used, ",\"%s\":%s", name, numbers ? "[" : "null");
  for (int64_t n = 0; numbers && n < number; n++) add(message, used, "%s%" PRId64, n ? "," : "", numbers[n]);
  if (numbers) add(message, used, "]");
}

static void add_tensor(char *message, size_t *used, const char *name, const attn_layout *layout,
                       const void *data) {
  if (layout->type)
    add(message, used, ",\"%s\":[%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]", name,
        (int)layout->type, layout->batch, layout->head, layout->position, place(data));
}

/* Sends a call, as JSON without anything that a string could hide. */
static size_t describe_call(char *message, const char *question, unsigned id, const attn_call *call) {
  const attn_problem *p = call->problem;
  const attn_tensors *t = &call->tensors;
  size_t used = 0;
  add(message, &used, "{\"ask\":\"%s\",\"id\":%u,\"pid\":%d,\"variant\":%zu,\"threads\":%d,\"function\":%d",
      question, id, (int)getpid(), number_of(call->variant), call->threads, (int)p->function);
  add(message, &used,
      ",\"sizes\":[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]",
      p->batch, p->query_heads, p->kv_heads, p->query_length, p->key_length, p->head_dim, p->value_dim);
  add(message, &used, ",\"numbers\":[%.17g,%.17g,%.17g]", p->scale, p->softcap, p->epsilon);
  add(message, &used, ",\"band\":[%" PRId64 ",%" PRId64 ",%" PRId64 "],\"features\":%" PRIu64, p->left,
      p->right, p->offset, p->features);
  add_list(message, &used, "offsets", p->offsets, p->batch);
  add_list(message, &used, "key_lengths", p->key_lengths, p->batch);
  add(message, &used, ",\"tensors\":{\"\":null");
  add_tensor(message, &used, "query", &p->query, t->query);
  add_tensor(message, &used, "key", &p->key, t->key);
  add_tensor(message, &used, "value", &p->value, t->value);
  add_tensor(message, &used, "mask", &p->mask, t->mask);
  add_tensor(message, &used, "bias", &p->bias, t->bias);
  add_tensor(message, &used, "output", &p->output, t->output);
  add_tensor(message, &used, "lse", &p->lse, t->lse);
  add_tensor(message, &used, "weights", &p->weights, t->weights);
  add_tensor(message, &used, "sink", &p->sink, t->sink);
  add(message, &used, "}}");
  return used;
}

/* Numbers with blanks behind them, all of which a double holds; the text goes on behind them. False where one is missing. */
static bool read_numbers(const char **text, double *numbers, int how_many) {
  for (int n = 0; n < how_many; n++) {
    char *end;
    numbers[n] = strtod(*text, &end);
    if (end == *text) return false;
    *text = end + (*end == ' ');
  }
  return true;
}

/* The words behind the answer's numbers, which are PID ID SECONDS. An answer to a question that this process did not ask was
 * for one that was ended while it waited. NULL: Python is not there any more. */
static const char *receive(unsigned id, char answer[MESSAGE_BYTES], double *took) {
  for (;;) {
    const ssize_t length = recv(with.socket, answer, MESSAGE_BYTES - 1, 0);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return NULL;
    answer[length] = '\0';
    const char *text = answer;
    double numbers[3];
    if (!read_numbers(&text, numbers, 3) || numbers[0] != getpid() || numbers[1] != id) continue;
    *took = numbers[2];
    return text;
  }
}

static const char *ask(const char *message, size_t length, unsigned id, char answer[MESSAGE_BYTES],
                       double *took) {
  while (send(with.socket, message, length, MSG_NOSIGNAL) < 0)
    if (errno != EINTR) return NULL;
  return receive(id, answer, took);
}

static const char *ask_about(const char *question, const attn_call *call, char answer[MESSAGE_BYTES],
                             double *took) {
  static unsigned asked;
  char message[MESSAGE_BYTES];
  const size_t length = describe_call(message, question, ++asked, call);
  return ask(message, length, asked, answer, took);
}

/* ---- variants ---- */

static void run(const attn_call *call) {
  char answer[MESSAGE_BYTES];
  double took = 0;
  const char *words = ask_about("run", call, answer, &took);
  if (!words) words = "the Python process is not there any more";
  seconds += took;
  if (*words && !failure[0]) snprintf(failure, sizeof failure, "%s", words);
}

/* The harness keeps the pointer, so that each reason stays where it is. */
static const char *kept(const char *reason) {
  static char *reasons[256];
  size_t n = 0;
  while (n < sizeof reasons / sizeof *reasons && reasons[n] && strcmp(reasons[n], reason) != 0) n++;
  if (n == sizeof reasons / sizeof *reasons) return "does not take it";
  if (!reasons[n]) reasons[n] = strdup(reason);
  return reasons[n] ? reasons[n] : "does not take it";
}

static const char *unsupported(const attn_call *call) {
  const attn_problem *p = call->problem;
  const unsigned limit = limits[number_of(call->variant)];
  const bool is_causal = p->left == ATTN_UNLIMITED && p->right == 0;
  if (limit & ONLY_CAUSAL && p->features & ATTN_BAND && !is_causal) return "takes no band but a causal one";
  if (limit & NO_SHARED_KEYS && p->query_heads != p->kv_heads)
    return "takes as many key/value heads as query heads";
  if (!(limit & ASKED)) return NULL;
  char answer[MESSAGE_BYTES];
  double took;
  const char *words = ask_about("takes", call, answer, &took);
  if (!words) return "the Python process is not there any more";
  return *words ? kept(words) : NULL;
}

/* ---- the device ---- */

/* Blocks in use, in the order of their places; each has a guard on both sides. */
static struct block { size_t start, bytes; /* of what was asked for */ } blocks[MOST_BLOCKS];
static size_t block_count;

enum { GUARD = 256, CANARY = 0xa5 };

static size_t end_of(const struct block *block) {
  return (block->start + block->bytes + GUARD + GUARD - 1) / GUARD * GUARD;
}

/* A program and those that it starts to shrink a failure take turns, and have no block when another one begins. */
static void *allocate(size_t bytes) {
  size_t at = 0, n = 0;
  if (block_count == MOST_BLOCKS || bytes > with.bytes) return NULL;
  for (; n < block_count && blocks[n].start - GUARD < at + bytes + 3 * (size_t)GUARD; n++)
    at = end_of(&blocks[n]);
  if (with.bytes - at < bytes + 3 * (size_t)GUARD) return NULL;
  memmove(&blocks[n + 1], &blocks[n], (block_count - n) * sizeof *blocks);
  block_count++;
  blocks[n] = (struct block){at + GUARD, bytes};
  unsigned char *memory = with.memory + at + GUARD;
  memset(memory - GUARD, CANARY, GUARD);
  memset(memory + bytes, CANARY, GUARD);
  return memory;
}

static struct block *block_of(const void *memory) {
  const size_t start = (size_t)place(memory);
  for (size_t n = 0; n < block_count; n++)
    if (blocks[n].start == start) return &blocks[n];
  abort();
}

static void release(void *memory) {
  struct block *block = block_of(memory);
  const size_t worth_it = (size_t)16 << 20, page = 4096;
  /* Pages of a large one go back, for the memory is as large as the machine's. */
  if (block->bytes > worth_it) {
    const size_t first = (block->start + page - 1) / page * page,
                 end = (block->start + block->bytes) / page * page;
    (void)madvise(with.memory + first, end - first, MADV_REMOVE);
  }
  const size_t n = (size_t)(block - blocks);
  memmove(block, block + 1, (--block_count - n) * sizeof *block);
}

static bool is_whole(const void *memory) {
  const struct block *block = block_of(memory);
  const unsigned char *data = memory;
  for (size_t n = 0; n < GUARD; n++)
    if (data[n - GUARD] != CANARY || data[block->bytes + n] != CANARY) return false;
  return true;
}

static void copy(void *to, const void *from, size_t bytes) {
  if (bytes) memcpy(to, from, bytes);
}

static int count(char *why, size_t why_size) {
  if (with.memory) return 1;
  snprintf(why, why_size, "it is loaded by attnbench.verify and the like, in Python");
  return 0;
}

/* Asks whether Python is ready: what a process that was ended has asked before has then been answered, and nobody writes to
 * the memory any more. */
static bool open_device(int index, char *words, size_t words_size) {
  char message[TEXT_BYTES], answer[MESSAGE_BYTES];
  double took;
  size_t used = 0;
  (void)index;
  if (!with.memory) return count(words, words_size) > 0;
  add(message, &used, "{\"ask\":\"ready\",\"id\":0,\"pid\":%d}", (int)getpid());
  const char *said = ask(message, used, 0, answer, &took);
  snprintf(words, words_size, "%s", said ? said : "the Python process is not there any more");
  return said != NULL;
}

static void *stream(void) { return NULL; }
static void keep_to(const char *isa) { (void)isa; }
static const char *wait_for_all(void) {
  static char words[TEXT_BYTES];
  memcpy(words, failure, sizeof words);
  failure[0] = '\0';
  return words[0] ? words : NULL;
}
static void start_clock(void) { seconds = 0; }
static double stop_clock(void) { return seconds; }
static bool is_lost(void) { return false; }
static void describe(attn_device_facts *facts) { *facts = (attn_device_facts){.name = "Python"}; }
static void flush(void) {}
static void look(attn_device_state *state) { *state = (attn_device_state){NAN, NAN, NAN, ""}; }

/* Not const: how fast functions are stands in the environment. */
attn_device device = {.size = sizeof(attn_device),
                      .kind = "python",
                      .count = count,
                      .open = open_device,
                      .allocate = allocate,
                      .release = release,
                      .is_whole = is_whole,
                      .write = copy,
                      .read = copy,
                      .stream = stream,
                      .keep_to = keep_to,
                      .wait = wait_for_all,
                      .start_clock = start_clock,
                      .stop_clock = stop_clock,
                      .is_lost = is_lost,
                      .describe = describe,
                      .flush = flush,
                      .look = look};
extern const attn_device attn_plugin_device __attribute__((alias("device"), visibility("default")));

/* ---- as it is loaded ---- */

/* "NAME FUNCTION FEATURES TYPES TRAITS EXPONENT LIMITS SUMMARY" */
static void read_variant(const char *line) {
  const size_t n = table.count, length = strcspn(line, " ");
  const char *text = line + length + 1;
  double said[6];
  if (n == MOST_VARIANTS || !line[length] || !read_numbers(&text, said, 6)) return;
  snprintf(names[n], sizeof names[n], "%.*s", (int)length, line);
  snprintf(summaries[n], sizeof summaries[n], "%s", text);
  limits[n] = (unsigned)said[5];
  functions[n] = (attn_variant){.name = names[n],
                                .summary = summaries[n],
                                .function = (attn_function)said[0],
                                .features = (uint64_t)said[1],
                                .types = (uint32_t)said[2],
                                .place = ATTN_CUDA,
                                .traits = (uint32_t)said[3],
                                .time_exponent = (int)said[4],
                                .unsupported = unsupported,
                                .run = run};
  listed[n] = &functions[n];
  table.count++;
}

__attribute__((constructor)) static void read_environment(void) {
  const char *said = getenv("ATTNBENCH_PYTHON");
  char *text = said ? strdup(said) : NULL, *rest = NULL;
  const char *line = text ? strtok_r(text, "\n", &rest) : NULL;
  double numbers[4];
  if (line && read_numbers(&line, numbers, 4)) {
    with.socket = (int)numbers[0];
    with.bytes = (size_t)numbers[2];
    device.flops_per_second = numbers[3];
    void *mapped =
        mmap(NULL, with.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, (int)numbers[1], 0);
    with.memory = mapped == MAP_FAILED ? NULL : mapped;
    while (with.memory && (line = strtok_r(NULL, "\n", &rest))) read_variant(line);
  }
  free(text);
}
