/* See option_table.h. */
#include "option_table.h"

#include <stdio.h>

#include "problem/workload.h"
#include "verify/hint_words.h"

#define NO_LIMIT_OF_WORDS SIZE_MAX

/* In the order in which the help lists them. */
static const command_row commands[COMMAND_COUNT] = {
    [COMMAND_BENCH] = {"bench", SHOWN, 0, "[bench] [options]",
                       "measure a sweep of T for each variant, each point verified first", NULL, NULL},
    [COMMAND_VERIFY] = {"verify", SHOWN, 0, "verify [options]",
                        "hold variants to the reference over a grid and random problems", NULL, NULL},
    [COMMAND_FUZZ] = {"fuzz", SHOWN, 0, "fuzz [options]", "random problems without end; shrink what fails",
                      NULL, NULL},
    [COMMAND_DUMP] = {"dump", SHOWN, 1, "dump PROBLEM --out FOLDER",
                      "write the inputs of a problem as .npy files, for a kernel in any language", NULL,
                      NULL},
    [COMMAND_JUDGE] =
        {"judge", SHOWN, 1, "judge FOLDER --output o.npy",
         "hold what such a kernel gave for them to the reference",
         "attnbench judge FOLDER --output o.npy [--lse l.npy] [--weights w.npy] [--json]: holds arrays from "
         "anywhere to the\n"
         "reference. FOLDER is what attnbench dump wrote; its inputs may have been replaced by others of the "
         "same shapes and\n"
         "types. Elements have the type that the problem gives the output (bfloat16: its 16 bits as <u2), or "
         "are <f4 or <f8,\n"
         "which are rounded to that first.\n"
         "A hint begins with its kind: " HINT_KINDS ".",
         "0 the arrays are right, 1 they are wrong, 2 nothing could be judged, and one line says why."},
    [COMMAND_LIST] = {"list", SHOWN, 0, "list", "variants, instruction sets and presets", NULL, NULL},
    [COMMAND_MACHINE] = {"machine", SHOWN, 0, "machine", "what this machine is and what it can do at best",
                         NULL, NULL},
    [COMMAND_PLOTS] = {"plots", SHOWN, 1, "plots RESULTS.json", "draw the pictures of a run again", NULL,
                       NULL},
    [COMMAND_REPORT] = {"report", SHOWN, 2, "report [BEFORE.json] RESULTS.json",
                        "make a page of a run, and of what differs from a former one", NULL, NULL},
    [COMMAND_MERGE] = {"merge", SHOWN, NO_LIMIT_OF_WORDS, "merge RESULTS...",
                       "make one report of a sweep's shards, or of the same sweep on several hosts", NULL,
                       NULL},
    [COMMAND_SHOW] =
        {"show", SHOWN, 1, "show PROBLEM", "draw who sees whom in one head of a problem, and its weights",
         "attnbench show PROBLEM [options]: draws who sees whom in one head of a problem, queries down the "
         "page and keys\n"
         "to the right, and counts the tiles that are empty, partial and full; --weights draws its attention "
         "weights too.\n"
         "PROBLEM is a line as help problem has it, or the name of a preset. Letters are printed; --out "
         "draws "
         "pictures.",
         NULL},
    [COMMAND_GATE] =
        {"gate", SHOWN_APART, 0, "gate --base A.so --head B.so",
         "is a kernel wrong, bigger or slower than before? gate --help lists its options",
         "attnbench gate --base A.so --head B.so [options]: holds the kernels of one shared object to those "
         "of another. It\n"
         "verifies the head, then counts what is exact of both, then times them beside each other, and says "
         "one verdict.\n"
         "In a clone of attnbench, `make gate` (scripts/gate.sh) builds both sides and calls it.",
         "0 nothing got worse, 1 something did, 2 it could not measure, 3 the controls moved."},
    [COMMAND_PROBLEM] = {"problem", SHOWN, 0, "problem", "how a problem is written; the same as help problem",
                         workload_grammar, NULL},
    [COMMAND_HELP] = {"help", SHOWN, 1, "help [COMMAND] [--as FORM]", "this text, or what one command takes",
                      NULL, NULL},
    [COMMAND_VERSION] = {"version", SHOWN, 0, "version", "the version, and the commit that it was built from",
                         NULL, NULL},
    [COMMAND_GATE_MEASURE] =
        {"gate-measure", HIDDEN, NO_LIMIT_OF_WORDS,
         "gate-measure [options] VARIANT PROBLEM THREADS ISA ITERATIONS AGAINST_ITSELF ...",
         "one measuring process of the gate", NULL, NULL},
    [COMMAND_COUNT_INSTRUCTIONS] = {"count-instructions", HIDDEN, NO_LIMIT_OF_WORDS,
                                    "count-instructions [options] VARIANT PROBLEM ...",
                                    "what is run under valgrind to count instructions", NULL, NULL},
};

enum {
  IN_BENCH = 1 << COMMAND_BENCH,
  IN_VERIFY = 1 << COMMAND_VERIFY,
  IN_FUZZ = 1 << COMMAND_FUZZ,
  IN_DUMP = 1 << COMMAND_DUMP,
  IN_JUDGE = 1 << COMMAND_JUDGE,
  IN_LIST = 1 << COMMAND_LIST,
  IN_MACHINE = 1 << COMMAND_MACHINE,
  IN_PLOTS = 1 << COMMAND_PLOTS,
  IN_REPORT = 1 << COMMAND_REPORT,
  IN_MERGE = 1 << COMMAND_MERGE,
  IN_SHOW = 1 << COMMAND_SHOW,
  IN_GATE = 1 << COMMAND_GATE,
  IN_HELP = 1 << COMMAND_HELP,
  IN_GATE_MEASURE = 1 << COMMAND_GATE_MEASURE,
  IN_COUNT_INSTRUCTIONS = 1 << COMMAND_COUNT_INSTRUCTIONS
};

/* Far beyond any memory, and small enough that sums of two sizes cannot overflow. */
#define LARGEST_SIZE (INT64_C(1) << 40)

#define AT(field) offsetof(options, field)
#define NO_LIMITS 0, 0, NULL
#define SIZES_FROM(minimum) minimum, LARGEST_SIZE, NULL
#define PATH 0, 4000, NULL /* so that a path of a file beside it fits into Linux's 4096 bytes */

static const option_row rows[] = {
    {"--variant", "NAME,...", IN_BENCH | IN_VERIFY | IN_FUZZ, KIND_WORDS, AT(variants), NO_LIMITS,
     "only these variants; repeatable (all)"},
    {"--plugin", "FILE.so", IN_BENCH | IN_VERIFY | IN_FUZZ | IN_LIST, KIND_ITEM, AT(plugins), NO_LIMITS,
     "add the variants of a shared object; repeatable"},
    {"--own", NULL, IN_VERIFY | IN_FUZZ, KIND_FLAG, AT(own), NO_LIMITS,
     "the program's own variants too; =false: those of plugins alone, which may then have their names "
     "(true)"},
    {"--device", "NAME", IN_BENCH | IN_VERIFY | IN_FUZZ | IN_LIST | IN_MACHINE, KIND_TEXT, AT(device),
     NO_LIMITS,
     "a device and its variants instead of the host's: cuda:0, the first GPU; emu, an emulated one"},
    {"--problem", "TEXT", IN_BENCH | IN_VERIFY | IN_FUZZ, KIND_ITEM, AT(problems), NO_LIMITS,
     "exactly this problem, such as causal/B:1/H:8/Hkv:2/D:64/T:1024 (help problem has all parts);\n"
     "repeatable in bench, verify; fuzz: shrink it, for the one variant named, which fails it"},
    {"--preset", "NAME,...", IN_BENCH, KIND_WORDS, AT(presets), NO_LIMITS,
     "attention shapes of real models; 'list' names them; repeatable"},
    {"--batch", "B", IN_BENCH, KIND_INTEGER, AT(batch), SIZES_FROM(1), "batch entries (1)"},
    {"--heads", "H", IN_BENCH, KIND_INTEGER, AT(heads), SIZES_FROM(1), "query heads (4)"},
    {"--kv-heads", "HKV", IN_BENCH, KIND_INTEGER, AT(kv_heads), SIZES_FROM(1),
     "key/value heads, a divisor of H (H; multi_query 1, grouped_query 2)"},
    {"--head-dim", "D", IN_BENCH, KIND_INTEGER, AT(head_dim), SIZES_FROM(1),
     "width of queries and keys (64)"},
    {"--value-dim", "DV", IN_BENCH, KIND_INTEGER, AT(value_dim), SIZES_FROM(1), "width of values (D)"},
    {"--lengths", "T,...", IN_BENCH, KIND_LENGTHS, AT(lengths), SIZES_FROM(1),
     "sequence lengths: numbers or ranges, A:B in doublings, A:B:xN, A:B:+N\n"
     "(128:8192; 128:65536 where time grows as T)"},
    {"--batches", "B,...", IN_BENCH, KIND_LENGTHS, AT(batches), SIZES_FROM(1),
     "growth in the batch: these, at the longest of --lengths (1024); numbers and ranges as there"},
    {"--head-dims", "D,...", IN_BENCH, KIND_LENGTHS, AT(head_dims), SIZES_FROM(1),
     "growth in the head dimension, the same way; values are as wide unless --value-dim says otherwise"},
    {"--query-length", "TQ", IN_BENCH, KIND_INTEGER, AT(query_length), SIZES_FROM(1),
     "as many queries at each length, the last ones; --lengths are then those of the keys: 1 for decoding "
     "(T)"},
    {"--causal", NULL, IN_BENCH, KIND_FLAG, AT(causal), NO_LIMITS, "a query sees no later key"},
    {"--window", "W", IN_BENCH, KIND_INTEGER, AT(window), SIZES_FROM(0),
     "a query sees itself and the W keys before it (sliding_window 512, others all)"},
    {"--band", "BAND", IN_BENCH, KIND_WORD, AT(parts), 0, 0, "full|causal|causal_bottom_right|window:|band:",
     "full, causal, causal_bottom_right, window:W or band:LEFT,RIGHT,OFFSET"},
    {"--layout", "NAME", IN_BENCH, KIND_PART, AT(parts), 0, 0,
     "layout:", "of tensors in memory: bhtd, bthd, shifted, padded or mixed (bhtd)"},
    {"--type", "NAME", IN_BENCH, KIND_WORD, AT(parts), 0, 0, "f32|bf16|f16|bf16/out:f32|f16/out:f32",
     "of elements; out:f32: of the output (f32)"},
    {"--mask", "AXES", IN_BENCH, KIND_PART, AT(parts), 0, 0,
     "mask:", "a random mask over these of b, h, q, and over keys; 1: over keys alone"},
    {"--bias", "AXES", IN_BENCH, KIND_PART, AT(parts), 0, 0, "bias:", "a random bias, the same way"},
    {"--key-lengths", "L,...", IN_BENCH, KIND_PART, AT(parts), 0, 0,
     "lengths:", "keys that exist, for each batch entry"},
    {"--offsets", "O,...", IN_BENCH, KIND_PART, AT(parts), 0, 0,
     "offsets:", "of the diagonal, for each batch entry"},
    {"--scale", "X", IN_BENCH, KIND_PART, AT(parts), 0, 0, "scale:", "of the scores (1/sqrt(D))"},
    {"--softcap", "X", IN_BENCH, KIND_PART, AT(parts), 0, 0, "softcap:", "of the scores (none)"},
    {"--epsilon", "X", IN_BENCH, KIND_PART, AT(parts), 0, 0, "epsilon:", "of linear attention (1e-6)"},
    {"--sink", NULL, IN_BENCH, KIND_PART, AT(parts), 0, 0, "sink",
     "a random attention sink for each query head"},
    {"--lse", NULL, IN_BENCH, KIND_PART, AT(parts), 0, 0, "lse", "ask for the log-sum-exp"},
    {"--weights", NULL, IN_BENCH, KIND_PART, AT(parts), 0, 0, "weights", "ask for the attention weights"},
    {"--fill", "NAME", IN_BENCH, KIND_PART, AT(parts), 0, 0,
     "fill:", "of inputs: uniform, normal, ...; help problem has all (uniform)"},
    {"--threads", "N", IN_BENCH | IN_VERIFY | IN_FUZZ | IN_MACHINE, KIND_INTEGER, AT(threads), 1, 4096, NULL,
     "threads that a kernel may use (the processors this process may use); most problems that verify chooses "
     "itself, and all that fuzz draws, are posed with 1 to 16 whatever is said here"},
    {"--pin", NULL, IN_BENCH | IN_MACHINE, KIND_FLAG, AT(pin), NO_LIMITS,
     "keep each thread to one of these processors (false)"},
    {"--isa", "NAME", IN_BENCH | IN_VERIFY | IN_FUZZ, KIND_TEXT, AT(isa), NO_LIMITS,
     "hold our variants to this instruction set (bench: the fastest; verify, fuzz: each in turn)"},
    {"--seed", "N", IN_BENCH | IN_VERIFY | IN_FUZZ | IN_DUMP, KIND_SEED, AT(seed), NO_LIMITS,
     "of all random input, but where a problem names its own (1)"},
    {"--shard", "K/N|auto", IN_BENCH, KIND_TEXT, AT(shard), NO_LIMITS,
     "measure part K of N of the sweep, K from 1; auto: the rank that mpirun or srun gave this process.\n"
     "Files are named by shard: --out FOLDER/shard-K-of-N, FILE.K-of-N.json; merge makes one report of them"},
    {"--out", "FILE.json|FOLDER", IN_MERGE, KIND_TEXT, AT(out), PATH,
     "write the merged report there; into a folder all that bench writes, with the plots"},
    {"--out", "FOLDER", IN_BENCH | IN_PLOTS, KIND_TEXT, AT(out), PATH,
     "write results.json, results.csv, console.txt, summary.txt, index.html and the plots there"},
    {"--html", "FILE", IN_REPORT, KIND_TEXT, AT(html), PATH, "the page (index.html beside RESULTS.json)"},
    {"--batch", "B", IN_SHOW, KIND_INTEGER, AT(show.batch), SIZES_FROM(0),
     "the batch entry, counted from 0 (0)"},
    {"--head", "H", IN_SHOW, KIND_INTEGER, AT(show.head), SIZES_FROM(0),
     "the query head, counted from 0 (0)"},
    {"--tile", "QUERIESxKEYS", IN_SHOW, KIND_TEXT, AT(show.tile), NO_LIMITS, "the size of a tile (64x64)"},
    {"--weights", NULL, IN_SHOW, KIND_FLAG, AT(show.weights), NO_LIMITS,
     "the attention weights too, by the reference"},
    {"--out", "FOLDER", IN_SHOW, KIND_TEXT, AT(out), PATH,
     "draw pattern.png and .svg there, with --weights weights.png and .svg; gnuplot does it"},
    {"--raw", "FILE.csv", IN_BENCH, KIND_TEXT, AT(raw), PATH,
     "write every single repetition there, a row each"},
    {"--min-time", "SECONDS|Nx", IN_BENCH, KIND_MIN_TIME, AT(min_time), NO_LIMITS,
     "the same as --benchmark_min_time"},
    {"--repetitions", "N", IN_BENCH, KIND_INTEGER, AT(repetitions), 1, 1000000, NULL,
     "the same as --benchmark_repetitions"},
    {"--precision", "PERCENT", IN_BENCH, KIND_PERCENT, AT(precision), NO_LIMITS,
     "repeat a point until its median is known to so much either way (1%)"},
    {"--point-budget", "SECONDS", IN_BENCH, KIND_SECONDS, AT(point_budget), NO_LIMITS,
     "or until its repetitions have taken so long; six are always made (1)"},
    {"--point-limit", "SECONDS", IN_BENCH, KIND_SECONDS, AT(point_limit), NO_LIMITS,
     "skip a point when a single run would take longer (8)"},
    {"--cold", NULL, IN_BENCH, KIND_FLAG, AT(cold), NO_LIMITS,
     "rotate inputs, so that each iteration finds its own in no cache; what cannot be rotated is skipped "
     "(false)"},
    {"--instructions", NULL, IN_BENCH, KIND_FLAG, AT(instructions), NO_LIMITS,
     "count the instructions of kernels, where valgrind is installed (true)"},
    {"--memory-only", "NAME,...", IN_BENCH, KIND_WORDS, AT(memory_only), NO_LIMITS,
     "of these variants nothing is run: the workspace that they ask for is drawn, and its growth fitted"},
    {"--brief", NULL, IN_BENCH, KIND_FLAG, AT(brief), NO_LIMITS,
     "one row a point on the console, its median; =false: every repetition and aggregate (true)"},
    {"--quiet", NULL, IN_BENCH, KIND_FLAG, AT(quiet), NO_LIMITS, "no progress, no notes"},
    {"--count", "N", IN_VERIFY, KIND_INTEGER, AT(count), 0, 1000000000, NULL,
     "random problems for each variant, among those that are always posed (100)"},
    {"--every", "N", IN_VERIFY, KIND_INTEGER, AT(every), 1, 1000000000, NULL,
     "only one in N of these problems; those of properties, as many as --count, are all posed (1)"},
    {"--properties", "NAME,...", IN_VERIFY, KIND_WORDS, AT(properties), NO_LIMITS,
     "of the properties hold only these, such as 'hidden keys,any workspace', or none; '?' names them (all)"},
    {"--fail-fast", NULL, IN_VERIFY, KIND_FLAG, AT(fail_fast), NO_LIMITS, "stop at the first failure"},
    {"--seconds", "SECONDS", IN_FUZZ, KIND_SECONDS, AT(seconds), NO_LIMITS,
     "how long to search, and then to shrink a failure at most (60)"},
    {"--run-limit", "SECONDS", IN_BENCH | IN_VERIFY | IN_FUZZ, KIND_SECONDS, AT(run_limit), NO_LIMITS,
     "a single run that takes longer is ended, and its variant has failed\n"
     "(10 s, and ten times what slow loops would take)"},
    {"--isolate", NULL, IN_BENCH | IN_VERIFY | IN_FUZZ | IN_LIST, KIND_FLAG, AT(isolate), NO_LIMITS,
     "run kernels in a process of their own, so that none can end this one;\n=false: for a debugger (true)"},
    {"--cases", "FOLDER", IN_VERIFY, KIND_TEXT, AT(cases), PATH,
     "hold the variants to a folder of given answers instead"},
    {"--title", "TEXT", IN_BENCH | IN_PLOTS | IN_MERGE | IN_SHOW, KIND_TEXT, AT(title), 0, 200, NULL,
     "what stands above each picture (what it shows)"},
    {"--font-size", "POINTS", IN_BENCH | IN_PLOTS | IN_MERGE | IN_SHOW, KIND_INTEGER, AT(font_size), 8, 40,
     NULL, "of the pictures (17); a slide wants 26"},
    {"--format", "FORMAT,...", IN_BENCH | IN_PLOTS | IN_MERGE | IN_SHOW, KIND_WORDS, AT(formats), 0, 0,
     "png|svg|pdf", "of the pictures (png,svg)"},
    {"--scripts", "FOLDER", IN_BENCH | IN_PLOTS | IN_MERGE | IN_REPORT | IN_SHOW, KIND_TEXT, AT(scripts),
     PATH, "where the gnuplot files lie (the program's own)"},
    {"--benchmark_filter", "REGEX", IN_BENCH, KIND_TEXT, AT(filter), NO_LIMITS,
     "only points whose name matches; with a '-' in front, all others"},
    {"--benchmark_list_tests", NULL, IN_BENCH, KIND_FLAG, AT(list_tests), NO_LIMITS,
     "print the names of the points and stop"},
    {"--benchmark_min_time", "SECONDS|Nx", IN_BENCH, KIND_MIN_TIME, AT(min_time), NO_LIMITS,
     "shortest time of one repetition, or N iterations exactly; without a number of\n"
     "repetitions: of all together, each a tenth of it (0.5s)"},
    {"--benchmark_min_warmup_time", "SECONDS", IN_BENCH, KIND_SECONDS, AT(min_warmup_time), NO_LIMITS,
     "unmeasured running before a point, beyond what it takes to settle (0)"},
    {"--benchmark_repetitions", "N", IN_BENCH, KIND_INTEGER, AT(repetitions), 1, 1000000, NULL,
     "exactly so many of each point (as --precision takes)"},
    {"--benchmark_report_aggregates_only", NULL, IN_BENCH, KIND_FLAG, AT(report_aggregates_only), NO_LIMITS,
     "no single repetitions in the files"},
    {"--benchmark_display_aggregates_only", NULL, IN_BENCH, KIND_FLAG, AT(display_aggregates_only), NO_LIMITS,
     "no single repetitions on the console"},
    {"--benchmark_enable_random_interleaving", NULL, IN_BENCH, KIND_FLAG, AT(random_interleaving), NO_LIMITS,
     "repetitions of different points in random order (true)"},
    {"--benchmark_format", "FORMAT", IN_BENCH, KIND_TEXT, AT(format), 0, 0, "console|json|csv",
     "what is printed (console)"},
    {"--benchmark_out", "FILE", IN_BENCH, KIND_TEXT, AT(out_file), PATH, "write the report there too"},
    {"--benchmark_out_format", "FORMAT", IN_BENCH, KIND_TEXT, AT(out_format), 0, 0, "json|console|csv",
     "of that file (json)"},
    {"--benchmark_time_unit", "UNIT", IN_BENCH, KIND_TEXT, AT(time_unit), 0, 0, "ns|us|ms|s",
     "of all times (what suits each)"},
    {"--benchmark_dry_run", NULL, IN_BENCH, KIND_FLAG, AT(dry_run), NO_LIMITS,
     "run each point once, to see that it runs"},
    {"--benchmark_color", "WHEN", IN_BENCH, KIND_TEXT, AT(color), 0, 0, "auto|true|yes|1|false|no|0",
     "colours on the console (auto: on a terminal)"},
    {"--benchmark_context", "KEY=VALUE,...", IN_BENCH, KIND_PAIRS, AT(context), NO_LIMITS,
     "more context for the record; repeatable"},
    {"--benchmark_counters_tabular", NULL, IN_BENCH, KIND_FLAG, AT(counters_tabular), NO_LIMITS,
     "accepted: counters always stand in columns"},
    {"--out", "FOLDER", IN_DUMP, KIND_TEXT, AT(out), PATH,
     "a new folder, or an empty one: q.npy, k.npy, v.npy and the others go there, with problem.json"},
    {"--output", "FILE.npy", IN_JUDGE, KIND_TEXT, AT(output), PATH, "the output, [B, H, Tq, Dv]"},
    {"--lse", "FILE.npy", IN_JUDGE, KIND_TEXT, AT(lse), PATH,
     "the log-sum-exp of each row, [B, H, Tq]: natural, sinks included (not judged)"},
    {"--weights", "FILE.npy", IN_JUDGE, KIND_TEXT, AT(weights), PATH,
     "the attention weights, [B, H, Tq, Tk] (not judged)"},
    {"--gradients", "FOLDER", IN_JUDGE, KIND_TEXT, AT(gradients), PATH,
     "of the backward pass, in the place of an output: query_grad.npy, key_grad.npy, value_grad.npy, and\n"
     "what else the problem has, such as bias_grad.npy, sink_grad.npy, decay_grad.npy, state_grad.npy "
     "(none)"},
    {"--states", "FOLDER", IN_JUDGE, KIND_TEXT, AT(states), PATH,
     "of a problem with final_state, beside its output: final_state.npy, final_state_sum.npy (none)"},
    {"--json", NULL, IN_JUDGE, KIND_FLAG, AT(json), NO_LIMITS,
     "print the verdict as an object of JSON (false)"},
    {"--as", "FORM", IN_HELP, KIND_TEXT, AT(as), 0, 0, "text|man|bash",
     "a manual page, or what completes command lines in bash, of all commands (text)"},

    {"--base", "FILE.so", IN_GATE | IN_GATE_MEASURE, KIND_ITEM, AT(gate.bases), NO_LIMITS,
     "the shared object before the change"},
    {"--head", "FILE.so", IN_GATE | IN_GATE_MEASURE, KIND_ITEM, AT(gate.heads), NO_LIMITS,
     "and after it; both repeatable, alike often: the same objects linked in other orders"},
    {"--variant", "NAME,...", IN_GATE, KIND_WORDS, AT(variants), NO_LIMITS,
     "only these variants; repeatable (all that both have)"},
    {"--problem", "TEXT", IN_GATE, KIND_ITEM, AT(problems), NO_LIMITS,
     "compare them on this problem, and verify the head on it too, such as causal/B:1/H:8/D:64/T:512;\n"
     "repeatable (small ones of usual shapes, or the nearest that they take)"},
    {"--no-base", "REASON", IN_GATE, KIND_TEXT, AT(gate.why_no_base), NO_LIMITS,
     "why there is no base; then there is no verdict on times"},
    {"--base-name", "TEXT", IN_GATE, KIND_TEXT, AT(gate.base_name), NO_LIMITS, "what people call the base"},
    {"--identical", "NAMES", IN_GATE, KIND_NOTE, AT(gate.identical), NO_LIMITS,
     "variants whose object code is the base's, with spaces between (all, or none, by the files)"},
    {"--again", "COMMAND", IN_GATE, KIND_TEXT, AT(gate.again), NO_LIMITS,
     "what runs this again, with % where options go: how a script is called that calls this"},
    {"--accept", "TEXT", IN_GATE, KIND_ITEM, AT(gate.accepted), NO_LIMITS,
     "what a commit message accepts, 'KIND VARIANT reason'; repeatable"},
    {"--baseline", "FILE", IN_GATE, KIND_TEXT, AT(gate.baseline), PATH, "the committed facts"},
    {"--write-facts", "FILE", IN_GATE, KIND_TEXT, AT(gate.write_facts), PATH,
     "write the head's facts there and end; with --baseline, its facts of other compilers\n"
     "and instruction sets are kept"},
    {"--head-facts", "FILE", IN_GATE, KIND_TEXT, AT(gate.head_facts), PATH,
     "what --write-facts wrote for the head (it is counted anew)"},
    {"--base-facts", "FILE", IN_GATE, KIND_TEXT, AT(gate.base_facts), PATH, "and for the base"},
    {"--head-code", "FILE", IN_GATE, KIND_TEXT, AT(gate.head_code), PATH,
     "what scripts/cuda_code.sh lists of the head's kernels for GPUs"},
    {"--base-code", "FILE", IN_GATE, KIND_TEXT, AT(gate.base_code), PATH, "and of the base's"},
    {"--head-team", "FILE.so", IN_GATE, KIND_TEXT, AT(gate.head_team), PATH,
     "the head's variants of a team (attnbench_mpi.so), whose bytes sent are held to the base's"},
    {"--base-team", "FILE.so", IN_GATE, KIND_TEXT, AT(gate.base_team), PATH, "and the base's"},
    {"--no-code", "REASON", IN_GATE, KIND_TEXT, AT(gate.why_no_code), NO_LIMITS,
     "why there are no such lists"},
    {"--out", "FOLDER", IN_GATE, KIND_TEXT, AT(out), PATH, "where the report and the pictures go"},
    {"--scripts", "FOLDER", IN_GATE, KIND_TEXT, AT(scripts), PATH,
     "where the gnuplot files lie (the program's own)"},
    {"--facts", NULL, IN_GATE, KIND_FLAG, AT(gate.facts), NO_LIMITS, "only the deterministic part"},
    {"--times", NULL, IN_GATE, KIND_FLAG, AT(gate.times), NO_LIMITS, "only the timing part"},
    {"--benchmark", "TEXT", IN_GATE, KIND_TEXT, AT(gate.only), NO_LIMITS,
     "only benchmarks with this in their names, confirmed straight away"},
    {"--budget", "SECONDS", IN_GATE, KIND_SECONDS, AT(gate.budget), 1, 0, NULL, "for times (120)"},
    {"--smallest", "PERCENT", IN_GATE, KIND_PERCENT, AT(gate.smallest), 0, 100, NULL,
     "the smallest slowdown that is called (2)"},
    {"--shadow", NULL, IN_GATE, KIND_FLAG, AT(gate.shadow), NO_LIMITS, "times are reported and fail nothing"},
    {"--cases", "N", IN_GATE, KIND_INTEGER, AT(gate.cases), 0, 1000000, NULL,
     "random problems of the verification (5)"},
    {"--every", "N", IN_GATE, KIND_INTEGER, AT(every), 1, 1000000000, NULL,
     "only one in N of all its problems (1)"},
    {"--seed", "N", IN_GATE | IN_GATE_MEASURE, KIND_SEED, AT(seed), NO_LIMITS,
     "of the order of everything (the time)"},

    {"--itself", "FILE.so", IN_GATE_MEASURE, KIND_TEXT, AT(gate.itself), NO_LIMITS,
     "another link of the base, which controls hold to it"},
    {"--quads", "N", IN_GATE_MEASURE, KIND_INTEGER, AT(gate.quads), 0, INT32_MAX, NULL,
     "rounds of four samples for each benchmark; 0: only calibrate (0)"},
    {"--plugin", "FILE.so", IN_COUNT_INSTRUCTIONS, KIND_ITEM, AT(plugins), NO_LIMITS,
     "take all variants from this shared object (the program's own)"},
};

const option_row *option_rows(size_t *count) {
  *count = sizeof rows / sizeof *rows;
  return rows;
}

const command_row *option_command(command command) { return &commands[command]; }

unsigned option_public_commands(void) {
  unsigned public = 0;
  for (unsigned n = 0; n < COMMAND_COUNT; n++) public |= (unsigned)(commands[n].visibility != HIDDEN) << n;
  return public;
}

void option_name_commands(unsigned wanted, char *text, size_t size) {
  size_t used = 0;
  *text = '\0';
  for (unsigned n = 0; n < COMMAND_COUNT && used < size; n++) {
    if (!(wanted >> n & 1)) continue;
    const char *before = used == 0 ? "" : wanted >> n == 1 ? " and " : ", ";
    used += (size_t)snprintf(text + used, size - used, "%s%s", before, commands[n].name);
  }
}
